//! How watch events and write responses change the cache.

mod named;
mod rules;

use std::sync::LazyLock;
use std::time::Duration;
use std::time::Instant;

use serde_json::json;

use super::*;
use crate::io::{Object, Seen};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, node, rule};
use nodegate_core::object::{Node, Watched};
use nodegate_core::plan::{Decision, NodeHistory, NodePlan, Outcome, Standing, plan};

/// The time `at(0)` by the monotonic clock.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time `at(seconds)`, by both clocks.
fn now(seconds: u64) -> Now {
    Now {
        wall: at(i64::try_from(seconds).unwrap()),
        monotonic: *START + Duration::from_secs(seconds),
    }
}

/// A synced cache with this node and this rule.
fn synced(node: &NodeBuilder, rule: &RuleBuilder) -> Cache {
    let mut cache = Cache::new(&Settings::default(), now(0));
    for seen in [
        init(Watch::Rules, 0),
        Seen::Apply(Object::Rule(rule.object())),
        Seen::InitDone(Watch::Rules),
        init(Watch::Nodes, 0),
        Seen::Apply(Object::Node(node.object())),
        Seen::InitDone(Watch::Nodes),
    ] {
        cache.apply(seen, now(0));
    }
    assert!(cache.views.have_synced());
    cache.freshness.assess(&cache.views, now(0));
    assert!(cache.cluster().stale.is_empty());
    cache
}

/// A list begins, which is asked for at this time.
fn init(watch: Watch, asked: u64) -> Seen {
    Seen::Init(watch, now(asked).monotonic)
}

/// A consistent read proves that the nodes are current as of this time.
fn confirm(cache: &mut Cache, now: Now) {
    let answer = WatchStep::Answer(now.monotonic, Ok(99));
    for step in [WatchStep::Read, WatchStep::Shown(99), answer] {
        cache.step(Watch::Nodes, step, now);
    }
}

/// The answer to a request shows a node, at `at(60)`.
fn answer(cache: &mut Cache, node: Watched<Node>) {
    cache.apply_answer(Object::Node(node), now(60));
}

/// The rule's decision for the node `n`, and whether it completes the bootstrap.
fn decision(cache: &mut Cache, now: Timestamp) -> (Decision, bool) {
    cache.select_rules("n", now);
    let state = cache.node("n").unwrap();
    let history = NodeHistory {
        is_known: false,
        memories: &[],
        may_gate: &[],
        held_back: &[],
        setbacks: &[],
        watching_since: at(0),
    };
    let NodePlan { outcomes, .. } = plan(cache.cluster(), state, history, now);
    let outcomes: Vec<&Outcome> = outcomes.iter().collect();
    match &outcomes[0].standing {
        Standing::Governs(decision) => (*decision, outcomes[0].completes),
        other => panic!("{other:?}"),
    }
}

/// The queued nodes.
fn follows(cache: &mut Cache) -> Vec<Arc<str>> {
    std::iter::from_fn(|| cache.schedule.next().map(|it| it.0)).collect()
}

/// The node `n` in this boot, with this last heartbeat of its reporter; its bootstrap was completed in boot `a`.
fn booted(boot: &str, heartbeat: i64, version: u64) -> NodeBuilder {
    node("n")
        .version(version)
        .boot_id(boot)
        .condition_with(
            json!({ "type": "Net", "status": "True", "lastHeartbeatTime": at(heartbeat) }),
        )
        .annotation(
            "readiness.k8s.io/bootstrap-completed-r-uid",
            r#"{"rule-name":"r","boot-id":"a"}"#,
        )
}

fn regating() -> RuleBuilder {
    rule("r")
        .bootstrap_only()
        .waits_for("Net")
        .nodegate("regateOn: [Reboot]")
}

#[test]
fn what_was_written_before_the_reboot_is_not_taken_for_news_when_the_watch_shows_it_late() {
    let mut cache = synced(&booted("a", 0, 10), &regating());
    // The reporter writes a heartbeat, the node reboots, and a response shows both at once.
    answer(&mut cache, booted("b", 5, 12).object());
    for late in [booted("a", 5, 11), booted("b", 5, 12)] {
        cache.apply(Seen::Apply(Object::Node(late.object())), now(61));
        assert_eq!(decision(&mut cache, at(61)), (Decision::Gate, false));
    }
}

