//! `DaemonSet`s that are waited for by name.

use super::{COMPONENTS, assert_lack, worker};
use crate::condition::Component;
use crate::testing::{
    Builder, DaemonSetBuilder, GATE, PodBuilder, World, daemon_set, pod, rule, world,
};

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

#[test]
fn a_pod_that_nothing_controls_counts_for_the_daemon_set_that_will_adopt_it() {
    const UNREADY: &str = "pod tools/a is not Ready";
    let orphan = |key: &str| pod(key).label("app", "agent");
    #[rustfmt::skip]
    let cases = [
        ("Ready", orphan("tools/a").ready(), None),
        ("not Ready", orphan("tools/a"), Some(UNREADY)),
        ("terminating", orphan("tools/a").ready().deleting(), Some(MISSING)),
        ("with other labels", pod("tools/a").label("app", "other").ready(), Some(MISSING)),
        ("in another namespace", orphan("other/a").ready(), Some(MISSING)),
        ("controlled by another", pod("tools/a").of(&daemon_set("tools/b").selecting("app", "agent")).ready(), Some(MISSING)),
    ];
    for (name, pod, expected) in cases {
        let pod: &PodBuilder = &pod;
        assert_lack(name, &with(&agent()).pod(pod), AGENT, expected);
        let all = world(&worker()).waited_for(Component::AllDaemonSets);
        let all = all.daemon_set(&agent()).pod(pod);
        assert_lack(name, &all, "daemonsets.nodegate.dev/all", expected);
    }
    let cni = daemon_set("kube-system/cni")
        .critical()
        .selecting("app", "cni");
    let orphan = pod("kube-system/cni-1").critical().label("app", "cni");
    for (pod, expected) in [
        (orphan.clone(), Some("pod kube-system/cni-1 is not Ready")),
        (orphan.ready(), None),
    ] {
        let world = world(&worker()).daemon_set(&cni).pod(&pod);
        assert_lack("of a class", &world, COMPONENTS, expected);
    }
}
