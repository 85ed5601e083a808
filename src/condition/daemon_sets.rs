//! Critical `DaemonSet`s: for which a node waits, and whether each has a pod there.

use super::detail::Detail;
use super::facts::ClassFacts;
use super::names::Names;
use super::placement::{is_meant_for, tolerates};
use super::state::Condition;
use crate::object::{DaemonSet, Node, Pod};

/// The `DaemonSet`s of the class that this node waits for.
///
/// A `DaemonSet` that does not tolerate the taint of a rule that waits for the class is left out: it could never start while
/// the taint is there, so waiting for it would keep the taint for ever.
pub(super) fn expected<'f, 'a>(
    node: &'a Node,
    facts: &ClassFacts<'f, 'a>,
) -> impl Iterator<Item = &'a DaemonSet> + use<'f, 'a> {
    let ClassFacts {
        class,
        daemon_sets,
        staying,
        gates,
        ..
    } = *facts;
    daemon_sets.values().filter(move |daemon_set| {
        class.has(daemon_set)
            && gates.iter().all(|gate| tolerates(daemon_set, gate))
            && is_meant_for(daemon_set, node, staying)
    })
}

/// The live pods of this `DaemonSet` among these pods.
pub(super) fn pods_of<'a>(
    daemon_set: &'a DaemonSet,
    pods: &'a [Pod],
) -> impl Iterator<Item = &'a Pod> + use<'a> {
    pods.iter()
        .filter(|pod| pod.is_live() && pod.daemon_set.as_ref() == Some(&daemon_set.uid))
}

/// Does every `DaemonSet` that the node waits for have a live pod there?
pub(super) fn scheduled<'a>(node: &'a Node, facts: &ClassFacts<'_, 'a>) -> Condition<'a> {
    let mut expected = expected(node, facts).peekable();
    let is_any = expected.peek().is_some();
    let missing = expected.filter(|daemon_set| pods_of(daemon_set, facts.pods).next().is_none());
    match Names::of(missing.map(|daemon_set| &daemon_set.key)) {
        None if !is_any => Condition::met(Detail::NoDaemonSetMeant),
        None => Condition::met(Detail::DaemonSetsScheduled),
        Some(daemon_sets) => Condition::unmet(Detail::DaemonSetPodMissing { daemon_sets }),
    }
}
