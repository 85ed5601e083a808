//! Effects of time on a node: silent reporters, reboots, grace periods, and waits for the disruption guard.

use serde_json::json;

use super::{NETWORK, gate, gated_by, writes};
use crate::plan::{ConditionOutcome, Decision, Standing, WaitReason};
use crate::testing::{
    Builder, NodeBuilder, RuleBuilder, World, at, csi_node, daemon_set, node, pod, world,
};

const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";
const GATED: &[&str] = &["+gate:NoSchedule", "+taint-added-by-r-uid"];
const RELEASED: &[&str] = &["-gate:NoSchedule", "-taint-added-by-r-uid"];

/// A node whose network condition has had this status since `since`, and was last written at `heartbeat`.
fn network(status: &str, since: i64, heartbeat: i64) -> NodeBuilder {
    node("worker-1").condition_with(json!({
        "type": NETWORK, "status": status, "lastTransitionTime": at(since), "lastHeartbeatTime": at(heartbeat),
    }))
}

/// A world with this node and rule; the node was first seen [`at`]`(0)`.
fn watched(node: &NodeBuilder, rule: &RuleBuilder) -> World {
    world(node).rule(rule).sees(node, at(0))
}

fn why(world: &World) -> String {
    let plan = world.plan();
    let unmet = plan.outcomes[0].unmet();
    unmet
        .map(ConditionOutcome::why)
        .collect::<Vec<_>>()
        .join("; ")
}

fn decision(world: &World) -> Decision {
    match world.plan().outcomes[0].standing {
        Standing::Governs(decision) | Standing::DryRun(decision) => decision,
        Standing::Conflicted { .. } => panic!("there is one rule"),
    }
}

#[test]
fn silence_is_counted_from_the_first_sight_whatever_the_clock_of_the_reporter_says() {
    let rule = gate("r").nodegate("heartbeatTimeout: 10m");
    let old = network("True", -9000, -9000);
    let world = world(&old).rule(&rule).restarted(&old, at(1000));
    assert_eq!(writes(&world.clone().now(at(1599))), [""; 0]);
    let silent = world.now(at(1600));
    assert_eq!(writes(&silent), GATED);
    assert_eq!(
        why(&silent),
        "NetworkReady is Unknown, must be True: HeartbeatMissed: no heartbeat has been seen for 10m"
    );
}

#[test]
fn a_silent_reporters_old_status_does_not_release_a_held_node() {
    let rule = gate("r").nodegate("heartbeatTimeout: 10m");
    let gated = |node: NodeBuilder| gated_by(node, "r");
    for (name, wrote, expected) in [
        ("long ago", -9000, &[][..]),
        ("recently", 900, RELEASED),
        ("a little in the future, by our clock", 1100, RELEASED),
        ("tomorrow, by our clock", 90_000, &[]),
    ] {
        let node = gated(network("True", -9000, wrote));
        let found = world(&node).rule(&rule).restarted(&node, at(1000));
        assert_eq!(writes(&found.clone().now(at(1001))), expected, "{name}");
        let beats = gated(network("True", -9000, wrote + 50));
        let heard = found.sees(&beats, at(1100)).now(at(1101));
        assert_eq!(writes(&heard), RELEASED, "{name}, and it beats");
    }
}

#[test]
fn silence_of_a_type_that_nobody_has_renewed_means_nothing() {
    let rule = gate("r").nodegate("heartbeatTimeout: 10m");
    let old = network("True", -9000, -9000);
    let world = watched(&old, &rule).never_renewed().now(at(90_000));
    assert_eq!(writes(&world), [""; 0]);
    assert_eq!(world.plan().recheck, None);
    let held = gated_by(old, "r");
    let held = self::world(&held).rule(&rule).never_renewed();
    assert_eq!(
        writes(&held.restarted(&gated_by(network("True", -9000, -9000), "r"), at(1000))),
        RELEASED
    );
}

/// A node in this boot whose network condition was last written at `heartbeat`.
fn booted(id: &str, heartbeat: i64) -> NodeBuilder {
    network("True", 0, heartbeat).boot_id(id)
}

