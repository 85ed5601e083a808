//! `DaemonSet`s that are waited for by name.

use super::{assert_lack, worker};
use crate::api::ConditionStatus;
use crate::condition::{Component, Source};
use crate::object::ObjectKey;
use crate::testing::{
    Builder, DaemonSetBuilder, GATE, PodBuilder, World, at, daemon_set, node, pod, rule, world,
};

const AGENT: &str = "daemonset.nodegate.dev/tools.agent";

/// A `DaemonSet` without the labels of any class.
fn agent() -> DaemonSetBuilder {
    daemon_set("tools/agent").selecting("app", "agent")
}

fn agent_pod(name: &str) -> PodBuilder {
    pod(&format!("tools/{name}")).of(&agent())
}

fn with(daemon_set: &DaemonSetBuilder) -> World {
    world(&worker())
        .naming("tools/agent")
        .daemon_set(daemon_set)
}

const MISSING: &str = "DaemonSet tools/agent has no pod on this node";
const ABSENT: &str = "there is no DaemonSet tools/agent";
const NOT_READY: &str = "pod tools/a is not Ready";
const KEPT_AWAY: &str = "DaemonSet tools/agent does not tolerate the taint dedicated:NoSchedule of this node: add the toleration to its \
                         pod template, or leave such nodes out of the rule's nodeSelector";

#[test]
fn a_named_daemon_set_needs_a_ready_pod_of_its_own() {
    let another = daemon_set("tools/another").selecting("app", "agent");
    for (name, world, expected) in vec![
        (
            "there is none",
            world(&worker()).naming("tools/agent"),
            Some(ABSENT),
        ),
        (
            "it is being deleted",
            with(&agent().deleting()).pod(&agent_pod("a").ready()),
            Some(ABSENT),
        ),
        ("no pod", with(&agent()), Some(MISSING)),
        (
            "not Ready",
            with(&agent()).pod(&agent_pod("a")),
            Some(NOT_READY),
        ),
        ("Ready", with(&agent()).pod(&agent_pod("a").ready()), None),
        (
            "Ready, but terminating",
            with(&agent()).pod(&agent_pod("a").ready().deleting()),
            Some(MISSING),
        ),
        (
            "Ready, but finished",
            with(&agent()).pod(&agent_pod("a").ready().phase("Failed")),
            Some(MISSING),
        ),
        (
            "elsewhere",
            with(&agent()).pod(&agent_pod("a").ready().on("worker-2")),
            Some(MISSING),
        ),
        (
            "a surge of which one is Ready",
            with(&agent())
                .pod(&agent_pod("a"))
                .pod(&agent_pod("b").ready()),
            None,
        ),
        (
            "the pod of another that its selector matches",
            with(&agent()).pod(&pod("tools/a").of(&another).ready()),
            Some(MISSING),
        ),
        (
            "others' pods that are not Ready",
            with(&agent())
                .pod(&agent_pod("a").ready())
                .pod(&pod("tools/b").of(&another))
                .pod(&pod("tools/c").label("app", "agent")),
            None,
        ),
    ] {
        assert_lack(name, &world, AGENT, expected);
    }
}

#[test]
fn a_named_daemon_set_is_waited_for_where_it_should_run() {
    let elsewhere = agent().node_selector("gpu", "yes");
    let tainted = || worker().taint("dedicated", "NoSchedule");
    let control_plane = "node-role.kubernetes.io/control-plane";
    #[rustfmt::skip]
    let cases = [
        ("another node selector", elsewhere.clone(), worker(), None),
        ("its node selector", elsewhere, worker().label("gpu", "yes"), Some(MISSING)),
        ("a taint that stays", agent(), tainted(), Some(KEPT_AWAY)),
        ("the taint of a role", agent(), tainted().taint(control_plane, "NoSchedule"), None),
        (
            "the taint of a role that it tolerates",
            agent().toleration(&format!("{{key: {control_plane}, operator: Exists}}")),
            tainted().taint(control_plane, "NoSchedule"),
            Some(KEPT_AWAY),
        ),
        ("a taint that will go", agent(), worker().taint("node.kubernetes.io/not-ready", "NoSchedule"), Some(MISSING)),
    ];
    for (name, daemon_set, node, expected) in cases {
        let world = world(&node).naming("tools/agent").daemon_set(&daemon_set);
        assert_lack(name, &world, AGENT, expected);
    }
    let met = with(&agent().node_selector("gpu", "yes"))
        .condition(AGENT)
        .unwrap();
    assert_eq!(met.reason, "DaemonSetNotMeantForNode");
}

