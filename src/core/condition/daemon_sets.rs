//! `DaemonSet`s that a node waits for, by class or by name: has each that runs on this node a pod there, is one available, and
//! of which revision?

use std::fmt;

use smallvec::SmallVec;

use super::detail::Detail;
use super::facts::{Condition, Facts, GroupFacts};
use super::groups::CriticalComponentClass;
use super::names::Names;
use super::placement::{Placement, placement, tolerates};
use super::pods::{PodEvidence, assess_pod, not_ready};
use crate::api::ConditionStatus;
use crate::object::{DaemonSet, Kept, ObjectKey, Pod, PodReady, Taint};

/// A `DaemonSet` that only this taint keeps off the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut<'a> {
    daemon_set: &'a ObjectKey,
    taint: &'a Taint,
}

impl fmt::Display for LeftOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (daemon_set, taint) = (self.daemon_set, &self.taint.key);
        write!(f, "DaemonSet {daemon_set} does not tolerate taint {taint}")
    }
}

/// Live pods, sorted by their owners, those without first: to look up those of each `DaemonSet` takes no pass over all.
pub(super) struct PodsByOwner<'a>(SmallVec<[&'a Pod; 8]>);

impl<'a> PodsByOwner<'a> {
    pub(super) fn new(pods: &'a [Kept<Pod>]) -> Self {
        let owned = |pod: &&Pod| pod.is_live() && pod.may_be_a_daemon_sets();
        let mut by_owner: SmallVec<_> = pods.iter().map(|it| &**it).filter(owned).collect();
        by_owner.sort_unstable_by(|a: &&Pod, b: &&Pod| a.daemon_set.cmp(&b.daemon_set));
        Self(by_owner)
    }

    fn of(&self, daemon_set: &DaemonSet) -> impl Iterator<Item = &'a Pod> {
        let uid = Some(&*daemon_set.uid);
        let first = self.0.partition_point(|it| it.daemon_set.as_deref() < uid);
        let orphans = self.0.partition_point(|pod| pod.daemon_set.is_none());
        let controlled = self.0[first..].iter();
        let controlled = controlled.take_while(move |pod| pod.daemon_set.as_deref() == uid);
        let all = controlled.chain(&self.0[..orphans]).copied();
        all.filter(|pod| daemon_set.owns(pod))
    }

    /// The live pod of this `DaemonSet` that is nearest to available.
    pub(super) fn best(
        &self,
        daemon_set: &DaemonSet,
        facts: &Facts<'_, '_>,
    ) -> Option<(&'a Pod, PodEvidence)> {
        let seconds = daemon_set.min_ready_seconds;
        let assess = |pod| (pod, assess_pod(pod, seconds, facts));
        let pods = self.of(daemon_set).map(assess);
        pods.min_by_key(|(pod, evidence)| (*evidence, &pod.key))
    }
}

