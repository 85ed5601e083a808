//! Live reads: stale kinds are read before anything harmful is done.

use serde_json::json;

use super::{Bench, Input, Seen};
use crate::condition::ComponentGroup;
use crate::engine::RequestError;
use crate::engine::io::Request;
use crate::engine::kind::Watch;
use crate::testing::{
    Builder, GATE, NodeBuilder, RuleBuilder, csi_node, daemon_set, node, pod, rule,
};

/// A change that no watch shows.
type Hidden<'a> = &'a dyn Fn(&mut Bench);

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn components() -> RuleBuilder {
    rule("r").waits_for("node.gardener.cloud/CriticalComponentsReady")
}

fn ready(name: &str) -> NodeBuilder {
    node(name).condition("Net", "True")
}

fn interrupted(bench: &mut Bench, watch: Watch) {
    bench.silent.push(watch);
    bench.take(vec![Input::Seen(Seen::Interrupted(watch))]);
}

fn is_a_live_read(request: &Request) -> bool {
    matches!(
        request,
        Request::ReadNodeLive { .. } | Request::ReadClusterLive { .. }
    )
}

/// The watch shows this network condition of a node.
fn network(bench: &mut Bench, name: &str, status: &str) {
    bench.change(name, |node| {
        node["status"]["conditions"] = json!([{ "type": "Net", "status": status }]);
    });
}

/// An engine that has evaluated these nodes and then lost the watch of a kind.
fn blind(rule: &RuleBuilder, nodes: &[NodeBuilder], watch: Watch) -> Bench {
    let mut bench = Bench::new(std::slice::from_ref(rule), nodes);
    bench.wait(10_000);
    interrupted(&mut bench, watch);
    bench.asked();
    bench.counted();
    bench
}

#[test]
fn a_node_is_closed_when_a_live_read_confirms_it() {
    for (watch, asked) in [
        (Watch::Nodes, &["look at n", "node n"][..]),
        (Watch::Rules, &["look at the cluster", "node n"]),
        // The rule does not depend on it.
        (Watch::CsiNodes, &["node n"]),
        (Watch::Pods(ComponentGroup::Class(0)), &["node n"]),
    ] {
        let mut bench = blind(&gate(), &[ready("n")], watch);
        network(&mut bench, "n", "False");
        assert_eq!(bench.asked(), asked, "{watch:?}");
        assert_eq!(bench.taints("n"), [GATE], "{watch:?}");
    }
}

#[test]
fn a_live_read_that_differs_from_the_cache_counts() {
    let mut bench = blind(&gate(), &[ready("n")], Watch::Nodes);
    let mut unready = bench.node("n").clone();
    unready["status"]["conditions"][0]["status"] = json!("False");
    let shown = bench.cluster.put(Watch::Nodes, unready).clone();
    bench.cluster.put(Watch::Nodes, ready("n").json().clone());
    let shown = super::object(Watch::Nodes, &shown);
    bench.take(vec![Input::Seen(Seen::Apply(shown))]);
    assert_eq!(bench.asked(), ["look at n"]);
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(
        bench.counted(),
        ["TurnedUnmet r Net", "LiveRead { answered: true }"]
    );
}

#[test]
fn a_deleted_rule_goes_though_the_live_read_of_another_one_is_never_answered() {
    let agent = daemon_set("kube-system/agent")
        .critical()
        .toleration("{operator: Exists}");
    let other = components().taint("readiness.k8s.io/other", "NoSchedule");
    let mut bench = Bench::new(&[rule("gone").waits_for("Net")], &[node("n")]);
    bench.shows(
        Watch::DaemonSets(ComponentGroup::Class(0)),
        agent.clone().json().clone(),
    );
    bench.sees_rule(&other);
    bench.wait(10_000);
    bench.refusal = |request| match request {
        Request::ReadNodeLive { .. } => Some(RequestError::Failed("forbidden".into())),
        _ => None,
    };
    interrupted(&mut bench, Watch::Pods(ComponentGroup::Class(0)));
    let pod = pod("kube-system/p").of(&agent).critical().on("n").ready();
    bench.shows(
        Watch::Pods(ComponentGroup::Class(0)),
        pod.clone().json().clone(),
    );
    bench.wait(10_000);
    assert!(bench.refused > 0 && bench.taints("n").len() == 2);
    bench.sees_rule(&rule("gone").waits_for("Net").deleting());
    bench.wait(3000);
    assert_eq!(bench.rule("gone")["metadata"]["finalizers"], json!(null));
    assert_eq!(bench.taints("n"), ["readiness.k8s.io/other"]);
}

