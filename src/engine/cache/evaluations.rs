//! `NodeReadinessEvaluation`s, from watches and write responses. Nothing is decided by them: they are read so that none is written
//! twice, and so that their times outlast the process.

use std::sync::Arc;
use std::time::Instant;

use kube::Resource;

use super::Cache;
use super::karpenter::Extent;
use crate::engine::broken::Identity;
use crate::engine::kind::Watch;
use crate::object::{self, Evaluation, EvaluationObject, ObjectKey};

impl Cache {
    /// Waits for the evaluations from now on, before any is written.
    pub fn watch_evaluations(&mut self, now: Instant) {
        self.evaluations.is_watched = true;
        self.certainty.begin(Watch::Evaluations, now, now);
        self.certainty.interrupted(Watch::Evaluations);
    }

    /// The evaluation of this name, if there is one.
    pub fn evaluation(&self, name: &str) -> Option<&Evaluation> {
        self.evaluations.all.get(name)
    }

    /// Whether the cluster has evaluations, all are known, and nothing was stale at the last [`Self::weigh`].
    pub fn knows_evaluations(&self) -> bool {
        self.evaluations.extent == Extent::Everything && !self.has_stale_evaluations()
    }

    /// Whether evaluations, or what they are made of, were stale at the last [`Self::weigh`].
    pub fn has_stale_evaluations(&self) -> bool {
        self.weighed.evaluations_are_stale || !self.weighed.stale.is_empty()
    }

    pub(super) fn see_evaluation(&mut self, object: EvaluationObject) {
        let identity = Identity::of(Watch::Evaluations, object.meta());
        let version = object::resource_version(object.meta());
        let key = identity.key.clone();
        let evaluation = self.understood(identity, version, None, object.read());
        let Some((ObjectKey { name, .. }, evaluation)) = evaluation else {
            self.index.remove(Watch::Evaluations, &key);
            self.remove_evaluation(&key.name);
            return;
        };
        if self.evaluations.all.get(&name) != Some(&evaluation) {
            self.evaluations.all.insert(name.clone(), evaluation);
            self.mark(&name);
        }
    }

    /// Takes in an evaluation from a write response, unless the watch has shown as much: then it may be gone by now.
    pub fn update_evaluation(&mut self, object: EvaluationObject) {
        let meta = object.meta();
        let (key, version) = (ObjectKey::of(meta), object::resource_version(meta));
        let watch = Watch::Evaluations;
        if !self.shown.has_watched(watch, version) && !self.is_outdated(watch, &key, version) {
            self.see_evaluation(object);
        }
    }

    pub(super) fn remove_evaluation(&mut self, name: &Arc<str>) {
        if self.evaluations.all.remove(name).is_some() {
            self.mark(name);
        }
    }

    /// Notes how much is known of the evaluations; ignores other kinds.
    pub(super) fn know_evaluations(&mut self, watch: Watch, extent: Extent) {
        if watch == Watch::Evaluations
            && std::mem::replace(&mut self.evaluations.extent, extent) != extent
        {
            self.mark_all();
        }
    }
}