/// The `DaemonSet`s of a group that a node waits for, and those that only a taint keeps off it.
pub(super) struct Expected<'a> {
    pub daemon_sets: SmallVec<[&'a DaemonSet; 8]>,
    /// Those that may select it once all of its labels are there.
    to_come: SmallVec<[&'a ObjectKey; 4]>,
    left_out: SmallVec<[LeftOut<'a>; 4]>,
}

impl<'a> Expected<'a> {
    /// Those of the group that count, but for those that the rule leaves out by name, and for one that does not tolerate the taint
    /// of a rule that waits for the group: it could never start while the taint is there, so waiting for it would keep the taint
    /// for ever.
    pub(super) fn of(
        facts: &Facts<'_, 'a>,
        group: &GroupFacts<'_, 'a>,
        pods: &PodsByOwner<'a>,
        counts: impl Fn(&DaemonSet) -> bool,
    ) -> Self {
        let mut expected = Self {
            daemon_sets: SmallVec::new(),
            to_come: SmallVec::new(),
            left_out: SmallVec::new(),
        };
        let can_start = |it: &DaemonSet| group.gates.iter().all(|gate| tolerates(it, gate));
        let daemon_sets = group.daemon_sets.values().map(|it| &**it);
        let is_excepted = |it: &DaemonSet| facts.except.contains(&it.key);
        let daemon_sets = daemon_sets.filter(|it| facts.has(it) && counts(it) && !is_excepted(it));
        for daemon_set in daemon_sets.filter(|it| can_start(it)) {
            let is_pod = || pods.of(daemon_set).next().is_some();
            let is_selected = facts.labels().selected_by(daemon_set);
            match placement(daemon_set, is_selected, facts.staying, is_pod) {
                Placement::Meant => expected.daemon_sets.push(daemon_set),
                Placement::KeptAway(taint) => expected.left_out.push(LeftOut {
                    daemon_set: &daemon_set.key,
                    taint,
                }),
                Placement::NotMeant if may_come(daemon_set, facts) => {
                    expected.to_come.push(&daemon_set.key);
                }
                Placement::NotMeant => {}
            }
        }
        expected
    }

    /// The unknown condition for those that may select the node later; `None` if there are none.
    pub(super) fn to_come(&self) -> Option<Condition<'a>> {
        Names::of(self.to_come.iter().copied()).map(labels_to_come)
    }

    /// The unmet condition for those without a live pod on the node; `None` if there are none.
    pub(super) fn unscheduled(&self, pods: &PodsByOwner<'a>) -> Option<Condition<'a>> {
        let expected = self.daemon_sets.iter();
        let missing = expected.filter(|it| pods.of(it).next().is_none());
        Some(Condition::unmet(Detail::DaemonSetPodMissing {
            daemon_sets: Names::of(missing.map(|it| &it.key))?,
        }))
    }
}

/// Whether the node, which the `DaemonSet` does not run on by its labels, may get others, and no taint for a role keeps it off.
fn may_come(daemon_set: &DaemonSet, facts: &Facts<'_, '_>) -> bool {
    facts.node.awaits_labels()
        && facts.labels().may_be_selected_by(daemon_set)
        && placement(daemon_set, true, facts.staying, || false) != Placement::NotMeant
}

fn labels_to_come(daemon_sets: Names<&ObjectKey>) -> Condition<'_> {
    let detail = Detail::LabelsMayStillCome { daemon_sets };
    Condition::new(ConditionStatus::Unknown, detail)
}

/// Does every `DaemonSet` that the node waits for have a live pod there?
pub(super) fn scheduled<'a>(
    facts: &Facts<'_, 'a>,
    class: &CriticalComponentClass,
    group: &GroupFacts<'_, 'a>,
) -> Condition<'a> {
    let pods = PodsByOwner::new(group.pods);
    let expected = Expected::of(facts, group, &pods, |it| class.has(it));
    let unmet = expected.unscheduled(&pods);
    unmet.or_else(|| expected.to_come()).unwrap_or_else(|| {
        let any = !expected.daemon_sets.is_empty();
        let left_out = Names::of(expected.left_out);
        Condition::met(Detail::DaemonSetsScheduled { any, left_out })
    })
}

/// Does this `DaemonSet` have an available pod on the node, or does it not run there by what the node is? One that does not
/// tolerate a taint that stays, or that of a rule that waits for it, holds the node: to name a `DaemonSet` is to demand it.
pub(super) fn ready<'a>(
    daemon_set: &'a ObjectKey,
    facts: &Facts<'_, 'a>,
    group: &GroupFacts<'_, 'a>,
) -> Condition<'a> {
    let found = group.daemon_sets.get(daemon_set);
    let Some(found) = found.filter(|it| facts.has(it)) else {
        return Condition::unmet(Detail::DaemonSetNotFound { daemon_set });
    };
    let best = PodsByOwner::new(group.pods).best(found, facts);
    let is_selected = facts.labels().selected_by(found);
    let placement = placement(found, is_selected, facts.staying, || best.is_some());
    if placement == Placement::NotMeant {
        let to_come = may_come(found, facts).then(|| labels_to_come(Names::one(daemon_set)));
        return to_come.unwrap_or_else(|| Condition::met(Detail::DaemonSetNotMeant { daemon_set }));
    }
    if matches!(best, Some((_, PodEvidence::Ready))) {
        return Condition::met(Detail::DaemonSetReady { daemon_set });
    }
    // A pod that is there all the same may count later.
    let unmet = |detail| Condition {
        recheck: best.and_then(|(_, evidence)| evidence.believed_at()),
        ..Condition::unmet(detail)
    };
    let mut gates = group.gates.iter();
    if let Some(taint) = gates.find(|gate| !tolerates(found, gate)) {
        return unmet(Detail::DoesNotTolerateGate { daemon_set, taint });
    }
    if let Placement::KeptAway(taint) = placement {
        return unmet(Detail::DoesNotTolerate { daemon_set, taint });
    }
    let daemon_sets = Names::one(daemon_set);
    let missing = || Condition::unmet(Detail::DaemonSetPodMissing { daemon_sets });
    not_ready(best.as_slice()).unwrap_or_else(missing)
}

