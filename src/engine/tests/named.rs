//! Rules that wait for a `DaemonSet` by name, from the start of its watches to their end.

use serde_json::json;

use super::{Bench, Input, Seen};
use crate::survey::NODES_BY_STATE;
use crate::testing::{
    Builder, DaemonSetBuilder, GATE, NodeBuilder, PodBuilder, RuleBuilder, at, daemon_set, node,
    pod, rule,
};
use nodegate_core::condition::{ComponentGroup, Watch};

const AGENT: &str = "daemonset.nodegate.dev/tools.agent";
const DAEMON_SETS: Watch = Watch::DaemonSets(ComponentGroup::Named(0));
const PODS: Watch = Watch::Pods(ComponentGroup::Named(0));

fn waits(name: &str) -> RuleBuilder {
    rule(name).waits_for(AGENT)
}

fn agent() -> DaemonSetBuilder {
    let agent = daemon_set("tools/agent").selecting("app", "agent");
    agent.toleration("{operator: Exists}")
}

/// The watch of the existing `DaemonSet` lists it.
fn lists_agent(bench: &mut Bench) {
    let agent = agent().json().clone();
    bench.cluster.put(DAEMON_SETS, agent);
    bench.lists(DAEMON_SETS);
}

/// Adds a Ready pod of it on this node.
fn put_pod(bench: &mut Bench, node: &str) {
    let pod = pod(&format!("tools/{node}")).of(&agent()).on(node).ready();
    bench.cluster.put(PODS, pod.clone().json().clone());
}

/// An engine that has seen the `DaemonSet` ready on these nodes.
fn ready(rules: &[RuleBuilder], nodes: &[NodeBuilder]) -> Bench {
    let mut bench = Bench::new(rules, nodes);
    for node in nodes {
        let name = node.clone().json()["metadata"]["name"].clone();
        put_pod(&mut bench, name.as_str().unwrap());
    }
    lists_agent(&mut bench);
    bench.lists(PODS);
    bench
}

/// The conditions of a rule's status, without those that every rule has.
fn said(bench: &Bench, rule: &str) -> Vec<String> {
    let conditions = bench.status(rule)["conditions"].as_array().unwrap();
    let said = conditions.iter().map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap().to_owned();
        format!("{}: {}", text("type"), text("message"))
    });
    said.skip(2).collect()
}

#[test]
fn no_node_is_gated_until_everything_has_been_seen_once() {
    let guarded = waits("r").nodegate("disruption: {}");
    let mut bench = Bench::new(&[guarded], &[node("n"), node("m")]);
    bench.wait(20_000);
    let counted = bench.counted();
    assert!(
        counted.iter().all(|it| !it.starts_with("TurnedUnmet")),
        "{counted:?}"
    );
    lists_agent(&mut bench);
    bench.wait(20_000);
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(bench.told(), [""; 0], "the guard counts nobody yet");
    for name in ["n", "m"] {
        put_pod(&mut bench, name);
    }
    bench.lists(PODS);
    bench.wait(20_000);
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(bench.gauge(&NODES_BY_STATE, &["r", "ready"]), Some(2));
}

#[test]
fn a_node_is_gated_once_what_its_rule_goes_by_is_current() {
    for (watch, waits_for_it) in [
        (PODS, true),
        (DAEMON_SETS, true),
        (Watch::Pods(ComponentGroup::Class(0)), false),
    ] {
        let mut bench = ready(&[waits("r")], &[node("n")]);
        bench.silent.push(watch);
        bench.wait(35_000);
        let mut unready = bench.cluster.get(PODS, "n").unwrap().clone();
        unready["status"]["conditions"] = json!([]);
        bench.shows(PODS, unready);
        bench.wait(1100);
        assert_eq!(bench.taints("n").is_empty(), waits_for_it, "{watch:?}");
        bench.silent.clear();
        bench.wait(1000);
        assert_eq!(bench.taints("n").len(), 1, "{watch:?}");
    }
}

#[test]
fn another_selector_is_seen_anew_before_anything_is_decided() {
    let mut bench = ready(&[waits("r")], &[node("n")]);
    bench.shows_gone(DAEMON_SETS, "agent");
    bench.wait(17_000);
    assert_eq!(bench.taints("n").len(), 1, "there is none");
    let other = daemon_set("tools/agent").selecting("app", "other");
    let other = other.toleration("{operator: Exists}");
    bench.shows(DAEMON_SETS, other.clone().json().clone());
    let begun: Vec<_> = bench.begun.keys().copied().collect();
    assert_eq!(begun, [Watch::DaemonSets(ComponentGroup::Named(1))]);
    bench.wait(30_000);
    assert_eq!(bench.taints("n").len(), 1);
    let pod = pod("tools/n").of(&other).on("n").ready();
    bench.cluster.put(
        Watch::Pods(ComponentGroup::Named(1)),
        pod.clone().json().clone(),
    );
    let other = other.clone().json().clone();
    bench
        .cluster
        .put(Watch::DaemonSets(ComponentGroup::Named(1)), other);
    bench.lists(Watch::DaemonSets(ComponentGroup::Named(1)));
    assert_eq!(bench.taints("n").len(), 1);
    bench.lists(Watch::Pods(ComponentGroup::Named(1)));
    assert_eq!(bench.taints("n"), [""; 0]);
}

