//! Rules that wait for a class, a CSI driver or what they name do nothing harmful before everything of it has been seen.

use super::{NETWORK, gated_by, met, unmet, writes};
use crate::condition::{ComponentGroup, Watch};
use crate::testing::{NodeBuilder, RuleBuilder, World, at, csi_node, daemon_set, pod, rule, world};

const AGENT: &str = "daemonset.nodegate.dev/tools.agent";

fn agent() -> RuleBuilder {
    rule("r").waits_for(AGENT)
}

/// A node on which the `DaemonSet` is ready.
fn ready(node: &NodeBuilder) -> World {
    let agent = daemon_set("tools/agent").selecting("app", "agent");
    let agent = agent.toleration("{operator: Exists}");
    world(node)
        .naming("tools/agent")
        .daemon_set(&agent)
        .pod(&pod("tools/a").of(&agent).ready())
}

/// A node on which it is not ready.
fn unready(node: &NodeBuilder) -> World {
    world(node).naming("tools/agent")
}

#[test]
fn a_released_node_stays_released_and_a_held_one_held() {
    let bootstrap = || agent().bootstrap_only();
    for (name, world, rule) in [
        ("release", ready(&gated_by(unmet(), "r")), agent()),
        (
            "release for good",
            ready(&gated_by(unmet(), "r")),
            bootstrap(),
        ),
        ("record a completion", ready(&unmet()), bootstrap()),
        ("gate a node in use", unready(&unmet()), bootstrap()),
        (
            "release for the opposite",
            unready(&gated_by(unmet(), "r")),
            rule("r").spec(&format!(
                "conditions: [{{type: {AGENT}, requiredStatus: Unknown}}]"
            )),
        ),
        (
            "put a deadline on record of a node that is not held",
            unready(&unmet()),
            bootstrap().nodegate("repair: {readinessTTL: 15m, action: Release}"),
        ),
    ] {
        let seen = world.rule(&rule);
        if name != "release for the opposite" {
            assert_ne!(writes(&seen), [""; 0], "{name}: once it is seen");
        }
        let unseen = seen.before_it_is_seen();
        assert_eq!(writes(&unseen), [""; 0], "{name}");
    }
}

#[test]
fn a_rule_waits_for_the_first_list_of_each_watch_that_it_depends_on() {
    let class = ComponentGroup::Class(0);
    let of_class = [Watch::DaemonSets(class), Watch::Pods(class)];
    for (kind, watches) in [
        (
            "node.gardener.cloud/CriticalComponentsReady",
            &[of_class[0], of_class[1], Watch::CsiNodes][..],
        ),
        ("node.gardener.cloud/CriticalPodsReady", &of_class),
        ("csidriver.nodegate.dev/d", &[Watch::CsiNodes]),
    ] {
        let held = world(&gated_by(unmet(), "r"))
            .csi_node(&csi_node("worker-1").driver("d"))
            .rule(&rule("r").waits_for(kind));
        assert_ne!(writes(&held), [""; 0], "{kind}");
        for watch in [of_class[0], of_class[1], Watch::CsiNodes] {
            let unseen = held.clone().before_they_list(&[watch]);
            let waits = writes(&unseen).is_empty();
            assert_eq!(waits, watches.contains(&watch), "{kind} {watch:?}");
            let plan = unseen.plan();
            let told = plan.outcomes[0].findings[0].why();
            let expected = format!("the {}s that it depends on", watch.kind());
            assert_eq!(told.contains(&expected), waits, "{told}");
            assert!(plan.conditions.is_empty() || !waits, "nothing is published");
        }
    }
}

#[test]
fn a_rule_that_names_two_waits_for_both() {
    let other = daemon_set("tools/other").selecting("app", "other");
    let other = other.toleration("{operator: Exists}");
    let both = ready(&unmet())
        .naming("tools/other")
        .daemon_set(&other)
        .rule(&agent().waits_for("daemonset.nodegate.dev/tools.other"));
    let is_met = |world: &World| world.plan().outcomes[0].met;
    assert!(!is_met(&both));
    assert!(is_met(&both.pod(&pod("tools/o").of(&other).ready())));
}

#[test]
fn a_node_that_has_only_just_come_is_gated() {
    let world = ready(&unmet()).rule(&agent()).before_it_is_seen();
    assert_ne!(writes(&world.joined(at(10))), [""; 0]);
}

#[test]
fn a_rule_that_waits_for_its_lists_holds_up_no_other() {
    let other = rule("other").taint("readiness.k8s.io/other", "NoSchedule");
    let world = unready(&met())
        .rule(&agent())
        .rule(&other.waits_for(NETWORK).bootstrap_only())
        .before_it_is_seen();
    assert_eq!(writes(&world), ["+bootstrap-completed-other-uid"]);
}

#[test]
fn published_conditions_stay_until_everything_has_been_seen() {
    let seen = ready(&unmet()).rule(&agent());
    let published = seen.plan().conditions.set;
    assert_eq!(
        (published[0].kind, published[0].reason),
        (AGENT, "DaemonSetReady")
    );
    let said = unmet().condition_with(serde_json::json!({
        "type": AGENT, "status": "False", "reason": "DaemonSetPodMissing", "lastTransitionTime": at(50),
    }));
    let unseen = ready(&said).rule(&agent()).before_it_is_seen();
    let plan = unseen.plan();
    assert!(plan.conditions.is_empty(), "{:?}", plan.conditions);
    // If they are still unmet then, the grace period has been running since.
    assert_eq!(plan.outcomes[0].unmet_since(), Some(at(50)));
}

#[test]
fn stale_pods_are_waited_for() {
    let world = ready(&gated_by(unmet(), "r")).rule(&agent());
    let pods = Watch::Pods(world.cluster().named[0].group);
    assert_ne!(writes(&world), [""; 0]);
    let unsure = world.with_stale(&[pods]);
    assert_eq!(writes(&unsure), [""; 0]);
    assert_eq!(unsure.plan().stale, [pods].into());
}

#[test]
fn a_held_taint_says_what_it_waits_for() {
    let gated = gated_by(unmet(), "r");
    let waiting = |world: World| {
        let world = world.rule(&agent());
        world
            .plan()
            .missing_part()
            .map(|(_, detail)| detail.to_string())
    };
    let absent = "there is no DaemonSet tools/agent".to_owned();
    assert_eq!(waiting(unready(&gated)), Some(absent));
    assert_eq!(waiting(unready(&gated).before_it_is_seen()), None);
}
