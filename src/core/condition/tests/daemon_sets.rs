//! Which `DaemonSet`s a node waits for.

use super::{COMPONENTS, DRIVERS, READY, SCHEDULED, assert_meant_for, cni, labelled, worker};
use crate::api::ConditionStatus;
use crate::testing::{ConditionAnswer, world};

#[test]
fn a_node_without_critical_components_lacks_nothing() {
    let world = world(&worker().taint("node.kubernetes.io/not-ready", "NoSchedule"));
    #[rustfmt::skip]
    let cases = [
        (SCHEDULED, "DaemonSetsScheduled", "no critical DaemonSet is meant for this node"),
        (READY, "PodsReady", "every critical pod on this node is Ready"),
        (DRIVERS, "CSIDriversRegistered", "every CSI driver that is waited for is registered"),
        (COMPONENTS, "CriticalComponentsReady", "no critical component is meant for this node"),
    ];
    for (kind, reason, message) in cases {
        let answer = ConditionAnswer {
            status: ConditionStatus::True,
            reason: reason.into(),
            message: message.into(),
            recheck: None,
        };
        assert_eq!(world.condition(kind), Some(answer));
    }
}

#[test]
fn a_daemon_set_that_should_not_run_here_is_not_waited_for() {
    #[rustfmt::skip]
    let cases = [
        ("anywhere", cni(), true),
        ("this node's name", cni().pod_spec("nodeName: worker-1"), true),
        ("another node's name", cni().pod_spec("nodeName: worker-2"), false),
        ("node selector that matches", cni().node_selector("kubernetes.io/arch", "arm64").node_selector("cores", "8"), true),
        ("node selector of which half matches", cni().node_selector("kubernetes.io/arch", "arm64").node_selector("cores", "9"), false),
        ("node selector for a label that is missing", cni().node_selector("gpu", ""), false),
        (
            "preferred affinity only",
            cni().pod_spec(
                "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}",
            ),
            true,
        ),
    ];
    for (name, daemon_set, expected) in cases {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}