#[test]
fn an_unreadable_daemon_set_is_told_of_on_the_rules_that_name_it() {
    let other = rule("s").waits_for("daemonset.nodegate.dev/tools.other");
    let other = other.taint("readiness.k8s.io/other", "NoSchedule");
    let mut bench = ready(&[waits("r"), other], &[node("n")]);
    bench.told();
    let meta = json!({"name": "agent", "namespace": "tools", "uid": "u"});
    bench.shows(DAEMON_SETS, json!({"metadata": meta, "spec": 5}));
    bench.wait(2000);
    let told = bench.told();
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    let expected = "ObjectUnreadable r: DaemonSet tools/agent cannot be parsed: spec: ";
    assert!(told.starts_with(expected), "{told}");
    assert_eq!(bench.taints("n"), [""; 0]);
    bench.shows_gone(PODS, "n");
    bench.wait(2000);
    assert_eq!(bench.taints("n").len(), 1, "it is taken as it was");
}

#[test]
fn a_rule_says_that_the_api_server_has_none_of_what_it_waits_for() {
    let kind = "resourceslice.nodegate.dev/gpu.example.com";
    let mut bench = Bench::new(&[rule("r").waits_for(kind)], &[node("n")]);
    let watch = Watch::ResourceSlices(ComponentGroup::Named(0));
    bench.take(vec![Input::Seen(Seen::NotInstalled(watch))]);
    bench.wait(3000);
    assert_eq!(
        said(&bench, "r"),
        [
            format!(
                "ConditionsNotMade: this API server has no resource.k8s.io/v1 ResourceSlices (Kubernetes 1.34 has them), so that \
                 no node meets {kind}"
            ),
            "MetByNoNode: none of the 1 node that it selects meets what it asks for".to_owned(),
        ]
    );
}

#[test]
fn what_is_wrong_with_a_daemon_set_is_told_of_whether_or_not_the_rule_is_in_force() {
    let none = "there is no DaemonSet tools/agent today: until there is one, no node meets the condition; check namespace and name";
    let some = "DaemonSet tools/agent runs on 1 of the 3 nodes that the rule selects; the others do not wait for it";
    let elsewhere = agent().node_selector("pool", "gpu").json().clone();
    for (state, rule) in [
        ("the rule is in force", waits("r")),
        (
            "the rule is a dry run: no node is changed",
            waits("r").dry_run(),
        ),
        ("the rule is suspended", waits("r").suspended()),
    ] {
        let rule = rule
            .bootstrap_only()
            .nodegate("existingNodes: Leave")
            .created(at(60));
        let nodes = [node("n"), node("m"), node("gpu").label("pool", "gpu")];
        let mut bench = Bench::new(&[rule], &nodes);
        let accepted = |bench: &Bench| bench.status("r")["conditions"][0]["message"].clone();
        bench.lists(DAEMON_SETS);
        bench.wait(3000);
        assert_eq!(accepted(&bench), format!("{state}; {none}"));
        bench.shows(DAEMON_SETS, elsewhere.clone());
        bench.lists(PODS);
        bench.wait(3000);
        assert_eq!(accepted(&bench), format!("{state}; {some}"));
    }
}

/// Labels the node while it has no taint, and otherwise takes the label off, as Kernel Module Management does. The pod that this makes is
/// not Ready by then; `None` while the `DaemonSet` controller is slower.
fn label(bench: &mut Bench, pod: Option<&PodBuilder>) {
    bench.wait(500);
    let is_tainted = !bench.taints("n").is_empty();
    let is_there = bench.cluster.get(PODS, "n").is_some();
    match pod {
        Some(_) if is_tainted && is_there => bench.shows_gone(PODS, "n"),
        Some(pod) if !is_tainted => {
            let made = pod.clone().created(bench.now.wall);
            bench.shows(PODS, made.clone().json().clone());
        }
        _ => {}
    }
    bench.change("n", |node| {
        let labels = node["metadata"]["labels"].as_object_mut().unwrap();
        if is_tainted {
            labels.remove("kmm/ready");
        } else {
            labels.insert("kmm/ready".into(), json!(""));
        }
    });
}