#[test]
fn a_rule_that_a_live_read_does_not_find_is_not_enforced() {
    for (name, is_there) in [("gone", false), ("as it was", true)] {
        let mut bench = blind(&gate(), &[ready("n")], Watch::Rules);
        if !is_there {
            bench.cluster.remove(Watch::Rules, "r");
        }
        network(&mut bench, "n", "False");
        assert_eq!(!bench.taints("n").is_empty(), is_there, "{name}");
    }
}

#[test]
fn a_rule_that_a_live_read_finds_is_enforced() {
    let mut bench = blind(&gate(), &[ready("n")], Watch::Rules);
    let late = gate().taint("readiness.k8s.io/late", "NoSchedule");
    let mut late = late.waits_for("Late");
    late.json()["metadata"]["name"] = json!("late");
    late.json()["metadata"]["uid"] = json!("late-uid");
    bench.cluster.put(Watch::Rules, late.json().clone());
    network(&mut bench, "n", "False");
    let mut taints = bench.taints("n");
    taints.sort_unstable();
    assert_eq!(taints, [GATE, "readiness.k8s.io/late"]);
}

/// The next event would open the node, while a kind that its rule depends on is stale and differs from the cache.
#[test]
fn a_live_read_that_differs_keeps_a_node_closed() {
    let driver = "csi.example.com";
    let agent = || {
        daemon_set("kube-system/agent")
            .critical()
            .toleration("{operator: Exists}")
    };
    let unready = || pod("kube-system/late").critical().on("n");
    let waits = || {
        pod("kube-system/a")
            .critical()
            .on("n")
            .ready()
            .waits_for_driver(driver)
    };
    let with_csi = || csi_node("n").driver(driver);
    let nothing: Hidden<'_> = &|_| {};
    let an_unready_pod: Hidden<'_> = &|bench| {
        bench.cluster.put(
            Watch::Pods(ComponentGroup::Class(0)),
            unready().json().clone(),
        );
    };
    let no_driver: Hidden<'_> = &|bench| {
        bench
            .cluster
            .put(Watch::CsiNodes, csi_node("n").json().clone());
    };
    let no_csi_node: Hidden<'_> = &|bench| {
        bench.cluster.remove(Watch::CsiNodes, "n");
    };
    let a_daemon_set: Hidden<'_> = &|bench| {
        bench.cluster.put(
            Watch::DaemonSets(ComponentGroup::Class(0)),
            agent().json().clone(),
        );
    };
    for (name, watch, hidden, opens) in [
        (
            "pods, as they were",
            Watch::Pods(ComponentGroup::Class(0)),
            nothing,
            true,
        ),
        (
            "a pod that is not Ready",
            Watch::Pods(ComponentGroup::Class(0)),
            an_unready_pod,
            false,
        ),
        ("CSINode, as it was", Watch::CsiNodes, nothing, true),
        ("a driver that is gone", Watch::CsiNodes, no_driver, false),
        (
            "a CSINode that is gone",
            Watch::CsiNodes,
            no_csi_node,
            false,
        ),
        (
            "DaemonSets, as they were",
            Watch::DaemonSets(ComponentGroup::Class(0)),
            nothing,
            true,
        ),
        (
            "a DaemonSet that has no pod",
            Watch::DaemonSets(ComponentGroup::Class(0)),
            a_daemon_set,
            false,
        ),
    ] {
        let mut bench = Bench::new(&[components()], &[]);
        bench.shows(Watch::CsiNodes, with_csi().json().clone());
        let starting = waits().phase("Running");
        let mut starting = starting.ready_since(crate::testing::at(10));
        starting.json()["status"]["conditions"][0]["status"] = json!("False");
        bench.shows(
            Watch::Pods(ComponentGroup::Class(0)),
            starting.json().clone(),
        );
        bench.sees(&node("n").taint(GATE, "NoSchedule"));
        bench.wait(10_000);
        assert_eq!(bench.taints("n"), [GATE], "{name}");
        interrupted(&mut bench, watch);
        bench.asked();
        bench.held_up = is_a_live_read;
        bench.shows(
            Watch::Pods(ComponentGroup::Class(0)),
            waits().json().clone(),
        );
        hidden(&mut bench);
        bench.held_up = |_| false;
        bench.answers();
        assert_eq!(bench.taints("n").is_empty(), opens, "{name}");
        assert!(bench.asked().contains(&"look at n".to_owned()), "{name}");
    }
}