#[test]
fn a_node_that_reboots_is_gated_again_until_there_is_new_evidence() {
    let rule = gate("r").bootstrap_only().nodegate("regateOn: [Reboot]");
    let completed = |boot: &str, node: NodeBuilder| {
        let value = format!(r#"{{"rule-name":"r","boot-id":"{boot}"}}"#);
        node.annotation("readiness.k8s.io/bootstrap-completed-r-uid", &value)
    };
    let released = world(&booted("a", 5)).rule(&rule).now(at(20));
    assert_eq!(
        released.write().annotations["readiness.k8s.io/bootstrap-completed-r-uid"].as_deref(),
        Some(r#"{"rule-name":"r","boot-id":"a"}"#)
    );
    let running = watched(&completed("a", booted("a", 5)), &rule);
    assert_eq!(writes(&running), [""; 0]);

    let rebooted = running
        .sees(&completed("a", booted("b", 5)), at(100))
        .now(at(101));
    assert_eq!(writes(&rebooted), GATED);
    assert_eq!(rebooted.write().relied_on.len(), 2);
    assert_eq!(
        why(&rebooted),
        "NetworkReady is Unknown, must be True: WrittenBeforeReboot: it has not been reported since the node rebooted"
    );
    assert_eq!(
        rebooted.plan().recheck,
        Some(at(460)),
        "six minutes after: it may never be written again"
    );

    let gated = |node| gated_by(completed("a", node), "r");
    let waiting = rebooted.sees(&gated(booted("b", 5)), at(102)).now(at(110));
    assert_eq!(writes(&waiting), [""; 0]);
    let release = [RELEASED[0], RELEASED[1], "+bootstrap-completed-r-uid"];
    let renewed = waiting
        .clone()
        .sees(&gated(booted("b", 111)), at(111))
        .now(at(111));
    assert_eq!(writes(&renewed), release);
    assert_eq!(writes(&waiting.clone().now(at(459))), [""; 0]);
    let old_enough = waiting.now(at(460));
    assert_eq!(writes(&old_enough), release);
    assert_eq!(
        old_enough.write().annotations["readiness.k8s.io/bootstrap-completed-r-uid"].as_deref(),
        Some(r#"{"rule-name":"r","boot-id":"b"}"#)
    );

    let plain = world(&completed("a", booted("b", 5))).rule(&gate("r").bootstrap_only());
    assert_eq!(
        writes(&plain),
        [""; 0],
        "unless the rule does not ask for it"
    );
}

#[test]
fn a_reboot_while_no_controller_ran_is_noticed() {
    let rule = gate("r").bootstrap_only().nodegate("regateOn: [Reboot]");
    let node = booted("b", 5).annotation(
        "readiness.k8s.io/bootstrap-completed-r-uid",
        r#"{"rule-name":"r","boot-id":"a"}"#,
    );
    let world = world(&node)
        .rule(&rule)
        .restarted(&node, at(1000))
        .now(at(1000));
    assert_eq!(writes(&world), GATED);
}

#[test]
fn a_completion_that_names_no_boot_counts_for_the_boot_in_which_it_is_found() {
    let rule = gate("r").bootstrap_only().nodegate("regateOn: [Reboot]");
    for key in ["r-uid", "r"] {
        let node = network("False", 0, 0).boot_id("a").completed(key);
        let world = world(&node).rule(&rule);
        assert_eq!(writes(&world), ["+bootstrap-completed-r-uid"]);
        let stamped = world.carried_out();
        assert_eq!(writes(&stamped), [""; 0]);
        let rebooted = node.boot_id("b").annotation(
            "readiness.k8s.io/bootstrap-completed-r-uid",
            stamped
                .node
                .annotation("readiness.k8s.io/bootstrap-completed-r-uid")
                .unwrap(),
        );
        assert_eq!(writes(&stamped.sees(&rebooted, at(50))), GATED, "{key}");
    }
}

#[test]
fn a_pod_that_was_ready_before_the_reboot_does_not_count_for_a_minute() {
    let cni = daemon_set("kube-system/cni").critical();
    let rule = crate::testing::rule("r")
        .waits_for(COMPONENTS)
        .bootstrap_only()
        .nodegate("regateOn: [Reboot]");
    let with_pod_ready_since = |seconds| {
        let node = |boot: &str| node("worker-1").boot_id(boot);
        world(&node("a"))
            .rule(&rule)
            .daemon_set(&cni)
            .pod(&pod("kube-system/cni-1").of(&cni).ready_since(at(seconds)))
            .sees(&node("b"), at(1000))
    };
    let old = with_pod_ready_since(500).now(at(1059));
    assert_eq!(
        why(&old),
        "pod kube-system/cni-1 has been Ready since before this node rebooted"
    );
    assert_eq!(old.plan().recheck, Some(at(1060)));
    assert_eq!(why(&old.now(at(1060))), "");
    assert_eq!(why(&with_pod_ready_since(1000).now(at(1001))), "");
}

const CSI_DRIVER: &str = "csidriver.nodegate.dev/disk.example.com";

/// A node that rebooted [`at`]`(1000)` with a driver that was registered before, under a rule that waits for this condition
/// after each reboot. The driver's pod has been Ready since `pod_ready_since`.
fn rebooted_with_a_driver(condition: &str, pod_ready_since: Option<i64>) -> World {
    let rule = crate::testing::rule("r")
        .waits_for(condition)
        .bootstrap_only()
        .nodegate("regateOn: [Reboot]");
    let node = |boot: &str| node("worker-1").boot_id(boot);
    let registered = csi_node("worker-1").driver("disk.example.com");
    let mut world = world(&node("a")).rule(&rule).csi_node(&registered);
    if let Some(since) = pod_ready_since {
        let driver = pod("kube-system/disk").critical();
        let driver = driver.waits_for_driver("disk.example.com");
        world = world.pod(&driver.ready_since(at(since)));
    }
    world.sees(&node("b"), at(1000))
}

#[test]
fn a_driver_that_was_registered_before_the_reboot_is_believed_once_there_is_new_evidence() {
    const DOUBT: &str = "CSI driver disk.example.com was registered before this node rebooted";
    let without_a_pod = rebooted_with_a_driver(CSI_DRIVER, None);
    assert_eq!(why(&without_a_pod.clone().now(at(1001))), DOUBT);
    let bound = at(1360);
    assert_eq!(
        without_a_pod.clone().now(at(1001)).plan().recheck,
        Some(bound)
    );
    assert_eq!(why(&without_a_pod.clone().now(at(1359))), DOUBT);
    assert_eq!(why(&without_a_pod.clone().now(bound)), "");

    let gone = without_a_pod.now(at(1002)).csi_node(&csi_node("worker-1"));
    assert_eq!(
        why(&gone),
        "CSI driver disk.example.com is not registered on this node"
    );
    let again = gone.csi_node(&csi_node("worker-1").driver("disk.example.com"));
    assert_eq!(why(&again), "", "it was seen to be registered");
}

#[test]
fn a_driver_whose_own_pod_is_ready_for_some_seconds_since_the_reboot_is_believed() {
    const CLASS: &str = "node.gardener.cloud/CSIDriversRegistered";
    const DOUBT: &str = "CSI driver disk.example.com was registered before this node rebooted";
    for kind in [CSI_DRIVER, CLASS] {
        // The kubelet may still remove the driver and register it again.
        let ready = rebooted_with_a_driver(kind, Some(1003)).now(at(1004));
        assert_eq!(why(&ready), DOUBT, "{kind}");
        assert_eq!(ready.plan().recheck, Some(at(1008)), "{kind}");
        assert_eq!(why(&ready.now(at(1008))), "", "{kind}");
        let old = rebooted_with_a_driver(kind, Some(500)).now(at(1059));
        assert_eq!(why(&old), DOUBT, "{kind}");
        assert_eq!(old.plan().recheck, Some(at(1060)), "as the pod is");
        assert_eq!(why(&old.now(at(1060))), "", "{kind}");
    }
    let not_ready = |seconds| {
        let driver = pod("kube-system/disk").critical();
        rebooted_with_a_driver(CSI_DRIVER, None)
            .pod(&driver.waits_for_driver("disk.example.com"))
            .now(at(seconds))
    };
    assert_eq!(why(&not_ready(1359)), DOUBT, "also after a minute");
    assert_eq!(why(&not_ready(1360)), "");
}

#[test]
fn a_node_in_use_waits_for_the_disruption_guard_after_the_grace_period() {
    let careful = gate("r").nodegate("{gracePeriod: 2m, disruption: {}}");
    let world = world(&network("False", 0, 0)).rule(&careful);
    assert!(matches!(
        decision(&world.clone().may_gate("r").now(at(119))),
        Decision::Wait(WaitReason::Grace { .. })
    ));
    assert!(!world.clone().now(at(119)).plan().waits_for_a_guard());
    let held = world.clone().now(at(120));
    assert_eq!(decision(&held), Decision::Wait(WaitReason::Disruption));
    assert!(held.plan().waits_for_a_guard());
    let granted = world.may_gate("r").now(at(120));
    assert_eq!(decision(&granted), Decision::Gate);
    assert!(!granted.plan().waits_for_a_guard());
}

#[test]
fn a_node_is_released_once_its_conditions_have_been_met_for_the_settle_period() {
    let held = |since| gated_by(network("True", since, since), "r");
    for mode in ["continuous", "bootstrap-only"] {
        let rule = gate("r").spec(&format!("enforcementMode: {mode}"));
        let rule = rule.nodegate("settlePeriod: 1m");
        let release = |world: &World| {
            let plan = world.plan();
            let outcome = &plan.outcomes[0];
            let is_released = outcome.governs() == Some(Decision::Release);
            assert_eq!(is_released, outcome.settles.is_none(), "{mode}");
            assert!(is_released || plan.recheck == outcome.settles, "{mode}");
            outcome.settles
        };
        let unseen = world(&held(100)).rule(&rule).restarted(&held(100), at(150));
        assert_eq!(
            release(&unseen.clone().now(at(150))),
            Some(at(160)),
            "{mode}, by the node"
        );
        assert_eq!(release(&unseen.clone().now(at(160))), None);

        let unmet = gated_by(network("False", 100, 100), "r");
        let seen = watched(&unmet, &rule).evaluated(at(100));
        let met = seen.sees(&held(90), at(120)).evaluated(at(120));
        assert_eq!(
            release(&met),
            Some(at(180)),
            "{mode}, from when it was seen to turn"
        );
        let flapped = met.clone().sees(&unmet, at(130)).evaluated(at(130));
        let flapped = flapped.sees(&held(90), at(131)).evaluated(at(131));
        assert_eq!(
            release(&flapped.now(at(180))),
            Some(at(191)),
            "{mode}, after a break"
        );
        let unseen_break = met.sees(&held(140), at(141)).evaluated(at(141));
        assert_eq!(
            release(&unseen_break.now(at(199))),
            Some(at(200)),
            "{mode}, after one between two views"
        );
    }
}

#[test]
fn a_bootstrap_completes_once_its_conditions_have_been_met_for_the_settle_period() {
    let rule = gate("r").bootstrap_only().nodegate("settlePeriod: 1m");
    let met = network("True", 100, 100);
    let world = world(&met).rule(&rule).restarted(&met, at(150));
    assert_eq!(writes(&world.clone().now(at(159))), [""; 0]);
    assert_eq!(
        writes(&world.clone().now(at(160))),
        ["+bootstrap-completed-r-uid"]
    );
    let unmet = network("False", 155, 155);
    let lost = world.evaluated(at(151)).sees(&unmet, at(155)).now(at(156));
    assert_eq!(writes(&lost), GATED, "it is not completed yet");
}
