//! How watch events and write responses change the cache.

mod lists;
mod named;
mod unreadable;

use std::sync::LazyLock;
use std::time::Duration;
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::turn::Changes;
use super::*;
use crate::condition::ComponentGroup;
use crate::config::Config;
use crate::engine::io::{Object, Seen};
use crate::object::{Node, Watched};
use crate::plan::{Decision, NodeHistory, NodePlan, Outcome, Standing, plan};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, daemon_set, node, rule};

/// The time `at(0)` by the monotonic clock.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time `at(seconds)`, by both clocks.
fn now(seconds: u64) -> Now {
    Now {
        wall: at(i64::try_from(seconds).unwrap()),
        monotonic: *START + Duration::from_secs(seconds),
    }
}

/// With Gardener's class.
fn with_gardener() -> Settings {
    Settings {
        classes: Config::default().classes().unwrap(),
        ..Settings::default()
    }
}

/// With Karpenter's objects, too.
fn with_karpenter() -> Settings {
    Settings {
        enable_karpenter: true,
        ..with_gardener()
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
    assert!(cache.has_synced());
    cache.assess_freshness(now(0));
    assert!(cache.cluster().stale.is_empty());
    cache
}

/// A list begins, which is asked for at this time.
fn init(watch: Watch, asked: u64) -> Seen {
    Seen::Init(watch, now(asked).monotonic)
}

/// The watch lists this object, or none.
fn lists(cache: &mut Cache, watch: Watch, object: Option<Object>) {
    let listing = [init(watch, 1)].into_iter();
    let listing = listing.chain(object.map(Seen::Apply));
    for seen in listing.chain([Seen::InitDone(watch)]) {
        cache.apply(seen, now(1));
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

/// A synced cache with Gardener's class, a rule that waits for it and the node `n`.
fn waiting_for_components() -> Cache {
    let mut cache = Cache::new(&with_gardener(), now(0));
    cache.begin_evaluations();
    let gate = rule("r").waits_for("node.gardener.cloud/CriticalComponentsReady");
    for seen in [
        init(Watch::Rules, 0),
        Seen::Apply(Object::Rule(gate.object())),
        Seen::InitDone(Watch::Rules),
        init(Watch::Nodes, 0),
        Seen::Apply(Object::Node(node("n").version(1).object())),
        Seen::InitDone(Watch::Nodes),
        Seen::InitDone(Watch::CsiNodes),
        Seen::InitDone(Watch::Pods(ComponentGroup::Class(0))),
        Seen::InitDone(Watch::DaemonSets(ComponentGroup::Class(0))),
    ] {
        cache.apply(seen, now(0));
    }
    while cache.turn.next().is_some() {}
    assert!(cache.has_synced() && cache.node("n").is_some());
    cache
}

/// Decodes an object.
fn object<T: DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// The queued nodes, and why the node `n` is left as it is.
fn follows(cache: &mut Cache) -> (Vec<Arc<str>>, Option<String>) {
    let dirty = std::iter::from_fn(|| cache.turn.next()).collect();
    (
        dirty,
        cache
            .stores
            .unreadable
            .left_alone("n")
            .map(ToString::to_string),
    )
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
fn a_reboot_counts_whichever_shows_it_first_the_watch_or_an_answer() {
    let rebooted = booted("b", 0, 12);
    for (name, show) in [
        (
            "the watch",
            (|cache, node| cache.apply(Seen::Apply(Object::Node(node)), now(60)))
                as fn(&mut Cache, Watched<Node>),
        ),
        ("an answer", |cache, node| answer(cache, node)),
    ] {
        let mut cache = synced(&booted("a", 0, 10), &regating());
        let not_held = (Decision::NotHeld, false);
        assert_eq!(decision(&mut cache, at(50)), not_held);
        show(&mut cache, rebooted.object());
        assert_eq!(
            decision(&mut cache, at(60)),
            (Decision::Gate, false),
            "{name}"
        );
        cache.apply(Seen::Apply(Object::Node(rebooted.object())), now(61));
        assert_eq!(
            decision(&mut cache, at(61)),
            (Decision::Gate, false),
            "{name}"
        );
        let beat = booted("b", 70, 13);
        cache.apply(Seen::Apply(Object::Node(beat.object())), now(70));
        let done = (Decision::NotHeld, true);
        assert_eq!(decision(&mut cache, at(70)), done, "{name}");
    }
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
fn a_list_from_before_everything_became_stale_does_not_make_it_current() {
    let mut cache = synced(&node("n"), &regating());
    cache.views.require(now(59).monotonic);
    for (as_of, certain) in [(58, false), (59, true)] {
        for watch in [Watch::Nodes, Watch::Rules] {
            cache.current(watch, now(as_of).monotonic, now(60));
        }
        cache.assess_freshness(now(60));
        assert_eq!(cache.cluster().stale.is_empty(), certain, "{as_of}");
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
                cache.current(Watch::Nodes, now(gap_ends).monotonic, now(gap_ends));
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
    cache.current(Watch::Nodes, now(12).monotonic, now(12));
    cache.apply(Seen::Apply(Object::Node(node("new").object())), now(13));
    assert_eq!(joined(&cache, "new"), Some(at(13)));
}

#[test]
fn an_instance_that_does_not_lead_notes_no_statuses_either() {
    let mut cache = synced(&node("n"), &regating());
    for (leads, held) in [(false, 1), (true, 2)] {
        if leads {
            cache.begin_evaluations();
        }
        let mut rule = regating();
        rule.json()["status"] = json!({ "nodegate": { "heldNodes": held } });
        cache.apply(Seen::Apply(Object::Rule(rule.object())), now(10));
        let changes = std::mem::take(&mut cache.turn.changes);
        assert_eq!(changes.statuses.len(), usize::from(leads));
    }
    cache.apply(Seen::Apply(Object::Node(node("n").object())), now(11));
    assert_eq!(cache.turn.changes.statuses.len(), 0, "once");
}

#[test]
fn what_the_answer_to_a_patch_left_out_is_seen_when_the_watch_shows_that_version() {
    let mut cache = synced(&booted("a", 0, 10), &regating());
    let rebooted = booted("b", 0, 12);
    cache.patched_node(12, rebooted.build(), None);
    cache.apply(Seen::Apply(Object::Node(rebooted.object())), now(60));
    assert_eq!(decision(&mut cache, at(60)), (Decision::Gate, false));
}

#[test]
fn an_instance_that_does_not_lead_notes_no_nodes_and_evaluates_all_once_it_does() {
    let mut cache = Cache::new(&Settings::default(), now(0));
    for index in 0..100 {
        let node = node(&format!("n-{index}"));
        cache.apply(Seen::Apply(Object::Node(node.object())), now(0));
        if index < 90 {
            cache.apply(Seen::Delete(Object::Node(node.object())), now(1));
        }
    }
    assert_eq!(cache.turn.len(), 0);
    cache.begin_evaluations();
    assert_eq!(cache.turn.len(), 10);
}

#[test]
fn an_answer_shows_what_the_answer_to_a_patch_left_out() {
    let mut cache = synced(&booted("a", 0, 10), &regating());
    // The node reboots and is patched; the response lacks its status.
    let rebooted = booted("b", 0, 12);
    cache.patched_node(12, rebooted.build(), None);
    answer(&mut cache, rebooted.object());
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
fn an_answer_that_shows_another_rule_of_the_name_tells_that_the_known_one_is_gone() {
    let shown = |uid: &str, version: u64| {
        let mut rule = regating();
        rule.json()["metadata"]["uid"] = uid.into();
        rule.json()["metadata"]["resourceVersion"] = version.to_string().into();
        rule
    };
    for (version, is_there) in [(9, true), (0, true), (12, false)] {
        let mut cache = synced(&booted("a", 0, 10), &shown("r-uid", 10));
        let another = shown("another", version).object();
        cache.apply_answer(Object::Rule(another), now(60));
        assert_eq!(cache.rules.all.len() == 1, is_there, "{version}");
    }
}

#[test]
fn a_claim_is_news_where_more_than_its_version_is_new_and_ends_where_an_answer_shows_another() {
    let claim = |uid: &str, version: u64| {
        let meta = json!({"name": "c", "uid": uid, "resourceVersion": version.to_string()});
        let claim = json!({"metadata": meta, "status": {"nodeName": "n"}});
        Object::NodeClaim(object(claim))
    };
    let rule = rule("r").waits_for("Net").bootstrap_only();
    let rule = rule.nodegate("repair: {readinessTTL: 1m, action: DeleteNodeClaim}");
    let mut cache = Cache::new(&with_karpenter(), now(0));
    for (watch, object) in [
        (Watch::Rules, Some(Object::Rule(rule.object()))),
        (Watch::NodePools, None),
        (Watch::NodeClaims, Some(claim("uid", 10))),
        (Watch::Nodes, Some(Object::Node(node("n").object()))),
    ] {
        lists(&mut cache, watch, object);
    }
    cache.begin_evaluations();
    assert_eq!(follows(&mut cache).0, ["n".into()]);
    cache.apply(Seen::Apply(claim("uid", 11)), now(1));
    assert_eq!(follows(&mut cache).0, [] as [Arc<str>; 0]);
    cache.apply_answer(claim("another", 12), now(60));
    assert!(cache.claims.get("c").is_none());
    assert_eq!(follows(&mut cache).0, ["n".into()]);
}

#[test]
fn a_cluster_without_karpenter_is_certain_of_it() {
    let mut cache = Cache::new(&with_karpenter(), now(0));
    for watch in [Watch::Nodes, Watch::Rules] {
        cache.current(watch, now(0).monotonic, now(0));
    }
    cache.assess_freshness(now(0));
    assert!(!cache.cluster().stale.is_empty(), "nobody knows yet");
    cache.apply(Seen::NotInstalled(Watch::NodeClaims), now(0));
    cache.apply(Seen::NotInstalled(Watch::NodePools), now(0));
    cache.assess_freshness(now(0));
    assert!(cache.cluster().stale.is_empty());
}

#[test]
fn a_daemon_set_in_a_namespace_that_does_not_count_has_no_node_evaluated() {
    let mut cache = waiting_for_components();
    for (key, evaluated) in [("tenant/agent", false), ("kube-system/cni", true)] {
        let labelled = daemon_set(key).critical();
        cache.turn.changes = Changes::default();
        cache.apply(
            Seen::Apply(Object::DaemonSet(
                ComponentGroup::Class(0),
                labelled.object(),
            )),
            now(10),
        );
        assert!(cache.turn.changes.rules, "{key}: rules tell of it");
        assert_eq!(!follows(&mut cache).0.is_empty(), evaluated, "{key}");
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
        while cache.turn.next().is_some() {}
        let shown = shown.version(2);
        cache.apply(Seen::Apply(Object::Node(shown.object())), now(10));
        assert_eq!(!follows(&mut cache).0.is_empty(), is_news, "{name}");
        let units = |resource| cache.node("n").unwrap().node.resources.units(resource);
        let expected = shown.build().resources;
        for resource in ["nvidia.com/gpu", "cpu"] {
            assert_eq!(units(resource), expected.units(resource), "{name}: kept");
        }
    }
}
