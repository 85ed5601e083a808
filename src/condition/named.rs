//! `DaemonSet`s that rules wait for by name, whatever their labels, or all of the cluster: is each that runs on this node ready
//! there?

use jiff::Timestamp;
use smallvec::SmallVec;

use super::daemon_sets::PodsByOwner;
use super::detail::Detail;
use super::facts::ComponentFacts;
use super::names::Names;
use super::placement::{is_meant_for, tolerates};
use super::pods::{Word, not_ready, word};
use super::state::Condition;
use super::trust::Trust;
use crate::object::{DaemonSet, Node, ObjectKey, Pod};

/// Does the `DaemonSet` have a Ready pod on the node, or does it not run there?
///
/// To name a `DaemonSet` is to demand it. One that does not tolerate the taint of a rule that waits for it cannot start while
/// the taint is there: the node stays closed until the `DaemonSet` tolerates it, or a pod of it is Ready for other reasons.
pub(super) fn ready<'a>(
    key: &'a ObjectKey,
    node: &'a Node,
    facts: &ComponentFacts<'_, 'a>,
    trust: Trust,
    now: Timestamp,
) -> Condition<'a> {
    let daemon_set = facts.daemon_sets.get(key);
    let Some(daemon_set) = daemon_set.filter(|it| !it.deleting) else {
        return Condition::unmet(Detail::DaemonSetNotFound { daemon_set: key });
    };
    if !is_meant_for(daemon_set, node, facts.staying) {
        return Condition::met(Detail::DaemonSetNotMeant { daemon_set: key });
    }
    let ready = || Condition::met(Detail::DaemonSetReady { daemon_set: key });
    let best = best(daemon_set, &PodsByOwner::new(facts.pods), node, trust, now);
    let mut gates = facts.gates.iter();
    let intolerable = gates.find(|gate| !tolerates(daemon_set, gate));
    if let Some(gate) = intolerable.filter(|_| !matches!(best, Some((_, Word::Ready)))) {
        return Condition::unmet(Detail::DoesNotTolerate {
            daemon_set: key,
            gate,
        });
    }
    match best {
        None => Condition::unmet(Detail::DaemonSetPodMissing {
            daemon_sets: Names::one(key),
        }),
        Some((_, Word::Ready)) => ready(),
        Some(best) => not_ready(&[best]).unwrap_or_else(ready),
    }
}

/// Does every `DaemonSet` that runs on the node have a Ready pod there? Those are left out that do not tolerate the taint of a
/// rule that waits for this, and those that their owner has labelled to be ignored.
pub(super) fn all_ready<'a>(
    node: &'a Node,
    facts: &ComponentFacts<'_, 'a>,
    trust: Trust,
    now: Timestamp,
) -> Condition<'a> {
    let mut missing: SmallVec<[&ObjectKey; 8]> = SmallVec::new();
    let mut unready: SmallVec<[(&Pod, Word); 8]> = SmallVec::new();
    let expected = facts.daemon_sets.values().filter(|daemon_set| {
        !daemon_set.deleting
            && !daemon_set.ignored
            && facts.gates.iter().all(|gate| tolerates(daemon_set, gate))
            && is_meant_for(daemon_set, node, facts.staying)
    });
    let pods = PodsByOwner::new(facts.pods);
    for daemon_set in expected {
        match best(daemon_set, &pods, node, trust, now) {
            None => missing.push(&daemon_set.key),
            Some((_, Word::Ready)) => {}
            Some(best) => unready.push(best),
        }
    }
    let missing = Names::of(missing).map(|daemon_sets| {
        let detail = Detail::DaemonSetPodMissing { daemon_sets };
        Condition::unmet(detail)
    });
    missing
        .or_else(|| not_ready(&unready))
        .unwrap_or_else(|| Condition::met(Detail::AllDaemonSetsReady))
}

/// The pod of the `DaemonSet` on the node that is nearest to Ready.
fn best<'a>(
    daemon_set: &DaemonSet,
    pods: &PodsByOwner<'a>,
    node: &Node,
    trust: Trust,
    now: Timestamp,
) -> Option<(&'a Pod, Word)> {
    let words = pods
        .of(daemon_set)
        .map(|pod| (pod, word(pod, node, trust, now)));
    words.min_by_key(|(pod, word)| (*word, &pod.key))
}
