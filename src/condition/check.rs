//! Checks: pods that try out a node, whoever makes them. Has the newest one on the node succeeded?

use super::detail::Detail;
use super::state::Condition;
use super::trust::Trust;
use crate::object::{Node, ObjectKey, Pod, PodPhase};

/// Has the newest of these pods succeeded? Pods from before the node was created, or from before a reboot that counts, say
/// nothing about it. API times have whole seconds.
pub(super) fn succeeded<'a>(
    check: &'a ObjectKey,
    node: &'a Node,
    pods: &'a [Pod],
    trust: Trust,
) -> Condition<'a> {
    let counts = |pod: &&Pod| {
        pod.created.is_none_or(|created| {
            let since = node.created.is_none_or(|node| created >= node);
            since && !trust.is_from_before(created)
        })
    };
    let newest = pods.iter().filter(counts);
    let Some(newest) = newest.max_by_key(|pod| (pod.created, &pod.key)) else {
        return Condition::unmet(Detail::CheckMissing { check });
    };
    let pod = &newest.key;
    match newest.phase {
        PodPhase::Succeeded => Condition::met(Detail::CheckSucceeded { pod }),
        PodPhase::Failed => Condition::unmet(Detail::CheckFailed { pod }),
        PodPhase::Unfinished => Condition::unmet(Detail::CheckRunning { pod }),
    }
}
