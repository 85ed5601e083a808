//! Our finalizer on rules: added before anything is done for a rule, and removed once the nodes of a deleted rule are clean.

use std::sync::Arc;

use kube::Resource;
use tracing::{info, warn};

use super::{RuleWork, Rules};
use crate::cache::{Cache, CachedRule};
use crate::error::RequestError;
use crate::io::{Object, Request};
use crate::nodes::Nodes;
use crate::notice;
use crate::outbox::{Job, Outbox};
use crate::pacer::Class;
use crate::patch;
use nodegate_core::api::names::FINALIZER;
use nodegate_core::condition::Watch;
use nodegate_core::object::{RuleObject, Watched};

/// After this many refusals of our finalizer (about ten seconds), other rules stop waiting for it.
const REFUSALS: u32 = 8;

/// Whether every node has been evaluated since the rule was deleted, and is clean of it. What else is to be done on a node does not
/// matter. A stale watch may not have shown every node, and a node that is left alone is not evaluated.
fn is_clean(work: &RuleWork, cache: &Cache, nodes: &Nodes) -> bool {
    let are_clean = |since| nodes.values().all(|it| it.is_clean_of(&work.uid, since));
    !cache.cluster().stale.contains(&Watch::Nodes)
        && work.cleaning_since.is_some_and(are_clean)
        && cache.nodes.names().all(|name| nodes.contains_key(name))
}

impl Rules {
    /// Adds our finalizer to rules that need one, and removes it from deleted rules whose nodes are all clean.
    pub fn write_finalizers(&mut self, cache: &Cache, nodes: &Nodes, out: &mut Outbox) {
        let now = out.now.monotonic;
        for CachedRule { rule, object } in cache.rules.all.values() {
            let Some(work) = self.works.get_mut(&rule.uid) else {
                continue;
            };
            if work.finalizers.under_way
                || work.finalizers.backoff.not_before(now).is_some()
                || !out.pacer.may_begin(Class::Rule, now)
            {
                continue;
            }
            let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
            let mut wanted = finalizers.to_vec();
            match (rule.deleting, rule.finalizer) {
                (false, false) if rule.spec.is_ok() && !rule.is_taken_on() => {
                    wanted.push(FINALIZER.into());
                }
                (true, true) if is_clean(work, cache, nodes) => {
                    wanted.retain(|finalizer| finalizer != FINALIZER);
                }
                _ => continue,
            }
            work.finalizers.under_way = true;
            let patch = patch::finalizers(&rule.uid, finalizers, &wanted);
            let request = Request::PatchRule(rule.name.clone(), patch);
            out.ask(Job::Finalizers(rule.uid.clone()), request);
        }
    }

    pub fn finalizers_answered(
        &mut self,
        uid: &Arc<str>,
        result: Result<Watched<RuleObject>, RequestError>,
        cache: &mut Cache,
        out: &mut Outbox,
    ) {
        let Some(work) = self.works.get_mut(uid) else {
            return;
        };
        work.finalizers
            .ended(result.as_ref().err(), out.now.monotonic);
        let error = match result {
            Ok(object) => {
                let mut left = object.meta().finalizers.iter().flatten();
                if left.all(|finalizer| finalizer != FINALIZER) {
                    info!(rule = %work.name, "rule is gone; its nodes are clean");
                }
                return cache.apply_answer(Object::Rule(object), out.now);
            }
            Err(error) => error,
        };
        if error.is_refusal() {
            warn!(rule = %work.name, "cannot write the rule's finalizers: {error}");
            if work.finalizers.refusals == 1 {
                work.tell_refusal(&notice::FINALIZERS_UNWRITTEN, &error, out);
            }
            if work.finalizers.refusals >= REFUSALS && matches!(error, RequestError::Failed(_)) {
                cache.refused_finalizer(&work.name);
            }
        }
        // The watch reports rules that are gone. An API server that has just started may say so of a rule that exists.
        if let Some(at) = work.finalizers.backoff.due() {
            out.want(Job::Finalizers(uid.clone()), at);
        }
    }
}
