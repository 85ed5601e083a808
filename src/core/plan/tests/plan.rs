//! The decision table, as it takes effect on a node.

use super::{NETWORK, assert_writes, gate, gated, met, unmet};
use crate::testing::{GATE, NodeBuilder, World, csi_node, daemon_set, pod, rule, world};

#[test]
fn a_remove_only_rule_never_gates_a_node() {
    #[rustfmt::skip]
    let cases = [
        ("unmet, absent: nothing", unmet(), gate("r").remove_only(), &[][..]),
        ("unmet, present: hold", gated(unmet()), gate("r").remove_only(), &[]),
        ("met, present: release", gated(met()), gate("r").remove_only(), &["-gate:NoSchedule"]),
        (
            "remove-only bootstrap, met, present: release and complete",
            gated(met()),
            gate("r").bootstrap_only().remove_only(),
            &["-gate:NoSchedule", "+bootstrap-completed-r-uid"],
        ),
        ("remove-only bootstrap, met, absent: nothing", met(), gate("r").bootstrap_only().remove_only(), &[]),
    ];
    for (name, node, rule, expected) in cases {
        assert_writes(name, &node, &[rule], expected);
    }
}

#[test]
fn a_nodes_size_counts_what_there_may_be_many_of() {
    let of = |world: &World| world.state().size(world.cluster());
    let bare = world(&unmet());
    let critical = || pod("kube-system/a").critical();
    let agent = daemon_set("kube-system/agent").critical();
    #[rustfmt::skip]
    let cases = [
        ("conditions", world(&met()), 1),
        ("taints", world(&gated(unmet())), 1),
        ("annotations", world(&unmet().completed("r")), 1),
        ("pods", bare.clone().pod(&critical()), 1),
        ("waits for CSI drivers", bare.clone().pod(&critical().waits_for_driver("a")), 2),
        ("CSI drivers", bare.clone().csi_node(&csi_node("worker-1").driver("a")), 1),
        ("DaemonSets", bare.clone().daemon_set(&agent), 1),
    ];
    for (name, more, count) in cases {
        assert_eq!(of(&more), of(&bare) + count, "{name}");
    }
}

#[test]
fn a_taint_counts_by_key_and_effect_whatever_its_value() {
    let rule =
        gate("r").spec("taint: {key: readiness.k8s.io/gate, value: mine, effect: NoSchedule}");
    let theirs = |node: NodeBuilder| node.taint_with(GATE, "theirs", "NoSchedule");
    let rules = std::slice::from_ref(&rule);
    let adopted = &["+taint-added-by-r-uid"];
    assert_writes("held as it is", &theirs(unmet()), rules, adopted);
    assert_writes("removed", &theirs(met()), rules, &["-gate:NoSchedule"]);
    let added = world(&unmet()).rule(&rule);
    assert_eq!(added.new_taints().unwrap()[0].value, "mine");
    let other_effect = unmet().taint(GATE, "NoExecute");
    assert_writes(
        "another effect is another taint",
        &other_effect,
        rules,
        &["+gate:NoSchedule", "+taint-added-by-r-uid"],
    );
}

#[test]
fn a_held_node_says_what_its_critical_components_lack() {
    let components = "node.gardener.cloud/CriticalComponentsReady";
    let cni = daemon_set("kube-system/cni")
        .critical()
        .toleration("{operator: Exists}");
    let cni_pod = || pod("kube-system/cni-1").of(&cni);
    let waits = || {
        let waits = rule("r").waits_for(NETWORK).waits_for(components);
        waits.bootstrap_only()
    };
    let base = || world(&met()).daemon_set(&cni);
    let waiting = |message: &str| Some(message.to_owned());
    let no_pod = || waiting("DaemonSet kube-system/cni has no pod on this node");
    #[rustfmt::skip]
    let cases = [
        ("no pod", base().rule(&waits()), no_pod()),
        ("not Ready", base().pod(&cni_pod()).rule(&waits()), waiting("pod kube-system/cni-1 is not Ready")),
        (
            "no driver",
            base()
                .pod(&cni_pod().ready().waits_for_driver("a.csi"))
                .rule(&waits()),
            waiting(
                "CSI driver a.csi is not registered on this node",
            ),
        ),
        ("ready", base().pod(&cni_pod().ready()).rule(&waits()), None),
        ("no rule asks", base().rule(&gate("r")), None),
        ("a rule that waits for something else", base().rule(&rule("r").waits_for("Other")), None),
        ("a dry run", base().rule(&waits().dry_run()), None),
        ("remove-only, absent", base().rule(&waits().remove_only()), None),
        ("remove-only, present", world(&gated(met())).daemon_set(&cni).rule(&waits().remove_only()), no_pod()),
    ];
    for (name, world, expected) in cases {
        let plan = world.plan();
        let waiting = plan.missing_parts().next().map(ToString::to_string);
        assert_eq!(waiting, expected, "{name}");
    }
    let released = world(&gated(met())).rule(&waits());
    assert!(released.write().changes[0].components_ready);
    let other = world(&gated(met())).rule(&gate("r"));
    assert!(!other.write().changes[0].components_ready);
}