#[test]
fn a_daemon_set_that_comes_and_goes_with_the_taint_gates_ever_less_often() {
    let plugin = agent().node_selector("kmm/ready", "");
    let pod = pod("tools/n").of(&plugin).on("n");
    for starting in [None, Some(&pod)] {
        let mut bench = Bench::new(&[waits("r")], &[node("n")]);
        bench
            .cluster
            .put(DAEMON_SETS, plugin.clone().json().clone());
        bench.lists(DAEMON_SETS);
        bench.lists(PODS);
        let is_paused = |bench: &Bench| {
            let pause = &bench.status("r")["nodegate"]["pauses"][0];
            pause["reason"] == "ReactsToTaint" && bench.taints("n").is_empty()
        };
        for _ in 0..2 * 3600 {
            if is_paused(&bench) {
                break;
            }
            label(&mut bench, starting);
        }
        for _ in 0..2 * 60 {
            label(&mut bench, starting);
        }
        let told = bench.told();
        let gated = told.iter().filter(|it| it.starts_with("TaintAdded"));
        assert_eq!(gated.count(), 4, "{told:#?}");
        let told = told.iter().filter(|it| it.starts_with("TaintContended"));
        let told: Vec<_> = told.collect();
        let [told] = told[..] else {
            panic!("{told:?}");
        };
        let said = "DaemonSet tools/agent is meant for the node only while it has no taint \
                'readiness.k8s.io/gate:NoSchedule': something reacts to the taint. Let that tolerate it, or let the rule wait for something else";
        assert!(told.contains(said), "{told}");
        assert_eq!(bench.taints("n"), [""; 0]);
        let pause = bench.status("r")["nodegate"]["pauses"][0].clone();
        let reason_and_message = [&pause["reason"], &pause["message"]];
        assert_eq!(reason_and_message, ["ReactsToTaint", said], "{pause}");
        // Once it runs, what happens next has another cause.
        bench.shows(PODS, pod.clone().ready().json().clone());
        bench.wait(2000);
        let ours = &bench.status("r")["nodegate"];
        assert!(ours["pauses"].is_null(), "{ours}");
    }
}

#[test]
fn a_pod_that_crashes_again_and_again_gates_its_node_each_time() {
    let pod = pod("tools/n").of(&agent()).on("n");
    let mut bench = Bench::new(&[waits("r")], &[node("n")]);
    bench.cluster.put(DAEMON_SETS, agent().json().clone());
    bench.lists(DAEMON_SETS);
    bench.lists(PODS);
    for _ in 0..10 {
        for (pod, taints) in [(pod.clone().ready(), &[][..]), (pod.clone(), &[GATE])] {
            bench.shows(PODS, pod.clone().json().clone());
            bench.wait(60_000);
            assert_eq!(bench.taints("n"), taints);
        }
    }
}

#[test]
fn a_pod_that_is_ready_by_a_clock_that_is_ahead_counts_from_when_it_was_first_seen() {
    let asking = agent().min_ready_seconds(30);
    // Soon past, and never.
    for ready in [at(115), at(100_000)] {
        let mut bench = Bench::new(&[waits("r")], &[node("n")]);
        bench
            .cluster
            .put(DAEMON_SETS, asking.clone().json().clone());
        let mut pod = pod("tools/n").of(&asking).on("n").ready_since(ready);
        bench.cluster.put(PODS, pod.json().clone());
        bench.lists(DAEMON_SETS);
        bench.lists(PODS);
        bench.wait(20_000);
        bench.shows(PODS, pod.annotation("a", "b").json().clone());
        bench.wait(9000);
        assert_eq!(bench.taints("n"), [GATE], "{ready}");
        bench.wait(2000);
        assert_eq!(bench.taints("n"), [""; 0], "{ready}");
    }
}

#[test]
fn a_daemon_set_that_is_made_again_with_its_pods_orphaned_gates_nothing() {
    let orphan = |owner: Option<&DaemonSetBuilder>| {
        let orphan = pod("tools/n").label("app", "agent").on("n").ready();
        let owned = owner.map(|it| orphan.clone().of(it));
        owned.unwrap_or(orphan).json().clone()
    };
    let mut again = agent();
    again.json()["metadata"]["uid"] = json!("another");
    for (absent, is_gated) in [(3_000, false), (20_000, true)] {
        let mut bench = ready(&[waits("r")], &[node("n")]);
        bench.wait(2000);
        bench.shows(PODS, orphan(None));
        bench.wait(2000);
        bench.shows_gone(DAEMON_SETS, "agent");
        bench.wait(absent);
        assert_eq!(bench.taints("n").is_empty(), !is_gated, "{absent}");
        bench.shows(DAEMON_SETS, again.clone().json().clone());
        bench.wait(2000);
        assert_eq!(bench.taints("n"), [""; 0], "it has adopted none yet");
        bench.shows(PODS, orphan(Some(&again)));
        bench.wait(2000);
        assert_eq!(bench.taints("n"), [""; 0]);
        let asked = bench.asked();
        let writes = asked.iter().filter(|it| *it == "node n").count();
        assert_eq!(writes, if is_gated { 2 } else { 0 }, "{asked:?}");
    }
}