#[test]
fn a_named_daemon_set_with_a_live_pod_is_waited_for_whatever_labels_and_taints_say() {
    let elsewhere = agent().node_selector("gpu", "yes");
    let tainted = worker().taint("dedicated", "NoSchedule");
    let control_plane = worker().taint("node-role.kubernetes.io/control-plane", "NoSchedule");
    for (name, node, daemon_set, without_pod) in [
        ("a label that has gone", worker(), elsewhere, None),
        ("a taint that came", tainted, agent(), Some(KEPT_AWAY)),
        ("a role that came", control_plane, agent(), None),
    ] {
        let world = world(&node).naming("tools/agent").daemon_set(&daemon_set);
        let with = |pod| world.clone().pod(&pod);
        assert_lack(name, &with(agent_pod("a")), AGENT, Some(NOT_READY));
        assert_lack(name, &with(agent_pod("a").ready()), AGENT, None);
        assert_lack(name, &with(agent_pod("a").deleting()), AGENT, without_pod);
    }
}

#[test]
fn a_named_daemon_set_that_does_not_tolerate_the_rules_taint_holds_its_node() {
    let gate = rule("gate").waits_for(AGENT);
    let tolerant = agent().toleration(&format!("{{key: {GATE}, operator: Exists}}"));
    let other = rule("gate").waits_for("daemonset.nodegate.dev/tools.other");
    let intolerant = "DaemonSet tools/agent does not tolerate the taint readiness.k8s.io/gate:NoSchedule of a rule that waits for it: \
                      add the toleration to its pod template";
    let pending = || with(&agent()).pod(&agent_pod("a"));
    let ready = || with(&agent()).pod(&agent_pod("a").ready());
    for (name, world, rule, expected) in [
        ("shut out", with(&agent()), &gate, Some(intolerant)),
        (
            "its pod came before the taint",
            pending(),
            &gate,
            Some(intolerant),
        ),
        ("its pod is Ready all the same", ready(), &gate, None),
        ("tolerates", with(&tolerant), &gate, Some(MISSING)),
        ("another's rule", with(&agent()), &other, Some(MISSING)),
    ] {
        assert_lack(name, &world.rule(rule), AGENT, expected);
    }
    let shut_out = with(&agent()).rule(&gate).condition(AGENT).unwrap();
    assert_eq!(shut_out.reason, "DoesNotTolerate");
    // Its pod is there all the same, and will count.
    let slow = agent().min_ready_seconds(30);
    let pod = agent_pod("a").ready_since(at(60));
    let shut_out = with(&slow).pod(&pod).rule(&gate).now(at(70));
    let shut_out = shut_out.condition(AGENT).unwrap();
    let expected = ("DoesNotTolerate", Some(at(90)));
    assert_eq!((&*shut_out.reason, shut_out.recheck), expected);
}

#[test]
fn a_pod_older_than_its_node_counts_after_a_minute() {
    let node = node("worker-1").created(at(100));
    let world = world(&node)
        .naming("tools/agent")
        .daemon_set(&agent())
        .pod(&agent_pod("a").ready_since(at(50)));
    let early = world.clone().now(at(130)).condition(AGENT).unwrap();
    assert_eq!(early.reason, "PodOlderThanNode");
    assert_eq!(early.recheck, Some(at(160)));
    assert_lack("later", &world.now(at(160)), AGENT, None);
}

#[test]
fn a_named_daemon_set_is_unknown_until_it_has_been_seen() {
    let ready = with(&agent()).pod(&agent_pod("a").ready());
    let answer = ready.before_it_is_seen().condition(AGENT).unwrap();
    assert_eq!(answer.status, ConditionStatus::Unknown);
    assert_eq!(
        answer.message,
        "DaemonSet tools/agent has not been seen yet"
    );
    let unwatched = world(&worker()).daemon_set(&agent());
    assert_eq!(unwatched.condition(AGENT), None, "nobody watches it");
}

#[test]
fn the_first_dot_ends_the_namespace() {
    for (name, expected) in [
        ("kube-system.cilium", Some(("kube-system", "cilium"))),
        ("a.b.c", Some(("a", "b.c"))),
        ("1.2", Some(("1", "2"))),
        ("", None),
        ("cilium", None),
        (".cilium", None),
        ("kube-system.", None),
        ("kube-system..cilium", None),
        ("kube-system.Cilium", None),
        ("Kube-System.cilium", None),
        ("kube_system.cilium", None),
        ("kube-system/cilium", None),
        ("kube-system.cilium-", None),
    ] {
        let source = Source::of(&format!("daemonset.nodegate.dev/{name}"), &[]);
        let expected = expected.map_or(Source::Nobody, |(namespace, name)| {
            Source::Component(Component::DaemonSet(ObjectKey::new(namespace, name)))
        });
        assert_eq!(source, expected, "{name}");
    }
}
