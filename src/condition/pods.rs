//! Pods: is each on the node Ready, as far as its status is current?

use std::fmt;
use std::mem::discriminant;

use jiff::{SignedDuration, Timestamp};
use smallvec::SmallVec;

use super::daemon_sets::{PodsByOwner, expected, scheduled};
use super::detail::Detail;
use super::facts::{Condition, Facts, GroupFacts};
use super::groups::CriticalComponentClass;
use super::names::Names;
use super::placement::tolerates;
use crate::api::{ConditionStatus, TaintEffect};
use crate::object::{DaemonSet, ObjectKey, Pod, PodReady, Taint, whole_second};

/// How long after a Node object was created a pod of an earlier node of the same name may still exist: the pod collector
/// deletes such pods within this time.
const OLD_POD_LIFETIME: SignedDuration = SignedDuration::from_mins(1);

/// How far a pod's Ready condition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PodEvidence {
    Ready,
    /// Ready for less than its `DaemonSet`'s `minReadySeconds`; counts from this time on.
    TooNew(Timestamp),
    /// Ready since before the node rebooted; counts from this time on.
    BeforeReboot(Timestamp),
    /// Ready since before the node was created; counts from this time on.
    BeforeNode(Timestamp),
    NotReady,
}

impl PodEvidence {
    /// From when on the pod counts as Ready, if it says so.
    pub(super) fn believed_at(self) -> Option<Timestamp> {
        match self {
            Self::TooNew(at) | Self::BeforeReboot(at) | Self::BeforeNode(at) => Some(at),
            Self::Ready | Self::NotReady => None,
        }
    }

    /// The evidence of a pod that counts only once it has been Ready for so long, by its own transition time (`IsPodAvailable` of
    /// Kubernetes' `pkg/api/v1/pod/util.go`).
    pub(super) fn once_available(self, pod: &Pod, min_ready_seconds: u32, now: Timestamp) -> Self {
        let PodReady::Yes { since: Some(since) } = pod.ready else {
            return self;
        };
        let wait = SignedDuration::from_secs(min_ready_seconds.into());
        match since.checked_add(wait) {
            Ok(available) if self == Self::Ready && now < available => Self::TooNew(available),
            _ => self,
        }
    }
}

/// A pod that has not been Ready for long enough yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPod<'a> {
    pub pod: &'a ObjectKey,
    pub since: Timestamp,
    /// When it counts.
    pub until: Timestamp,
}

impl<'a> NewPod<'a> {
    fn of(pod: &'a Pod, evidence: PodEvidence) -> Option<Self> {
        let (PodReady::Yes { since: Some(since) }, PodEvidence::TooNew(until)) =
            (pod.ready, evidence)
        else {
            return None;
        };
        Some(Self {
            pod: &pod.key,
            since,
            until,
        })
    }

    /// `minReadySeconds`.
    pub fn seconds(&self) -> i64 {
        self.until.duration_since(self.since).as_secs()
    }
}

impl fmt::Display for NewPod<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = whole_second(self.until);
        write!(f, "{} ({} s, until {until})", self.pod, self.seconds())
    }
}

/// How far a pod's Ready condition counts at this time.
pub(super) fn assess_pod(pod: &Pod, facts: &Facts<'_, '_>) -> PodEvidence {
    let since = match pod.ready {
        PodReady::No => return PodEvidence::NotReady,
        PodReady::Yes { since: None } => return PodEvidence::Ready,
        PodReady::Yes { since: Some(since) } => since,
    };
    if let Some(created) = facts.node.created.filter(|created| since < *created)
        && let Ok(believed) = created.checked_add(OLD_POD_LIFETIME)
        && facts.now < believed
    {
        return PodEvidence::BeforeNode(believed);
    }
    match facts.trust.distrusts_pods_until(facts.now) {
        Some(believed) if facts.trust.is_from_before(since) => PodEvidence::BeforeReboot(believed),
        _ => PodEvidence::Ready,
    }
}

