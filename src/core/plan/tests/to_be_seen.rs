//! Rules that name what they wait for: all of it counts, and nothing is withdrawn before everything of it has been seen.

use super::unmet;
use crate::testing::{NodeBuilder, RuleBuilder, World, at, daemon_set, pod, rule, world};

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