#[test]
fn a_daemon_set_that_a_live_read_does_not_find_is_not_waited_for() {
    let agent = || {
        daemon_set("kube-system/agent")
            .critical()
            .toleration("{operator: Exists}")
    };
    let of_agent = || pod("kube-system/agent-m").of(&agent()).on("m");
    for (name, is_there) in [("gone", false), ("as it was", true)] {
        let mut bench = Bench::new(&[components()], &[node("n"), node("m")]);
        bench.shows(
            Watch::Pods(ComponentGroup::Class(0)),
            of_agent().ready().json().clone(),
        );
        bench.shows(
            Watch::DaemonSets(ComponentGroup::Class(0)),
            agent().json().clone(),
        );
        bench.wait(10_000);
        assert_eq!(bench.taints("n"), [GATE], "{name}");
        assert_eq!(bench.taints("m"), [""; 0], "{name}");
        interrupted(&mut bench, Watch::DaemonSets(ComponentGroup::Class(0)));
        if !is_there {
            bench
                .cluster
                .remove(Watch::DaemonSets(ComponentGroup::Class(0)), "agent");
        }
        // Closing this node takes a live read of the cluster.
        bench.shows(
            Watch::Pods(ComponentGroup::Class(0)),
            of_agent().json().clone(),
        );
        bench.wait(1100);
        assert_eq!(bench.taints("m"), [GATE], "{name}");
        assert_eq!(!bench.taints("n").is_empty(), is_there, "{name}");
    }
}