/// Does each `DaemonSet` that the node waits for have at least one Ready pod, and is every other critical pod Ready?
pub(super) fn ready<'a>(
    facts: &Facts<'_, 'a>,
    class: &'a CriticalComponentClass,
    group: &GroupFacts<'_, 'a>,
) -> Condition<'a> {
    let pods = PodsByOwner::new(group.pods);
    let scheduled = scheduled(facts, class, group, &pods);
    if scheduled.status != ConditionStatus::True {
        return scheduled;
    }
    let mut waited_for: SmallVec<[&DaemonSet; 8]> = expected(facts, class, group, &pods).collect();
    let best = waited_for.iter().filter_map(|it| pods.best(it, facts));
    let mut unready: SmallVec<[(&Pod, PodEvidence); 8]> = best.collect();
    waited_for.sort_unstable_by(|a, b| a.uid.cmp(&b.uid));
    let is_waited_for = |pod: &Pod| {
        let owner = pod.daemon_set.as_ref();
        let place = owner.map(|uid| waited_for.binary_search_by(|it| it.uid.cmp(uid)));
        place.is_some_and(|place| place.is_ok_and(|place| waited_for[place].owns(pod)))
    };
    // Without its pods, which the rule's taint evicts, the node is released, and they come back.
    let evicts = |gate: &&&Taint| gate.effect == TaintEffect::NoExecute.as_str();
    let is_evicted = |daemon_set: &&DaemonSet| {
        let mut evicting = group.gates.iter().filter(evicts);
        evicting.any(|gate| !tolerates(daemon_set, gate))
    };
    let daemon_sets = group.daemon_sets.values().map(|it| &**it);
    let evicted: SmallVec<[&DaemonSet; 8]> = daemon_sets.filter(is_evicted).collect();
    let is_going = |pod: &Pod| evicted.iter().any(|daemon_set| daemon_set.owns(pod));
    let others = group.pods.iter().map(|it| &**it);
    let others = others.filter(|pod| pod.is_live() && !is_waited_for(pod) && !is_going(pod));
    unready.extend(others.map(|pod| (pod, assess_pod(pod, facts))));
    unready.retain(|(_, evidence)| *evidence != PodEvidence::Ready);
    not_ready(&unready).unwrap_or_else(|| Condition::met(Detail::PodsReady))
}

/// The unmet condition for pods that do not count as Ready; `None` if there are none.
pub(super) fn not_ready<'a>(unready: &[(&'a Pod, PodEvidence)]) -> Option<Condition<'a>> {
    let worst = unready.iter().map(|(_, evidence)| *evidence).max()?;
    // If some pods are not Ready, outdated Ready pods are not named.
    let is_like_the_worst = |it: &PodEvidence| discriminant(it) == discriminant(&worst);
    let mut named: SmallVec<[(&ObjectKey, &Pod, PodEvidence); 8]> = unready
        .iter()
        .filter(|(_, evidence)| is_like_the_worst(evidence))
        .map(|(pod, evidence)| (&pod.key, *pod, *evidence))
        .collect();
    named.sort_unstable_by_key(|(key, ..)| *key);
    let new = named.iter().filter_map(|(_, pod, it)| NewPod::of(pod, *it));
    let new = Names::of(new);
    let pods = Names::of(named.iter().map(|(key, ..)| *key))?;
    let believed = unready.iter().filter_map(|(_, it)| it.believed_at());
    Some(Condition {
        recheck: believed.min(),
        ..Condition::unmet(match (worst, new) {
            (PodEvidence::TooNew(_), Some(pods)) => Detail::PodNotAvailable { pods },
            (PodEvidence::NotReady, _) => Detail::PodNotReady { pods },
            (PodEvidence::BeforeNode(_), _) => Detail::PodOlderThanNode { pods },
            _ => Detail::PodOlderThanBoot { pods },
        })
    })
}
