//! Critical `DaemonSet`s: for which a node waits, and whether each has a pod there.

use smallvec::SmallVec;

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

/// Live pods, sorted by their owners: to look up those of each `DaemonSet` takes no pass over all.
pub(super) struct PodsByOwner<'a>(SmallVec<[&'a Pod; 8]>);

impl<'a> PodsByOwner<'a> {
    pub(super) fn new(pods: &'a [Pod]) -> Self {
        let owned = |pod: &&Pod| pod.is_live() && pod.daemon_set.is_some();
        let mut by_owner: SmallVec<_> = pods.iter().filter(owned).collect();
        by_owner.sort_unstable_by(|a: &&Pod, b: &&Pod| a.daemon_set.cmp(&b.daemon_set));
        Self(by_owner)
    }

    /// The live pods of this `DaemonSet`.
    pub(super) fn of(&self, daemon_set: &DaemonSet) -> impl Iterator<Item = &'a Pod> {
        let uid = Some(&*daemon_set.uid);
        let first = self
            .0
            .partition_point(|pod| pod.daemon_set.as_deref() < uid);
        let claim = self.0[first..].iter().copied();
        claim
            .take_while(move |pod| pod.daemon_set.as_deref() == uid)
            .filter(|pod| daemon_set.owns(pod))
    }
}

/// Does every `DaemonSet` that the node waits for have a live pod there? `pods` are those of the class.
pub(super) fn scheduled<'a>(
    node: &'a Node,
    facts: &ClassFacts<'_, 'a>,
    pods: &PodsByOwner<'_>,
) -> Condition<'a> {
    let mut expected = expected(node, facts).peekable();
    let is_any = expected.peek().is_some();
    let missing = expected.filter(|daemon_set| pods.of(daemon_set).next().is_none());
    match Names::of(missing.map(|daemon_set| &daemon_set.key)) {
        None if !is_any => Condition::met(Detail::NoDaemonSetMeant),
        None => Condition::met(Detail::DaemonSetsScheduled),
        Some(daemon_sets) => Condition::unmet(Detail::DaemonSetPodMissing { daemon_sets }),
    }
}