#[test]
fn a_node_came_when_a_watch_showed_it_or_since_the_view_was_last_certain() {
    let joined = |cache: &Cache, name: &str| cache.node(name).unwrap().joined;
    let mut cache = synced(&node("n"), &regating());
    assert_eq!(joined(&cache, "n"), None, "it was there before");
    cache.apply(Seen::Apply(Object::Node(node("new").object())), now(10));
    assert_eq!(joined(&cache, "new"), Some(at(10)));
    cache.apply(Seen::Apply(Object::Node(node("late").object())), now(28));
    assert_eq!(joined(&cache, "late"), Some(at(10)), "at any time since");
}

#[test]
fn a_node_that_joined_long_before_a_gap_ended_is_not_known_to_be_joining() {
    let joined = |cache: &Cache, name: &str| cache.node(name).unwrap().joined;
    for (gap_ends, expected) in [(35, Some(at(10))), (45, None)] {
        for is_shown in [false, true] {
            let mut cache = synced(&node("n"), &regating());
            cache.apply(Seen::Apply(Object::Node(node("new").object())), now(10));
            if is_shown {
                let changed = node("new").version(9).condition("Net", "False");
                cache.apply(Seen::Apply(Object::Node(changed.object())), now(gap_ends));
            } else {
                confirm(&mut cache, now(gap_ends));
            }
            assert_eq!(joined(&cache, "new"), expected, "{gap_ends} {is_shown}");
        }
    }
}

#[test]
fn after_the_clock_was_set_join_times_are_unknown_until_all_nodes_are_current() {
    let joined = |cache: &Cache, name: &str| cache.node(name).unwrap().joined;
    let mut cache = synced(&node("n"), &regating());
    cache.measure_anew(at(60), jiff::SignedDuration::from_secs(50));
    cache.apply(Seen::Apply(Object::Node(node("late").object())), now(11));
    assert_eq!(joined(&cache, "late"), None);
    confirm(&mut cache, now(12));
    cache.apply(Seen::Apply(Object::Node(node("new").object())), now(13));
    assert_eq!(joined(&cache, "new"), Some(at(13)));
}

#[test]
fn what_the_answer_to_a_patch_left_out_is_seen_when_the_watch_shows_that_version() {
    let mut cache = synced(&booted("a", 0, 10), &regating());
    let rebooted = booted("b", 0, 12);
    cache.patched_node(12, rebooted.build(), None, at(60));
    cache.apply(Seen::Apply(Object::Node(rebooted.object())), now(60));
    assert_eq!(decision(&mut cache, at(60)), (Decision::Gate, false));
}

#[test]
fn an_answer_that_shows_another_node_of_the_name_tells_that_the_known_one_is_gone() {
    for (version, is_there) in [(9, true), (0, true), (12, false)] {
        let mut cache = synced(&booted("a", 0, 10), &regating());
        answer(&mut cache, booted("a", 0, version).uid("another").object());
        assert_eq!(cache.node("n").is_some(), is_there, "{version}");
    }
}

#[test]
fn amounts_of_a_resource_are_news_where_a_rule_counts_it() {
    const GPU: &str = "resource.nodegate.dev/nvidia.com/gpu";
    let asks = |more: &str| {
        let condition = format!("{{type: {GPU}, requiredStatus: 'True'{more}}}");
        rule("r").spec(&format!("conditions: [{condition}]"))
    };
    let gpus = |amount: &str| {
        let node = node("n").allocatable("nvidia.com/gpu", amount);
        node.allocatable("cpu", "8")
    };
    #[rustfmt::skip]
    let cases = [
        ("not counted", asks(""), gpus("8"), false),
        ("none left", asks(""), gpus("0"), true),
        ("counted", asks(", nodegate: {minimum: 8}"), gpus("8"), true),
        ("counted by a label", asks(", nodegate: {minimumFromLabel: gpu.count}"), gpus("8"), true),
        ("counted, unlike what has changed", asks(", nodegate: {minimum: 8}"), gpus("7").allocatable("cpu", "4"), false),
    ];
    for (name, rule, shown, is_news) in cases {
        let mut cache = synced(&gpus("7").version(1), &rule);
        cache.begin_evaluations();
        while cache.schedule.next().is_some() {}
        let shown = shown.version(2);
        cache.apply(Seen::Apply(Object::Node(shown.object())), now(10));
        assert_eq!(!follows(&mut cache).is_empty(), is_news, "{name}");
        let units = |resource| cache.node("n").unwrap().node.resources.units(resource);
        let expected = shown.build().resources;
        for resource in ["nvidia.com/gpu", "cpu"] {
            assert_eq!(units(resource), expected.units(resource), "{name}: kept");
        }
    }
}
