//! Events of watches and answers to writes go in; what is known comes out.

use serde_json::json;

use super::*;
use crate::object::MetadataObject;
use crate::rule::{Decision, NodePlan, Outcome, Standing, plan};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, node, rule};

/// A cache that has synced, with this node and this rule.
fn synced(node: &NodeBuilder, rule: &RuleBuilder) -> Cache {
    let mut cache = Cache::new(Vec::new(), Vec::new(), false, false);
    for change in [
        Change::Rule(Event::Init),
        Change::Rule(Event::InitApply(rule.object())),
        Change::Rule(Event::InitDone),
        Change::CsiNode(Event::Init),
        Change::CsiNode(Event::InitDone),
        Change::Node(Event::Init),
        Change::Node(Event::InitApply(node.object())),
        Change::Node(Event::InitDone),
        Change::Confirmed(Watch::Rules, 0),
        Change::Confirmed(Watch::CsiNodes, 0),
        Change::Confirmed(Watch::Nodes, 0),
    ] {
        cache.apply(change, at(0));
    }
    assert!(cache.has_synced());
    cache.weigh(Instant::now());
    assert!(cache.is_certain());
    cache
}

/// What the rule decides on the node `n`.
fn decision(cache: &mut Cache, now: Timestamp) -> Decision {
    cache.select_rules("n", now);
    let state = cache.node("n").unwrap();
    let NodePlan { outcomes, .. } = plan(cache.cluster(), state, now);
    let outcomes: Vec<&Outcome> = outcomes.iter().collect();
    match outcomes[0].standing {
        Standing::Governs(decision) => decision,
        other => panic!("{other:?}"),
    }
}

/// The node `n` in a boot, last written by its reporter at that time; its bootstrap was completed in boot `a`.
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
        .spec("regateOnReboot: true")
}

#[test]
fn a_reboot_counts_whichever_shows_it_first_the_watch_or_an_answer() {
    let rebooted = booted("b", 0, 12);
    for (name, show) in [
        (
            "the watch",
            (|cache, node| cache.apply(Change::Node(Event::Apply(node)), at(60)))
                as fn(&mut Cache, NodeObject),
        ),
        ("an answer", |cache, node| cache.update_node(node, at(60))),
    ] {
        let mut cache = synced(&booted("a", 0, 10), &regating());
        let open = Decision::Open {
            completes_bootstrap: false,
        };
        assert_eq!(decision(&mut cache, at(50)), open);
        show(&mut cache, rebooted.object());
        assert_eq!(decision(&mut cache, at(60)), Decision::Gate, "{name}");
        cache.apply(Change::Node(Event::Apply(rebooted.object())), at(61));
        assert_eq!(decision(&mut cache, at(61)), Decision::Gate, "{name}");
        let beat = booted("b", 70, 13);
        cache.apply(Change::Node(Event::Apply(beat.object())), at(70));
        let done = Decision::Open {
            completes_bootstrap: true,
        };
        assert_eq!(decision(&mut cache, at(70)), done, "{name}");
    }
}

#[test]
fn what_was_written_before_the_reboot_is_not_taken_for_news_when_the_watch_shows_it_late() {
    let mut cache = synced(&booted("a", 0, 10), &regating());
    // The reporter beats, the node reboots, and an answer shows both at once.
    cache.update_node(booted("b", 5, 12).object(), at(60));
    for late in [booted("a", 5, 11), booted("b", 5, 12)] {
        cache.apply(Change::Node(Event::Apply(late.object())), at(61));
        assert_eq!(decision(&mut cache, at(61)), Decision::Gate);
    }
}

#[test]
fn what_was_confirmed_before_everything_was_doubted_does_not_end_the_doubt() {
    let mut cache = synced(&node("n"), &regating());
    cache.doubt_all(3);
    for (confirmation, certain) in [(2, false), (3, true)] {
        for watch in [Watch::Nodes, Watch::CsiNodes, Watch::Rules] {
            cache.apply(Change::Confirmed(watch, confirmation), at(60));
        }
        cache.weigh(Instant::now());
        assert_eq!(cache.is_certain(), certain, "{confirmation}");
    }
}

#[test]
fn a_node_came_when_a_watch_showed_it_or_since_the_view_was_last_certain() {
    let joined = |cache: &Cache, name: &str| cache.node(name).unwrap().joined;
    let mut cache = synced(&node("n"), &regating());
    assert_eq!(joined(&cache, "n"), None, "it was there before");
    cache.apply(Change::Node(Event::Apply(node("new").object())), at(60));
    assert_eq!(joined(&cache, "new"), Some(at(60)));
    cache.apply(Change::Interrupted(Watch::Nodes), at(70));
    cache.apply(Change::Node(Event::Apply(node("late").object())), at(80));
    assert!(joined(&cache, "late") <= Some(at(80)), "at any time since");
}

#[test]
fn an_instance_that_does_not_lead_notes_no_nodes_and_evaluates_all_once_it_does() {
    let mut cache = Cache::new(Vec::new(), Vec::new(), false, false);
    for index in 0..100 {
        let node = node(&format!("n-{index}"));
        cache.apply(Change::Node(Event::Apply(node.object())), at(0));
        if index < 90 {
            cache.apply(Change::Node(Event::Delete(node.object())), at(1));
        }
    }
    assert_eq!(cache.dirty_count(), 0);
    cache.begin_evaluations();
    assert_eq!(cache.dirty_count(), 10);
}

#[test]
fn an_answer_shows_what_the_answer_to_a_patch_left_out() {
    let mut cache = synced(&booted("a", 0, 10), &regating());
    // The node reboots and is patched; the answer says nothing of its status.
    let mut rebooted = booted("b", 0, 12);
    let answer: MetadataObject = serde_json::from_value(rebooted.json().clone()).unwrap();
    cache.patched_node(answer.into(), None);
    cache.update_node(rebooted.object(), at(60));
    assert_eq!(decision(&mut cache, at(60)), Decision::Gate);
}

#[test]
fn a_cluster_without_karpenter_is_certain_of_it() {
    let mut cache = Cache::new(Vec::new(), Vec::new(), false, true);
    for watch in [Watch::Nodes, Watch::CsiNodes, Watch::Rules] {
        cache.apply(Change::Confirmed(watch, 0), at(0));
    }
    cache.weigh(Instant::now());
    assert!(!cache.is_certain(), "nobody knows yet");
    cache.apply(Change::NoNodeClaims, at(0));
    cache.apply(Change::NoNodePools, at(0));
    cache.weigh(Instant::now());
    assert!(cache.is_certain());
}
