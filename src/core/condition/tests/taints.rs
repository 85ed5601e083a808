//! Which taints keep a `DaemonSet` off a node, and which are ignored because they will go.

use super::{CNI_MISSING, COMPONENTS, READY, SCHEDULED, assert_lack, cni, cni_pod, worker};
use crate::testing::{Builder, GATE, RuleBuilder, configured_world, rule, world};

#[test]
fn a_taint_that_will_go_is_ignored() {
    let lifecycle = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
        "node.cloudprovider.kubernetes.io/uninitialized",
    ];
    let others = [
        "karpenter.sh/unregistered",
        "karpenter.sh/disrupted",
        "ToBeDeletedByClusterAutoscaler",
        "startup-taint.cluster-autoscaler.kubernetes.io/gpu",
        "node.cluster.x-k8s.io/uninitialized",
        "node.kubernetes.io/out-of-service",
        "medik8s.io/remediation",
        "aws-node-termination-handler/spot-itn",
        "node.gardener.cloud/critical-components-not-ready",
        "node.cilium.io/agent-not-ready",
        "cni.istio.io/not-ready",
        "example.com/not-ready-taint",
    ];
    for key in lifecycle.into_iter().chain(others) {
        for effect in ["NoSchedule", "NoExecute"] {
            let world = world(&worker().taint(key, effect)).daemon_set(&cni());
            assert_lack(key, &world, SCHEDULED, Some(CNI_MISSING));
        }
    }
}

#[test]
fn a_configured_taint_may_be_the_beginning_or_the_end_of_keys() {
    let config = "passingTaints: [example.com/startup-*, '*/starting', example.com/exact]";
    let only = format!("{config}\npassingTaintsOnly: true");
    for (key, expected) in [
        ("example.com/startup-network", [true, true]),
        ("example.com/startup-", [true, true]),
        ("example.com/start", [false, false]),
        ("any.example.com/starting", [true, true]),
        ("any.example.com/not-starting", [false, false]),
        ("example.com/exact", [true, true]),
        ("example.com/exactly", [false, false]),
        ("node.cilium.io/agent-not-ready", [true, false]),
        ("node.kubernetes.io/not-ready", [true, true]),
    ] {
        for (config, expected) in [config, &only].into_iter().zip(expected) {
            let node = worker().taint(key, "NoSchedule");
            let world = configured_world(&node, config).daemon_set(&cni());
            assert_lack(key, &world, SCHEDULED, expected.then_some(CNI_MISSING));
        }
    }
}

#[test]
fn a_class_says_what_it_leaves_out() {
    let node = worker().taint("dedicated", "NoSchedule");
    let control_plane = node
        .clone()
        .taint("node-role.kubernetes.io/control-plane", "NoSchedule");
    #[rustfmt::skip]
    let cases = [
        (node, "no critical component is meant for this node; left out: DaemonSet kube-system/cni does not tolerate taint dedicated"),
        (control_plane, "no critical component is meant for this node"),
    ];
    for (node, expected) in cases {
        let answer = world(&node).daemon_set(&cni()).condition(COMPONENTS);
        assert_eq!(answer.unwrap().message, expected);
    }
}

#[test]
fn a_taint_that_a_rule_manages_is_ignored() {
    let network = || rule("network").waits_for("NetworkReady");
    let elsewhere = |rule: RuleBuilder| rule.selects("pool", "other");
    let gated = || worker().taint(GATE, "NoSchedule");
    #[rustfmt::skip]
    let cases = [
        ("managed here", gated(), network(), true),
        ("managed on other nodes", gated(), elsewhere(network()), true),
        ("only released", gated(), network().remove_only(), true),
        ("of a rule that is being deleted", gated(), network().deleting(), true),
        ("of a dry run", gated(), network().dry_run(), false),
        ("of a rule that cannot act yet", gated(), network().without_finalizer(), true),
        ("of a rule that cannot be used", gated(), rule("broken"), false),
        ("with another effect", worker().taint(GATE, "NoExecute"), network(), false),
        ("with another value", worker().taint_with(GATE, "other", "NoSchedule"), network(), true),
    ];
    for (name, node, rule, expected) in cases {
        let world = world(&node).daemon_set(&cni()).rule(&rule);
        assert_lack(name, &world, SCHEDULED, expected.then_some(CNI_MISSING));
    }
}

#[test]
fn a_taint_left_by_a_rule_that_is_gone_is_ignored() {
    let node = worker()
        .dated_taint("readiness.k8s.io/old", "NoSchedule")
        .owned_by("old", "readiness.k8s.io/old", "NoSchedule");
    let world = world(&node).daemon_set(&cni());
    assert_lack("orphan", &world, SCHEDULED, Some(CNI_MISSING));
}

#[test]
fn an_unready_pod_that_the_gate_evicts_is_not_waited_for_since_it_comes_back_once_the_node_is_released()
 {
    let tolerant = || cni().toleration(&format!("{{key: {GATE}, operator: Exists}}"));
    let unready = Some("pod kube-system/cni-1 is not Ready");
    for (name, effect, daemon_set, expected) in [
        ("evicted", "NoExecute", cni(), None),
        ("tolerates the gate", "NoExecute", tolerant(), unready),
        ("stays where it is", "NoSchedule", cni(), unready),
    ] {
        let world = world(&worker())
            .daemon_set(&daemon_set)
            .pod(&cni_pod())
            .rule(&rule("gate").waits_for(COMPONENTS).taint(GATE, effect));
        assert_lack(name, &world, READY, expected);
        assert_lack(name, &world, COMPONENTS, expected);
    }
}
