//! What the reconcile loop does about objects that cannot be understood: leaves the nodes as they are that they are about,
//! and says so.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use tracing::warn;

use super::broken::Broken;
use super::kind::Watch;
use super::reconcile::Reconciler;
use super::status::Failure;
use crate::api::names::{GROUP, VERSION};
use crate::controller::events::{Notice, Tone};
use crate::controller::metrics::EVALUATION_ERROR;

/// The reason of the events.
const REASON: &str = "ObjectUnreadable";
/// What is done there, as events call it.
const ACTION: &str = "Read";

impl Reconciler {
    /// Tells of the objects that cannot be understood, of each once.
    pub(super) fn tell_unreadable(&mut self) {
        for broken in self.cache.tell_unreadable() {
            let node = broken.node.as_deref();
            warn!(node, left_as_it_is = node.is_some(), "{broken}");
            match broken.object.watch {
                Watch::Nodes | Watch::CsiNodes | Watch::Pods(_) => self.tell_on_node(&broken),
                Watch::DaemonSets(class) => self.tell_on_rules(&broken, class),
                Watch::Rules => self.tell_on_itself(&broken, &format!("{GROUP}/{VERSION}")),
                Watch::NodeClaims | Watch::NodePools => {
                    self.tell_on_itself(&broken, "karpenter.sh/v1");
                }
            }
        }
    }

    /// Tells of an object without a namespace.
    fn tell_on_itself(&self, broken: &Broken, api_version: &str) {
        let object = &broken.object;
        if object.key.name.is_empty() {
            return;
        }
        let about = ObjectReference {
            api_version: Some(api_version.to_owned()),
            kind: Some(object.watch.kind().to_owned()),
            name: Some(object.key.name.to_string()),
            uid: object.uid.as_deref().map(str::to_owned),
            ..ObjectReference::default()
        };
        let note = broken.to_string();
        let notice = Notice::new(about, Tone::Warning, REASON, ACTION, note);
        self.events.send(notice);
    }

    fn tell_on_node(&self, broken: &Broken) {
        let Some(name) = &broken.node else {
            return;
        };
        let known = self.cache.node(name).map(|state| state.node.uid.clone());
        let uid = match broken.object.watch {
            Watch::Nodes => broken.object.uid.clone().or(known),
            _ => known,
        };
        // An event needs the UID to be found with its node.
        if let Some(uid) = uid {
            let note = format!("This node is left as it is: {broken}");
            let notice = Notice::on_node(name, &uid, Tone::Warning, REASON, ACTION, note);
            self.events.send(notice);
        }
    }

    /// Tells of a `DaemonSet` on the rules that wait for its class.
    fn tell_on_rules(&self, broken: &Broken, class: usize) {
        for rule in self.cache.cluster().rules.rules() {
            if rule.live().is_some_and(|spec| spec.waits_for_class(class)) {
                let note = format!("{broken}; it is taken as it was last, if ever");
                let notice = Notice::on_rule(rule, Tone::Warning, REASON, ACTION, note);
                self.events.send(notice);
            }
        }
    }

    /// Leaves a node as it is, if something about it cannot be understood, and has the rules say so that know it; answers
    /// whether that is so.
    pub(super) fn is_left_alone(&mut self, name: &Arc<str>, now: Timestamp) -> bool {
        let Some(message) = self.cache.left_alone(name).map(ToString::to_string) else {
            return false;
        };
        let Some(work) = self.nodes.get(name) else {
            return true;
        };
        for uid in &work.recorded_by {
            let Some(rule) = self.rules.get_mut(uid) else {
                continue;
            };
            let failure = Failure {
                reason: EVALUATION_ERROR,
                message: message.clone(),
            };
            if rule.tally.fail(name, failure, now) {
                rule.status_changed(&mut self.timers);
            }
        }
        true
    }
}
