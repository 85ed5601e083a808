//! `DaemonSet`s that are waited for by name.

use super::{assert_lack, worker};
use crate::testing::{Builder, DaemonSetBuilder, GATE, World, daemon_set, pod, rule, world};

const AGENT: &str = "daemonset.nodegate.dev/tools.agent";

/// A `DaemonSet` without the labels of any class.
fn agent() -> DaemonSetBuilder {
    daemon_set("tools/agent").selecting("app", "agent")
}

fn with(daemon_set: &DaemonSetBuilder) -> World {
    world(&worker())
        .naming("tools/agent")
        .daemon_set(daemon_set)
}

const MISSING: &str = "DaemonSet tools/agent has no pod on this node";
const KEPT_AWAY: &str = "DaemonSet tools/agent does not tolerate the taint dedicated:NoSchedule of this node: add the toleration to its \
                         pod template, or leave such nodes out of the rule's nodeSelector";

#[test]
fn a_named_daemon_set_is_waited_for_where_it_should_run() {
    let elsewhere = agent().node_selector("gpu", "yes");
    let tainted = || worker().taint("dedicated", "NoSchedule");
    let role = || tainted().taint("node-role.kubernetes.io/control-plane", "NoSchedule");
    #[rustfmt::skip]
    let cases = [
        ("another node selector", &elsewhere, worker(), None),
        ("its node selector", &elsewhere, worker().label("gpu", "yes"), Some(MISSING)),
        ("a taint that stays", &agent(), tainted(), Some(KEPT_AWAY)),
        ("the taint of a role", &agent(), role(), None),
    ];
    for (name, daemon_set, node, expected) in cases {
        let world = world(&node).naming("tools/agent").daemon_set(daemon_set);
        assert_lack(name, &world, AGENT, expected);
    }
    let met = with(&elsewhere).condition(AGENT).unwrap();
    assert_eq!(met.reason, "DaemonSetNotMeantForNode");
}

#[test]
fn a_named_daemon_set_that_does_not_tolerate_the_rules_taint_holds_its_node() {
    let gate = rule("gate").waits_for(AGENT);
    let tolerant = agent().toleration(&format!("{{key: {GATE}, operator: Exists}}"));
    let intolerant = "DaemonSet tools/agent does not tolerate the taint readiness.k8s.io/gate:NoSchedule of a rule that waits for it: \
                      add the toleration to its pod template";
    let pod = pod("tools/a").of(&agent());
    for (name, world, expected) in [
        ("shut out", with(&agent()), Some(intolerant)),
        ("not Ready", with(&agent()).pod(&pod), Some(intolerant)),
        ("Ready", with(&agent()).pod(&pod.clone().ready()), None),
        ("tolerates", with(&tolerant), Some(MISSING)),
    ] {
        assert_lack(name, &world.rule(&gate), AGENT, expected);
    }
    let shut_out = with(&agent()).rule(&gate).condition(AGENT).unwrap();
    assert_eq!(shut_out.reason, "DoesNotTolerate");
}