#[test]
fn what_is_the_same_for_all_nodes_is_read_once_for_all_that_ask_within_a_second() {
    let names: Vec<String> = (0..5).map(|index| format!("n-{index}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| ready(name)).collect();
    let mut bench = blind(&gate(), &nodes, Watch::Rules);
    let reads = |bench: &mut Bench| {
        let asked = bench.asked();
        asked
            .iter()
            .filter(|it| *it == "look at the cluster")
            .count()
    };
    network(&mut bench, "n-0", "False");
    assert_eq!(reads(&mut bench), 1);
    bench.wait(900);
    network(&mut bench, "n-1", "False");
    assert_eq!(reads(&mut bench), 0, "read less than a second ago");
    bench.wait(200);
    bench.held_up = |request| matches!(request, Request::ReadClusterLive { .. });
    network(&mut bench, "n-2", "False");
    network(&mut bench, "n-3", "False");
    bench.wait(1500);
    network(&mut bench, "n-4", "False");
    assert_eq!(bench.pending.len(), 1, "one at a time");
    bench.answers();
    assert_eq!(bench.taints("n-2"), [GATE]);
    assert_eq!(bench.taints("n-3"), [GATE]);
    assert_eq!(bench.taints("n-4"), [""; 0], "that was asked for too late");
    assert_eq!(bench.pending.len(), 1);
    bench.answers();
    assert_eq!(bench.taints("n-4"), [GATE]);
}

#[test]
fn live_reads_are_limited_and_the_other_nodes_follow() {
    let names: Vec<String> = (10..30).map(|index| format!("n-{index}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| ready(name)).collect();
    let mut bench = blind(&gate(), &nodes, Watch::Nodes);
    bench.held_up = |request| matches!(request, Request::ReadNodeLive { .. });
    for name in &names {
        network(&mut bench, name, "False");
    }
    assert_eq!(bench.pending.len(), 16);
    network(&mut bench, "n-10", "Unknown");
    bench.wait(5000);
    assert_eq!(bench.pending.len(), 16);
    assert_eq!(bench.survey().under_way, 16);
    bench.answers();
    assert_eq!(bench.pending.len(), 4);
    bench.answers();
    let is_closed = |name: &&String| bench.taints(name) == [GATE];
    assert_eq!(names.iter().filter(is_closed).count(), 20);
}

#[test]
fn a_live_read_that_fails_is_retried_after_a_pause_and_nothing_is_done_before() {
    for (name, watch) in [("the node", Watch::Nodes), ("the cluster", Watch::Rules)] {
        let mut bench = blind(&gate(), &[ready("n")], watch);
        bench.refusal = |request| match request {
            Request::ReadNodeLive { .. } | Request::ReadClusterLive { .. } => {
                Some(RequestError::Failed("forbidden".into()))
            }
            _ => None,
        };
        network(&mut bench, "n", "False");
        assert_eq!(bench.refused, 1, "{name}");
        bench.wait(3000);
        assert!(
            (3..=8).contains(&bench.refused),
            "{name}: {}",
            bench.refused
        );
        assert_eq!(bench.taints("n"), [""; 0], "{name}");
        let failed = "LiveRead { answered: false }";
        assert!(bench.counted().iter().any(|it| it == failed), "{name}");
        bench.refusal = |_| None;
        bench.wait(10_000);
        assert_eq!(bench.taints("n"), [GATE], "{name}");
    }
}

#[test]
fn a_kind_that_is_current_again_needs_no_live_read() {
    let mut bench = blind(&gate(), &[ready("n")], Watch::Nodes);
    bench.refusal = |request| match request {
        Request::ReadNodeLive { .. } => Some(RequestError::Failed("forbidden".into())),
        _ => None,
    };
    network(&mut bench, "n", "False");
    bench.wait(25_000);
    assert_eq!(bench.taints("n"), [""; 0]);
    bench.silent.clear();
    let confirmed = bench.confirmed();
    bench.take(confirmed);
    assert_eq!(bench.taints("n"), [GATE], "at once");
}

#[test]
fn a_live_read_counts_for_some_seconds_unless_everything_becomes_stale() {
    let mut bench = blind(&gate(), &[ready("n")], Watch::Nodes);
    network(&mut bench, "n", "False");
    assert_eq!(bench.asked(), ["look at n", "node n"]);
    bench.wait(9000);
    network(&mut bench, "n", "True");
    assert_eq!(bench.asked(), ["status of r", "node n"]);
    bench.wait(2000);
    network(&mut bench, "n", "False");
    assert_eq!(bench.asked(), ["status of r", "look at n", "node n"]);
    // The process stands still.
    bench.now.monotonic += std::time::Duration::from_secs(5);
    bench.now.wall += std::time::Duration::from_secs(5);
    network(&mut bench, "n", "True");
    let asked = bench.asked();
    assert!(asked.contains(&"look at n".to_owned()), "{asked:?}");
    assert_eq!(bench.confirmations, 1);
}

#[test]
fn a_silent_watch_is_stale_too() {
    let mut bench = Bench::new(&[gate()], &[ready("n")]);
    bench.silent = vec![Watch::Rules];
    bench.wait(20_000);
    bench.asked();
    network(&mut bench, "n", "False");
    assert_eq!(bench.asked(), ["node n"]);
    bench.wait(1000);
    network(&mut bench, "n", "True");
    let asked = bench.asked();
    assert!(
        asked.contains(&"look at the cluster".to_owned()),
        "{asked:?}"
    );
}

#[test]
fn a_guard_lets_no_node_be_closed_while_anything_is_stale() {
    let careful = gate().nodegate("disruption: {}");
    let nodes = ["a", "b", "c"].map(ready);
    let mut bench = Bench::new(&[careful], &nodes);
    bench.wait(10_000);
    interrupted(&mut bench, Watch::Nodes);
    network(&mut bench, "a", "False");
    bench.wait(15_000);
    assert_eq!(bench.taints("a"), [""; 0]);
    let wake = bench.engine.next_wake();
    assert!(wake > Some(bench.now.monotonic), "it waits for no turn");
    bench.silent.clear();
    bench.wait(1000);
    assert_eq!(bench.taints("a"), [GATE]);
}

#[test]
fn what_is_still_to_be_closed_after_an_outage_is_closed_at_the_rate_from_zero() {
    let careful = gate().nodegate("disruption: {}");
    let nodes = ["a", "b", "c", "d", "e"].map(ready);
    let mut bench = Bench::new(&[careful], &nodes);
    bench.wait(20_000);
    interrupted(&mut bench, Watch::Nodes);
    for name in ["a", "b"] {
        network(&mut bench, name, "False");
    }
    bench.wait(60_000);
    bench.silent.clear();
    let closed = |bench: &Bench| {
        let is_closed = |name: &&&str| !bench.taints(name).is_empty();
        ["a", "b"].iter().filter(is_closed).count()
    };
    for (after, expected) in [(9500, 0), (2000, 1), (8000, 1), (3000, 2)] {
        bench.wait(after);
        assert_eq!(closed(&bench), expected, "{after} later");
    }
    for name in ["a", "b"] {
        network(&mut bench, name, "True");
    }
    assert_eq!(closed(&bench), 0, "opening waits for no rate");
}

#[test]
fn an_object_deleted_during_a_live_read_is_not_brought_back() {
    let mut bench = blind(&gate(), &[ready("n")], Watch::Rules);
    let late = || {
        let mut late = gate()
            .taint("readiness.k8s.io/late", "NoSchedule")
            .waits_for("Late");
        late.json()["metadata"]["name"] = json!("late");
        late.json()["metadata"]["uid"] = json!("late-uid");
        late
    };
    bench.held_up = is_a_live_read;
    network(&mut bench, "n", "False");
    // What the live read returns...
    let shown = bench.cluster.put(Watch::Rules, late().json().clone());
    let shown = super::object(Watch::Rules, &shown.clone());
    let (id, request) = bench.pending.remove(0);
    let answer = bench.answer(request);
    // ...is deleted when the watch recovers, and only then does the answer come.
    bench.take(vec![Input::Seen(Seen::Apply(shown))]);
    bench.shows_gone(Watch::Rules, "late");
    bench.silent.clear();
    bench.wait(1000);
    bench.take(vec![Input::Answered(id, answer)]);
    bench.wait(1000);
    assert_eq!(bench.taints("n"), [GATE]);
}

#[test]
fn a_live_read_of_a_rule_counts_though_its_status_was_written_meanwhile() {
    let unready = node("n").condition("Net", "False");
    let mut bench = blind(&gate(), &[unready], Watch::Rules);
    let mut suspended = bench.rule("r").clone();
    suspended["spec"]["nodegate"]["suspend"] = json!(true);
    bench.cluster.put(Watch::Rules, suspended);
    bench.held_up = is_a_live_read;
    network(&mut bench, "n", "True");
    let (id, request) = bench.pending.remove(0);
    let answer = bench.answer(request);
    bench.wait(5000);
    assert!(bench.asked().contains(&"status of r".to_owned()));
    bench.held_up = |_| false;
    bench.take(vec![Input::Answered(id, answer)]);
    bench.wait(1000);
    assert_eq!(bench.taints("n"), [GATE]);
}

#[test]
fn nodes_that_are_deleted_while_they_wait_for_a_live_read_make_room_for_others() {
    let names: Vec<String> = (10..50).map(|index| format!("n-{index}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| ready(name)).collect();
    let mut bench = blind(&gate(), &nodes, Watch::Nodes);
    bench.held_up = is_a_live_read;
    for name in &names {
        network(&mut bench, name, "False");
    }
    // Those that would be next.
    for name in &names[16..32] {
        bench.gone(name);
    }
    bench.held_up = |_| false;
    bench.answers();
    for name in names[..16].iter().chain(&names[32..]) {
        assert_eq!(bench.taints(name), [GATE], "{name}");
    }
}

#[test]
fn what_cannot_be_read_keeps_only_those_rules_from_deciding_that_go_by_it() {
    let agent = "daemonset.nodegate.dev/tools.agent";
    let named = rule("named")
        .taint("readiness.k8s.io/agent", "NoSchedule")
        .waits_for(agent);
    let mut bench = Bench::new(&[gate(), named], &[ready("n")]);
    bench.lists(Watch::DaemonSets(ComponentGroup::Named(0)));
    bench.wait(10_000);
    let closed_for = |bench: &Bench| {
        let mut taints = bench.taints("n").into_iter();
        taints.any(|it| it == GATE)
    };
    assert!(!closed_for(&bench));
    bench.cluster.unreadable = Some(ComponentGroup::Named(0));
    for watch in [Watch::Rules, Watch::DaemonSets(ComponentGroup::Named(0))] {
        interrupted(&mut bench, watch);
    }
    network(&mut bench, "n", "False");
    assert!(closed_for(&bench), "that rule does not go by the DaemonSet");
    assert!(
        bench
            .counted()
            .contains(&"LiveRead { answered: true }".to_owned())
    );
}

#[test]
fn a_deleted_rule_stays_until_the_nodes_that_were_not_seen_are_clean() {
    let mut bench = blind(&gate(), &[ready("n")], Watch::Nodes);
    let rule = bench.rule("r").clone();
    let mut unseen = node("unseen").condition("Net", "False").json().clone();
    unseen["spec"]["taints"] = json!([{ "key": GATE, "effect": "NoSchedule" }]);
    bench.cluster.put(Watch::Nodes, unseen.clone());
    let mut deleted = rule;
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:02:00Z");
    bench.shows(Watch::Rules, deleted);
    bench.wait(20_000);
    let finalizers = |bench: &Bench| bench.rule("r")["metadata"]["finalizers"].clone();
    assert_ne!(finalizers(&bench), json!(null));
    bench.silent.clear();
    bench.shows(Watch::Nodes, unseen);
    bench.wait(2000);
    assert_eq!(bench.taints("unseen"), [""; 0]);
    assert_eq!(finalizers(&bench), json!(null));
}
