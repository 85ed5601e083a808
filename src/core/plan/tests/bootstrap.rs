//! When a bootstrap is complete.

use super::{gate, gated, gated_by, met, unmet, writes};
use crate::plan::Standing;
use crate::testing::{Builder, DaemonSetBuilder, at, daemon_set, rule, world};

#[test]
fn a_daemon_set_that_selects_by_a_late_label_is_waited_for() {
    let csi = daemon_set("kube-system/csi")
        .critical()
        .toleration("{operator: Exists}")
        .node_selector("topology.kubernetes.io/zone", "a");
    let rule = rule("r")
        .waits_for("node.gardener.cloud/CriticalComponentsReady")
        .bootstrap_only();
    let writes_under = |taint: &str, csi: &DaemonSetBuilder| {
        let early = gated_by(unmet(), "r").taint(taint, "NoSchedule");
        writes(&world(&early).daemon_set(csi).rule(&rule))
    };
    let released = ["-gate:NoSchedule", "-taint-added-by-r-uid"];
    let elsewhere = csi.clone().pod_spec("nodeName: another");
    for (taint, daemon_set, expected) in [
        ("node.cluster.x-k8s.io/uninitialized", &csi, &[][..]),
        ("karpenter.sh/unregistered", &csi, &[]),
        ("karpenter.sh/unregistered", &elsewhere, &released),
        // Its controller may have to run on the node to label it.
        (
            "node.cloudprovider.kubernetes.io/uninitialized",
            &csi,
            &released,
        ),
    ] {
        assert_eq!(writes_under(taint, daemon_set), expected, "{taint}");
    }
    let labelled = unmet().label("topology.kubernetes.io/zone", "a");
    let second = world(&labelled).daemon_set(&csi).rule(&rule);
    assert_eq!(
        writes(&second),
        ["+gate:NoSchedule", "+taint-added-by-r-uid"]
    );
}

#[test]
fn a_node_that_was_there_before_the_rule_is_left_alone_where_the_rule_says_so() {
    let leaves = || {
        gate("r")
            .bootstrap_only()
            .nodegate("existingNodes: Leave")
            .created(at(100))
    };
    let gates: &[&str] = &["+gate:NoSchedule", "+taint-added-by-r-uid"];
    #[rustfmt::skip]
    let cases = [
        ("older, unmet", leaves(), unmet(), &[][..]),
        ("older, met", leaves(), met(), &[]),
        ("older, gated by somebody, met", leaves(), gated(met()), &["-gate:NoSchedule"]),
        ("older, in the same second", leaves(), unmet().created(at(100)), gates),
        ("newer", leaves(), unmet().created(at(101)), gates),
        ("newer, met", leaves(), met().created(at(101)), &["+bootstrap-completed-r-uid"]),
        ("older, and the rule gates all", leaves().nodegate("existingNodes: Gate"), unmet(), gates),
        ("after a reboot", leaves().nodegate("regateOn: [Reboot]"), unmet().boot_id("another"), &[]),
        ("a continuous rule leaves nobody alone", leaves().spec("enforcementMode: continuous"), unmet(), gates),
    ];
    for (name, rule, node, expected) in cases {
        let world = world(&node).rule(&rule);
        assert_eq!(writes(&world), expected, "{name}");
        let held = world.plan().outcomes[0].standing.clone();
        let is_held = matches!(held, Standing::Governs(decision) if decision.holds());
        assert_eq!(is_held, expected == gates, "{name}");
    }
    let repairs = leaves().nodegate("repair: {readinessTTL: 15m, action: Release}");
    let world = world(&gated_by(unmet(), "r")).rule(&repairs);
    assert_eq!(
        world.plan().outcomes[0].deadline,
        None,
        "it is not repaired"
    );
}
