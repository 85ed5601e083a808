//! Which `DaemonSet`s a node waits for.

use super::{
    CNI_MISSING, COMPONENTS, DRIVERS, READY, SCHEDULED, assert_lack, assert_meant_for, cni,
    cni_pod, labelled, worker,
};
use crate::api::ConditionStatus;
use crate::testing::{Builder, CRITICAL, ConditionAnswer, PodBuilder, daemon_set, pod, world};

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
fn a_daemon_set_is_waited_for_until_it_has_a_live_pod_of_its_own() {
    let proxy = daemon_set("kube-system/proxy").critical();
    let agent = daemon_set("kube-system/agent").critical();
    let with = |pod: PodBuilder| world(&worker()).daemon_set(&cni()).pod(&pod);
    for (name, world, expected) in vec![
        (
            "no pod",
            world(&worker()).daemon_set(&cni()),
            Some(CNI_MISSING),
        ),
        ("a pod that is not Ready", with(cni_pod()), None),
        (
            "a terminating pod",
            with(cni_pod().deleting()),
            Some(CNI_MISSING),
        ),
        (
            "a pod that succeeded",
            with(cni_pod().phase("Succeeded")),
            Some(CNI_MISSING),
        ),
        (
            "a pod that failed",
            with(cni_pod().phase("Failed")),
            Some(CNI_MISSING),
        ),
        (
            "a pod on another node",
            with(cni_pod().on("worker-2")),
            Some(CNI_MISSING),
        ),
        (
            "a labelled pod that nobody controls",
            with(pod("kube-system/cni-1").critical()),
            Some(CNI_MISSING),
        ),
        (
            "a pod of another DaemonSet",
            with(pod("kube-system/cni-1").of(&proxy)).daemon_set(&proxy),
            Some(CNI_MISSING),
        ),
        (
            "a failed pod beside its replacement",
            with(cni_pod().phase("Failed")).pod(&pod("kube-system/cni-2").of(&cni())),
            None,
        ),
        (
            "no label",
            world(&worker()).daemon_set(&daemon_set("kube-system/cni")),
            None,
        ),
        (
            "a label on the metadata only",
            world(&worker()).daemon_set(&daemon_set("kube-system/cni").label(CRITICAL, "true")),
            None,
        ),
        (
            "a label on the pod template only",
            world(&worker())
                .daemon_set(&daemon_set("kube-system/cni").template_label(CRITICAL, "true")),
            None,
        ),
        (
            "a label with another value",
            world(&worker()).daemon_set(
                &daemon_set("kube-system/cni")
                    .label(CRITICAL, "false")
                    .template_label(CRITICAL, "false"),
            ),
            None,
        ),
        (
            "being deleted",
            world(&worker()).daemon_set(&cni().deleting()),
            None,
        ),
        (
            "two without a pod",
            world(&worker()).daemon_set(&cni()).daemon_set(&proxy),
            Some("DaemonSets kube-system/cni, kube-system/proxy have no pod on this node"),
        ),
        (
            "three without a pod",
            world(&worker())
                .daemon_set(&cni())
                .daemon_set(&proxy)
                .daemon_set(&agent),
            Some(
                "DaemonSets kube-system/agent, kube-system/cni, kube-system/proxy have no pod on this node",
            ),
        ),
        (
            "in a namespace that the class does not cover",
            world(&worker()).daemon_set(&daemon_set("agents/agent").critical()),
            None,
        ),
    ] {
        assert_lack(name, &world, SCHEDULED, expected);
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
