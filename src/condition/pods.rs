//! Critical pods: is each on the node Ready, as far as its status is current?

use std::mem::discriminant;

use jiff::{SignedDuration, Timestamp};
use smallvec::SmallVec;

use super::daemon_sets::{PodsByOwner, expected, scheduled};
use super::detail::Detail;
use super::facts::ClassFacts;
use super::names::Names;
use super::state::Condition;
use super::trust::Trust;
use crate::api::ConditionStatus;
use crate::object::{DaemonSet, Node, ObjectKey, Pod, PodReady};

/// How long after a Node object was created a pod of an earlier node of the same name may still exist: the pod collector
/// deletes such pods within this time.
const OLD_POD_LIFETIME: SignedDuration = SignedDuration::from_mins(1);

/// How far a pod's Ready condition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    Ready,
    /// Ready since before the node rebooted; counts from this time on.
    BeforeReboot(Timestamp),
    /// Ready since before the node was created; counts from this time on.
    BeforeNode(Timestamp),
    NotReady,
}

impl Word {
    /// From when on the pod counts as Ready, if it says so.
    pub(super) fn believed_at(self) -> Option<Timestamp> {
        match self {
            Self::BeforeReboot(at) | Self::BeforeNode(at) => Some(at),
            Self::Ready | Self::NotReady => None,
        }
    }
}

/// How far a pod's Ready condition counts at this time.
pub(super) fn word(pod: &Pod, node: &Node, trust: Trust, now: Timestamp) -> Word {
    let since = match pod.ready {
        PodReady::No => return Word::NotReady,
        PodReady::Yes { since: None } => return Word::Ready,
        PodReady::Yes { since: Some(since) } => since,
    };
    if let Some(created) = node.created.filter(|created| since < *created)
        && let Ok(believed) = created.checked_add(OLD_POD_LIFETIME)
        && now < believed
    {
        return Word::BeforeNode(believed);
    }
    match trust.distrusts_pods_until(now) {
        Some(believed) if trust.is_from_before(since) => Word::BeforeReboot(believed),
        _ => Word::Ready,
    }
}

/// Does each `DaemonSet` that the node waits for have at least one Ready pod, and is every other critical pod Ready?
pub(super) fn ready<'a>(
    node: &'a Node,
    facts: &ClassFacts<'_, 'a>,
    trust: Trust,
    now: Timestamp,
) -> Condition<'a> {
    let pods = PodsByOwner::new(facts.pods);
    let scheduled = scheduled(node, facts, &pods);
    if scheduled.status != ConditionStatus::True {
        return scheduled;
    }
    let mut unready: SmallVec<[(&Pod, Word); 8]> = SmallVec::new();
    let mut waited_for: SmallVec<[&DaemonSet; 8]> = SmallVec::new();
    for daemon_set in expected(node, facts) {
        waited_for.push(daemon_set);
        let words = pods
            .of(daemon_set)
            .map(|pod| (pod, word(pod, node, trust, now)));
        unready.extend(words.min_by_key(|(pod, word)| (*word, &pod.key)));
    }
    waited_for.sort_unstable_by(|a, b| a.uid.cmp(&b.uid));
    let is_waited_for = |pod: &Pod| {
        let owner = pod.daemon_set.as_ref();
        let place = owner.map(|uid| waited_for.binary_search_by(|it| it.uid.cmp(uid)));
        place.is_some_and(|place| place.is_ok_and(|place| waited_for[place].owns(pod)))
    };
    let others = facts.pods.iter();
    let others = others.filter(|pod| pod.is_live() && !is_waited_for(pod));
    unready.extend(others.map(|pod| (pod, word(pod, node, trust, now))));
    unready.retain(|(_, word)| *word != Word::Ready);

    not_ready(&unready).unwrap_or_else(|| Condition::met(Detail::PodsReady))
}

/// The unmet condition for pods that do not count as Ready; `None` if there are none.
pub(super) fn not_ready<'a>(unready: &[(&'a Pod, Word)]) -> Option<Condition<'a>> {
    let worst = unready.iter().map(|(_, word)| *word).max()?;
    // If some pods are not Ready, outdated Ready pods are not named.
    let is_like_the_worst = |word: &Word| discriminant(word) == discriminant(&worst);
    let mut named: SmallVec<[&ObjectKey; 8]> = unready
        .iter()
        .filter(|(_, word)| is_like_the_worst(word))
        .map(|(pod, _)| &pod.key)
        .collect();
    named.sort_unstable();
    let pods = Names::of(named)?;
    Some(Condition {
        recheck: unready
            .iter()
            .filter_map(|(_, word)| word.believed_at())
            .min(),
        ..Condition::unmet(match worst {
            Word::NotReady => Detail::PodNotReady { pods },
            Word::BeforeNode(_) => Detail::PodOlderThanNode { pods },
            Word::BeforeReboot(_) | Word::Ready => Detail::PodOlderThanBoot { pods },
        })
    })
}
