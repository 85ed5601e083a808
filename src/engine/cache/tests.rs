//! Events of watches and answers to writes go in; what is known comes out.

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::config::Config;
use crate::engine::io::Now;
use crate::object::{CsiNodeObject, MetadataObject, PodObject};
use crate::plan::{Decision, History, NodePlan, Outcome, Standing, plan};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, daemon_set, node, rule};

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
    cache.weigh(now_by_both());
    assert!(cache.is_certain());
    cache
}

fn now_by_both() -> Now {
    Now {
        wall: at(0),
        monotonic: Instant::now(),
    }
}

/// What the rule decides on the node `n`.
fn decision(cache: &mut Cache, now: Timestamp) -> Decision {
    cache.select_rules("n", now);
    let state = cache.node("n").unwrap();
    let history = History {
        is_known: false,
        looked: Doubts::default(),
        memories: &[],
        may_close: &[],
        watching_since: at(0),
    };
    let NodePlan { outcomes, .. } = plan(cache.cluster(), state, history, now);
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
        cache.weigh(now_by_both());
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
    cache.patched_node(answer.try_into().unwrap(), None);
    cache.update_node(rebooted.object(), at(60));
    assert_eq!(decision(&mut cache, at(60)), Decision::Gate);
}

#[test]
fn a_cluster_without_karpenter_is_certain_of_it() {
    let mut cache = Cache::new(Vec::new(), Vec::new(), false, true);
    for watch in [Watch::Nodes, Watch::CsiNodes, Watch::Rules] {
        cache.apply(Change::Confirmed(watch, 0), at(0));
    }
    cache.weigh(now_by_both());
    assert!(!cache.is_certain(), "nobody knows yet");
    cache.apply(Change::NoNodeClaims, at(0));
    cache.apply(Change::NoNodePools, at(0));
    cache.weigh(now_by_both());
    assert!(cache.is_certain());
}

/// A cache that has synced, with Gardener's class, a rule that waits for it and the node `n`.
fn waiting_for_components() -> Cache {
    let classes = Config::default().classes().unwrap();
    let mut cache = Cache::new(classes, Vec::new(), false, false);
    cache.begin_evaluations();
    let gate = rule("r").waits_for("node.gardener.cloud/CriticalComponentsReady");
    for change in [
        Change::Rule(Event::Init),
        Change::Rule(Event::InitApply(gate.object())),
        Change::Rule(Event::InitDone),
        Change::CsiNode(Event::InitDone),
        Change::Pod(0, Event::InitDone),
        Change::DaemonSet(0, Event::InitDone),
        Change::Node(Event::Init),
        Change::Node(Event::InitApply(node("n").version(1).object())),
        Change::Node(Event::InitDone),
    ] {
        cache.apply(change, at(0));
    }
    while cache.next_dirty().is_some() {}
    assert!(cache.has_synced() && cache.node("n").is_some());
    cache
}

/// An object of any form.
fn object<T: DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// The nodes that have to be evaluated, and why the node `n` is left as it is.
fn follows(cache: &mut Cache) -> (Vec<Arc<str>>, Option<String>) {
    let dirty = std::iter::from_fn(|| cache.next_dirty()).collect();
    (dirty, cache.left_alone("n").map(ToString::to_string))
}

fn odd_node() -> NodeObject {
    object(json!({"metadata": {"name": "n", "uid": "n-uid"}, "status": "up"}))
}

fn odd_csi_node() -> CsiNodeObject {
    object(json!({"metadata": {"name": "n"}, "spec": []}))
}

fn odd_pod() -> PodObject {
    let meta = json!({"namespace": "kube-system", "name": "p"});
    object(json!({"metadata": meta, "spec": {"nodeName": "n"}, "status": 5}))
}

