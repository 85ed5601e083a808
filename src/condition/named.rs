//! A `DaemonSet` that rules wait for by name, whatever its labels: if it runs on this node, is it ready there?

use jiff::Timestamp;

use super::daemon_sets::pods_of;
use super::detail::Detail;
use super::facts::NamedFacts;
use super::names::Names;
use super::placement::{is_meant_for, tolerates};
use super::pods::{Word, not_ready, word};
use super::state::Condition;
use super::trust::Trust;
use crate::api::ConditionStatus;
use crate::object::Node;

/// Does the `DaemonSet` have a Ready pod on the node, or does it not run there?
///
/// A `DaemonSet` that does not tolerate the taint of a rule that waits for it is passed over: it could never start while the
/// taint is there.
pub(super) fn ready<'a>(
    node: &'a Node,
    facts: &NamedFacts<'_, 'a>,
    trust: Trust,
    now: Timestamp,
) -> Condition<'a> {
    let key = facts.key;
    if !facts.is_seen {
        let detail = Detail::DaemonSetNotSeen { daemon_set: key };
        return Condition::new(ConditionStatus::Unknown, detail);
    }
    let Some(daemon_set) = facts.daemon_set.filter(|it| !it.deleting) else {
        return Condition::unmet(Detail::DaemonSetNotFound { daemon_set: key });
    };
    if !is_meant_for(daemon_set, node, facts.staying) {
        return Condition::met(Detail::DaemonSetNotMeant { daemon_set: key });
    }
    if !facts.gates.iter().all(|gate| tolerates(daemon_set, gate)) {
        return Condition::met(Detail::DaemonSetShutOut { daemon_set: key });
    }
    let words = pods_of(daemon_set, facts.pods).map(|pod| (pod, word(pod, node, trust, now)));
    let ready = || Condition::met(Detail::DaemonSetReady { daemon_set: key });
    match words.min_by_key(|(pod, word)| (*word, &pod.key)) {
        None => Condition::unmet(Detail::DaemonSetPodMissing {
            daemon_sets: Names::one(key),
        }),
        Some((_, Word::Ready)) => ready(),
        Some(best) => not_ready(&[best]).unwrap_or_else(ready),
    }
}