/// Does every `DaemonSet` that runs here, but for those labelled to be ignored, have a live (`as_ready`: available) pod here?
pub(super) fn all<'a>(
    facts: &Facts<'_, 'a>,
    group: &GroupFacts<'_, 'a>,
    as_ready: bool,
) -> Condition<'a> {
    let pods = PodsByOwner::new(group.pods);
    let expected = Expected::of(facts, group, &pods, |it| !it.ignored);
    let best = expected.daemon_sets.iter();
    let best = best.filter_map(|it| pods.best(it, facts));
    let unready = best.filter(|(_, evidence)| as_ready && *evidence != PodEvidence::Ready);
    let unready: SmallVec<[(&Pod, PodEvidence); 8]> = unready.collect();
    let unmet = expected.unscheduled(&pods).or_else(|| not_ready(&unready));
    unmet.or_else(|| expected.to_come()).unwrap_or_else(|| {
        let left_out = Names::of(expected.left_out);
        Condition::met(if as_ready {
            Detail::AllDaemonSetsReady { left_out }
        } else {
            Detail::AllDaemonSetsScheduled { left_out }
        })
    })
}

/// The pods of a `DaemonSet` on a node, which may be of several revisions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Revisions<'a> {
    daemon_set: &'a DaemonSet,
    /// Pods on the node, its own and others.
    pods: &'a [Kept<Pod>],
}

impl<'a> Revisions<'a> {
    /// Those of a `DaemonSet` that rules wait for by name; `None` if it does not exist.
    pub(crate) fn of(key: &ObjectKey, facts: &Facts<'_, 'a>) -> Option<Self> {
        facts.components.iter().find_map(|(_, group)| {
            let daemon_set = group.daemon_sets.get(key)?;
            let pods = group.pods;
            Some(Self { daemon_set, pods })
        })
    }

    pub(crate) fn daemon_set(&self) -> &'a ObjectKey {
        &self.daemon_set.key
    }

    /// Whether the pod of this revision has gone, and one of another revision takes its place. It is going for good as soon as
    /// it is being deleted with an earlier template than the present one.
    pub(crate) fn has_gone(&self, revision: &str) -> bool {
        let live = || self.live().filter_map(revision_of);
        if live().next().is_some() {
            return live().all(|it| it != revision);
        }
        let template = self.daemon_set.template_generation;
        let mut going = self.pods.iter().filter(|pod| {
            pod.terminating && self.daemon_set.owns(pod) && revision_of(pod) == Some(revision)
        });
        going.any(|pod| {
            let generations = pod.template_generation.zip(template);
            generations.is_some_and(|(own, present)| own != present)
        })
    }

    /// The revision to record: the recorded one while its pod is there, else that of a Ready pod.
    pub(crate) fn current<'r>(&self, recorded: Option<&'r str>) -> Option<&'r str>
    where
        'a: 'r,
    {
        let is_there = |pod: &Pod| recorded.is_some() && revision_of(pod) == recorded;
        if self.live().any(is_there) {
            return recorded;
        }
        let ready = self.live().find(|pod| pod.ready != PodReady::No);
        ready.and_then(revision_of).or(recorded)
    }

    fn live(&self) -> impl Iterator<Item = &'a Pod> {
        let own = |pod: &&Pod| pod.is_live() && self.daemon_set.owns(pod);
        self.pods.iter().map(|it| &**it).filter(own)
    }
}

fn revision_of(pod: &Pod) -> Option<&str> {
    pod.revision.as_deref()
}