#[test]
fn a_node_is_left_as_it_is_while_something_about_it_cannot_be_understood() {
    let pod = || object(json!({"metadata": {"namespace": "kube-system", "name": "p"}}));
    let csi_node = || object(json!({"metadata": {"name": "n"}}));
    let node = node("n").version(2);
    for (odd, said, cures) in [
        (
            (|| Change::Node(Event::Apply(odd_node()))) as fn() -> Change,
            "Node n cannot be understood: status has a form that the API does not know",
            vec![
                vec![Change::Node(Event::Apply(node.object()))],
                vec![Change::Node(Event::Delete(odd_node()))],
            ],
        ),
        (
            || Change::CsiNode(Event::Apply(odd_csi_node())),
            "CSINode n cannot be understood: spec has a form that the API does not know",
            vec![
                vec![Change::CsiNode(Event::Apply(csi_node()))],
                vec![Change::CsiNode(Event::Delete(odd_csi_node()))],
                vec![
                    Change::CsiNode(Event::Init),
                    Change::CsiNode(Event::InitDone),
                ],
            ],
        ),
        (
            || Change::Pod(0, Event::Apply(odd_pod())),
            "Pod kube-system/p cannot be understood: status has a form that the API does not know",
            vec![
                vec![Change::Pod(0, Event::Apply(pod()))],
                vec![Change::Pod(0, Event::Delete(odd_pod()))],
                vec![Change::Pod(0, Event::Init), Change::Pod(0, Event::InitDone)],
            ],
        ),
    ] {
        for cure in cures {
            let mut cache = waiting_for_components();
            let as_it_was = |cache: &Cache| cache.node("n").map(|state| state.node.clone());
            let before = as_it_was(&cache);
            cache.apply(odd(), at(10));
            let left = (vec!["n".into()], Some(said.to_owned()));
            assert_eq!(follows(&mut cache), left);
            assert_eq!(as_it_was(&cache), before, "{said}");
            assert_eq!(cache.tell_unreadable()[0].to_string(), said);
            cache.apply(odd(), at(15));
            assert_eq!(cache.tell_unreadable(), [], "{said}: it is no news");
            for change in cure {
                cache.apply(change, at(20));
            }
            assert_eq!(follows(&mut cache), (vec!["n".into()], None), "{said}");
        }
    }
}

#[test]
fn a_list_with_something_odd_in_it_is_a_list_all_the_same() {
    let mut cache = waiting_for_components();
    for change in [
        Change::Node(Event::Init),
        Change::Node(Event::InitApply(object(json!(5)))),
        Change::Node(Event::InitApply(object(
            json!({"metadata": {"name": "n"}, "spec": 5}),
        ))),
        Change::Node(Event::InitApply(node("m").object())),
        Change::Node(Event::InitDone),
    ] {
        cache.apply(change, at(10));
    }
    let mut names: Vec<_> = cache.node_names().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, ["m", "n"], "n is there, whatever it is like");
    assert!(cache.left_alone("n").is_some() && cache.left_alone("m").is_none());
    assert_eq!(cache.unreadable_counts()["Node"], 2);
}

#[test]
fn a_daemon_set_that_cannot_be_understood_is_taken_as_it_was() {
    let cni = daemon_set("kube-system/cni").critical();
    let odd = || {
        let meta = json!({"namespace": "kube-system", "name": "cni"});
        object(json!({"metadata": meta, "spec": {"template": 5}}))
    };
    let mut cache = waiting_for_components();
    cache.apply(Change::DaemonSet(0, Event::Apply(cni.object())), at(10));
    let before = cache.cluster().daemon_sets.to_vec();
    follows(&mut cache);
    cache.apply(Change::DaemonSet(0, Event::Apply(odd())), at(20));
    assert_eq!(cache.cluster().daemon_sets, before);
    assert_eq!(follows(&mut cache), (vec![], None));
    let told = cache.tell_unreadable();
    assert!(
        told[0]
            .to_string()
            .starts_with("DaemonSet kube-system/cni cannot be understood: spec: template"),
        "{told:?}"
    );
    cache.apply(Change::DaemonSet(0, Event::Delete(odd())), at(30));
    assert!(cache.cluster().daemon_sets[0].is_empty());
    assert_eq!(cache.unreadable_counts()["DaemonSet"], 0);
}

#[test]
fn a_daemon_set_in_a_namespace_that_does_not_count_has_no_node_evaluated() {
    let mut cache = waiting_for_components();
    cache.take_rules_changed();
    for (key, evaluated) in [("tenant/agent", false), ("kube-system/cni", true)] {
        let labelled = daemon_set(key).critical();
        cache.apply(
            Change::DaemonSet(0, Event::Apply(labelled.object())),
            at(10),
        );
        assert!(cache.take_rules_changed(), "{key}: rules tell of it");
        assert_eq!(!follows(&mut cache).0.is_empty(), evaluated, "{key}");
    }
}
