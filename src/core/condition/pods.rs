//! Pods: is each on the node Ready, as far as its status is current?

use std::fmt;
use std::mem::discriminant;

use jiff::{SignedDuration, Timestamp};
use smallvec::SmallVec;

use super::daemon_sets::{Expected, PodsByOwner};
use super::detail::Detail;
use super::facts::{Condition, Facts, GroupFacts};
use super::groups::CriticalComponentClass;
use super::names::Names;
use super::placement::tolerates;
use crate::api::TaintEffect;
use crate::object::{DaemonSet, ObjectKey, Pod, PodReady, Taint};

/// How long the pod collector may leave a pod of an earlier node of the same name, after the new Node object was created.
const OLD_POD_LIFETIME: SignedDuration = SignedDuration::from_mins(1);

/// How long after a reboot an earlier Ready condition of a pod may persist: by then the kubelet has checked every pod.
const OLD_PODS: SignedDuration = SignedDuration::from_mins(1);

/// How far a pod's Ready condition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PodEvidence {
    Ready,
    /// Ready, but not yet for this number of seconds, as its `DaemonSet` asks: until this time.
    TooNew {
        until: Timestamp,
        seconds: u32,
    },
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
            Self::TooNew { until: at, .. } | Self::BeforeReboot(at) | Self::BeforeNode(at) => {
                Some(at)
            }
            Self::Ready | Self::NotReady => None,
        }
    }
}

/// A pod that has not been Ready for the `minReadySeconds` of its `DaemonSet` yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooNew<'a> {
    pub pod: &'a ObjectKey,
    seconds: u32,
    until: Timestamp,
}

impl TooNew<'_> {
    pub fn progress(&self, now: Timestamp) -> String {
        let seconds = self.seconds;
        let ready = SignedDuration::from_secs(seconds.into()) - self.until.duration_since(now);
        let ready = ready.as_secs().max(0);
        format!("Ready for {ready} s of {seconds} s (minReadySeconds)")
    }
}

impl fmt::Display for TooNew<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pod, seconds, until) = (self.pod, self.seconds, self.until);
        write!(f, "{pod} ({seconds} s, until {until})")
    }
}

/// How far a pod counts as available by `minReadySeconds` (0 without): `IsPodAvailable` of `k8s.io/kubernetes/pkg/api/v1/pod`.
pub(super) fn assess_pod(pod: &Pod, seconds: u32, facts: &Facts<'_, '_>) -> PodEvidence {
    let since = match pod.ready {
        PodReady::No => return PodEvidence::NotReady,
        // Never available, in Kubernetes either.
        PodReady::Yes { since: None } if seconds > 0 => return PodEvidence::NotReady,
        PodReady::Yes { since: None } => return PodEvidence::Ready,
        PodReady::Yes { since: Some(since) } => since,
    };
    if let Some(created) = facts.node.created.filter(|created| since < *created)
        && let Ok(believed) = created.checked_add(OLD_POD_LIFETIME)
        && facts.now < believed
    {
        return PodEvidence::BeforeNode(believed);
    }
    if let Some(believed) = facts.trust.distrusts_until(OLD_PODS, facts.now)
        && facts.trust.is_from_before(since, |it| it.older_by_kubelet)
    {
        return PodEvidence::BeforeReboot(believed);
    }
    let since = pod.ready_since().unwrap_or(since);
    let until = since.checked_add(SignedDuration::from_secs(seconds.into()));
    let until = until.unwrap_or(Timestamp::MAX);
    if seconds > 0 && facts.now < until {
        return PodEvidence::TooNew { until, seconds };
    }
    PodEvidence::Ready
}

/// Does each `DaemonSet` that the node waits for have at least one available pod, and is every other critical pod Ready?
pub(super) fn ready<'a>(
    facts: &Facts<'_, 'a>,
    class: &CriticalComponentClass,
    group: &GroupFacts<'_, 'a>,
) -> Condition<'a> {
    let pods = PodsByOwner::new(group.pods);
    let expected = Expected::of(facts, group, &pods, |it| class.has(it));
    if let Some(unscheduled) = expected.unscheduled(&pods) {
        return unscheduled;
    }
    let to_come = expected.to_come();
    let mut waited_for = expected.daemon_sets;
    let best = waited_for.iter().filter_map(|it| pods.best(it, facts));
    let mut unready: SmallVec<[(&Pod, PodEvidence); 8]> = best.collect();
    waited_for.sort_unstable_by(|a, b| a.uid.cmp(&b.uid));
    let is_waited_for = |pod: &Pod| {
        let Some(owner) = &pod.daemon_set else {
            return waited_for.iter().any(|it| it.owns(pod));
        };
        let place = waited_for.binary_search_by(|it| it.uid.cmp(owner));
        place.is_ok_and(|place| waited_for[place].owns(pod))
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
    let others = others.filter(|pod| !facts.leaves_out(pod, group));
    unready.extend(others.map(|pod| {
        let owner = group.daemon_sets.values().find(|it| it.owns(pod));
        let seconds = owner.map_or(0, |it| it.min_ready_seconds);
        (pod, assess_pod(pod, seconds, facts))
    }));
    unready.retain(|(_, evidence)| *evidence != PodEvidence::Ready);
    let unmet = not_ready(&unready).or(to_come);
    unmet.unwrap_or_else(|| Condition::met(Detail::PodsReady))
}

/// The unmet condition for pods that do not count as Ready; `None` if there are none.
pub(super) fn not_ready<'a>(unready: &[(&'a Pod, PodEvidence)]) -> Option<Condition<'a>> {
    let worst = unready.iter().map(|(_, evidence)| *evidence).max()?;
    // If some pods are not Ready, outdated Ready pods are not named.
    let is_alike = |it: &PodEvidence| discriminant(it) == discriminant(&worst);
    let mut alike: SmallVec<[_; 8]> = unready.iter().filter(|it| is_alike(&it.1)).collect();
    alike.sort_unstable_by_key(|(pod, _)| &pod.key);
    let too_new = alike.iter().filter_map(|(pod, evidence)| match *evidence {
        PodEvidence::TooNew { until, seconds } => Some(TooNew {
            pod: &pod.key,
            seconds,
            until,
        }),
        _ => None,
    });
    let pods = Names::of(alike.iter().map(|(pod, _)| &pod.key))?;
    let believed = unready.iter().filter_map(|(_, it)| it.believed_at());
    let detail = match worst {
        PodEvidence::NotReady => Detail::PodNotReady { pods },
        PodEvidence::BeforeNode(_) => Detail::PodOlderThanNode { pods },
        PodEvidence::BeforeReboot(_) => Detail::PodOlderThanBoot { pods },
        PodEvidence::TooNew { .. } | PodEvidence::Ready => Detail::PodNotAvailable {
            pods: Names::of(too_new)?,
        },
    };
    Some(Condition {
        recheck: believed.min(),
        ..Condition::unmet(detail)
    })
}
