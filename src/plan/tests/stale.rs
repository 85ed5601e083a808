//! While evidence is stale, nothing harmful is done.

use super::{NETWORK, gate, gated, gated_by, met, unmet, writes};
use crate::condition::{ComponentGroup, Watch};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, World, at, csi_node, rule, world};

/// Every watch that tests use.
const ALL: [Watch; 4] = [Watch::Nodes, Watch::CsiNodes, Watch::Rules, CLASS];
const CLASS: Watch = Watch::Pods(ComponentGroup::Class(0));

/// What the plan waits for.
fn stale(world: &World) -> Vec<Watch> {
    world.plan().stale.into_iter().collect()
}

/// The rule `r`, which waits for this condition.
fn waits_for(kind: &str) -> RuleBuilder {
    rule("r").waits_for(kind)
}

const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";
const PODS: &str = "node.gardener.cloud/CriticalPodsReady";
const DRIVER: &str = "csidriver.nodegate.dev/ebs.csi.aws.com";

#[test]
fn only_harmful_changes_wait_for_what_is_stale() {
    let bootstrap = || gate("r").bootstrap_only();
    #[rustfmt::skip]
    let cases = [
        ("release", gated_by(met(), "r"), gate("r"), true),
        ("release for good", gated_by(met(), "r"), bootstrap(), true),
        ("record a completion", met(), bootstrap(), true),
        ("gate a node in use", unmet(), gate("r"), true),
        ("hold", gated_by(unmet(), "r"), gate("r"), false),
        ("leave released", met(), gate("r"), false),
        ("clean up after a rule", gated_by(unmet(), "r"), gate("r").deleting(), true),
        ("clean up a node that was relabelled", gated_by(unmet(), "r"), gate("r").selects("pool", "other"), true),
        ("count for a dry run", gated_by(met(), "r"), gate("r").dry_run(), false),
    ];
    for (name, node, rule, waits) in cases {
        let certain = world(&node).rule(&rule);
        let unsure = certain.clone().with_stale(&ALL);
        assert_eq!(writes(&unsure), [""; 0], "{name}: stale");
        assert_eq!(!unsure.plan().stale.is_empty(), waits, "{name}: waits");
        assert_eq!(!writes(&certain).is_empty(), waits, "{name}: certain");
    }
}

#[test]
fn a_new_node_is_gated_whatever_is_stale() {
    for rule in [gate("r"), gate("r").bootstrap_only()] {
        let new = world(&unmet()).rule(&rule).joined(at(10));
        let unsure = new.clone().with_stale(&ALL);
        assert_eq!(writes(&unsure), writes(&new));
        assert!(unsure.plan().stale.is_empty());
        let later = unsure.now(at(16));
        assert_eq!(writes(&later), [""; 0], "pods may have come by then");
    }
}

#[test]
fn a_change_waits_only_for_what_the_rule_goes_by() {
    let gated = |node: NodeBuilder| gated_by(node, "r");
    let with_driver = csi_node("worker-1").driver("ebs.csi.aws.com");
    #[rustfmt::skip]
    let cases = [
        ("the Node's own", world(&gated(met())).rule(&gate("r")), &[CLASS, Watch::CsiNodes][..], &[][..]),
        ("nodes", world(&gated(met())).rule(&gate("r")), &[Watch::Nodes], &[Watch::Nodes]),
        ("rules", world(&gated(met())).rule(&gate("r")), &[Watch::Rules], &[Watch::Rules]),
        (
            "a class",
            world(&gated(unmet())).rule(&waits_for(COMPONENTS)),
            &[Watch::CsiNodes, CLASS, Watch::Rules],
            &[Watch::CsiNodes, CLASS, Watch::Rules],
        ),
        ("a question that asks no CSINode", world(&gated(unmet())).rule(&waits_for(PODS)), &[CLASS, Watch::CsiNodes][..], &[CLASS]),
        (
            "another class",
            world(&gated(unmet())).rule(&waits_for(PODS)),
            &[
                Watch::Pods(ComponentGroup::Class(1)),
                Watch::Pods(ComponentGroup::Named(0)),
            ],
            &[],
        ),
        (
            "a driver",
            world(&gated(unmet()))
                .csi_node(&with_driver)
                .rule(&waits_for(DRIVER)),
            &[CLASS, Watch::CsiNodes][..],
            &[Watch::CsiNodes],
        ),
    ];
    for (name, world, watches, expected) in cases {
        assert_eq!(stale(&world.with_stale(watches)), expected, "{name}");
    }
}

#[test]
fn a_silent_reporter_gates_a_node_once_the_nodes_are_known_as_of_when_its_heartbeat_was_due() {
    let silent: World = world(&met().condition_with(serde_json::json!({
        "type": "Other", "status": "True",
    })))
    .rule(&gate("r").nodegate("heartbeatTimeout: 10m"))
    .now(at(610));
    let early = silent.clone().nodes_as_of(at(599));
    assert_eq!(
        writes(&early),
        [""; 0],
        "{NETWORK} has not been written for long"
    );
    assert_eq!(stale(&early), [Watch::Nodes]);
    let due = silent.clone().nodes_as_of(at(600));
    assert_eq!(due.new_taints().map(|taints| taints.len()), Some(1));
    let unsure = silent.with_stale(&[Watch::Nodes]);
    assert!(
        unsure.plan().outcomes[0].met,
        "while nodes cannot be seen, nobody's silence means anything"
    );
}

#[test]
fn a_rule_is_not_let_go_while_a_clean_up_waits() {
    for node in [gated_by(unmet(), "r"), gated(unmet())] {
        let deleting = world(&node)
            .rule(&gate("r").deleting())
            .with_stale(&[Watch::Rules]);
        assert!(
            deleting.write().annotations.is_empty(),
            "what says whose the taint is stays with it"
        );
        assert_eq!(stale(&deleting), [Watch::Rules]);
        assert!(deleting.plan().awaits_evidence(&deleting.rules()[0]));
    }
}

#[test]
fn a_deleted_rule_does_not_wait_for_what_another_one_goes_by() {
    const OTHER: &str = "readiness.k8s.io/other";
    let node = unmet()
        .completed("gone-uid")
        .taint(OTHER, "NoSchedule")
        .owned_by("r", OTHER, "NoSchedule");
    let world = world(&node)
        .rule(&gate("gone").bootstrap_only().deleting())
        .rule(&waits_for(PODS).taint(OTHER, "NoSchedule"))
        .with_stale(&[CLASS]);
    assert_eq!(stale(&world), [CLASS]);
    assert_eq!(writes(&world), ["-bootstrap-completed-gone-uid"]);
    let clean = world.carried_out();
    let gone = clean.rules().iter().find(|it| it.deleting).unwrap();
    assert!(!clean.plan().stale.is_empty());
    let plan = clean.plan();
    assert!(!plan.awaits_evidence(gone) && plan.writes_for(gone).next().is_none());
}
