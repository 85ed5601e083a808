//! Published conditions.

use serde_json::{Value, json};

use super::Bench;
use crate::RequestError;
use crate::io::Request;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, node, pod, rule};
use nodegate_core::condition::{ComponentGroup, Watch};

const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";

fn waiting() -> RuleBuilder {
    rule("r").waits_for(COMPONENTS)
}

/// A node with a published condition of this status.
fn said(status: &str) -> NodeBuilder {
    node("n").condition(COMPONENTS, status)
}

fn published(bench: &Bench) -> Value {
    let conditions = bench.node("n")["status"]["conditions"].as_array();
    let published = conditions.into_iter().flatten();
    published
        .map(|it| json!([it["type"], it["status"]]))
        .collect()
}

/// The published condition's list of unready pods, and its transition time.
fn detail(bench: &Bench) -> (String, Value) {
    let conditions = bench.node("n")["status"]["conditions"].as_array().unwrap();
    let condition = &conditions[0];
    let message = condition["message"].as_str().unwrap().to_owned();
    (message, condition["lastTransitionTime"].clone())
}

#[test]
fn a_message_that_changes_alone_is_written_every_five_seconds_at_most_and_keeps_its_time() {
    let show = |bench: &mut Bench, name: &str| {
        let unready = pod(&format!("kube-system/{name}")).critical().on("n");
        bench.shows(
            Watch::Pods(ComponentGroup::Class(0)),
            unready.clone().json().clone(),
        );
    };
    let mut bench = Bench::new(&[waiting()], &[said("True")]);
    bench.wait(3000);
    show(&mut bench, "a");
    bench.wait(1000);
    let (first, since) = detail(&bench);
    assert!(first.contains("/a"), "{first}");
    show(&mut bench, "b");
    bench.wait(2000);
    show(&mut bench, "c");
    bench.wait(2900);
    assert_eq!(detail(&bench).0, first);
    bench.asked();
    bench.wait(200);
    let (message, still) = detail(&bench);
    assert!(
        message.contains("/b") && message.contains("/c"),
        "{message}"
    );
    assert_eq!(still, since);
    assert_eq!(bench.asked(), ["conditions of n"]);
    // A change of status is written at once, with its own time.
    for name in ["a", "b", "c"] {
        let ready = pod(&format!("kube-system/{name}"))
            .critical()
            .on("n")
            .ready();
        bench.shows(
            Watch::Pods(ComponentGroup::Class(0)),
            ready.clone().json().clone(),
        );
    }
    assert_eq!(published(&bench), json!([[COMPONENTS, "True"]]));
    assert_ne!(detail(&bench).1, since);
}

#[test]
fn what_is_refused_on_many_nodes_is_retried_slowly_and_gets_through_when_it_may() {
    let names: Vec<String> = (0..100).map(|index| format!("n-{index}")).collect();
    let nodes: Vec<_> = names
        .iter()
        .map(|name| node(name).condition(COMPONENTS, "False"))
        .collect();
    let mut bench = Bench::refusing(&[waiting()], &nodes, |request| match request {
        Request::PatchNodeStatus(..) => Some(RequestError::Failed("forbidden".into())),
        _ => None,
    });
    bench.wait(20_000);
    let before = bench.refused;
    bench.wait(10_000);
    let tries = bench.refused - before;
    assert!((5..=150).contains(&tries), "{tries} in ten seconds");
    bench.refusal = |_| None;
    bench.wait(3000);
    let is_published = |name: &&String| {
        let conditions = bench.node(name)["status"]["conditions"].to_string();
        conditions.contains("\"True\"")
    };
    assert_eq!(names.iter().filter(is_published).count(), 100);
}

#[test]
fn conditions_of_a_node_that_comes_again_wait_for_the_write_about_the_earlier_one() {
    let mut bench = Bench::new(&[waiting()], &[]);
    bench.held_up = |request| matches!(request, Request::PatchNodeStatus(..));
    bench.sees(&said("False"));
    assert_eq!(bench.pending.len(), 1);
    bench.gone("n");
    bench.sees(&said("False").uid("another"));
    bench.wait(3000);
    assert_eq!(bench.pending.len(), 1, "one at a time");
    bench.refusal = |_| Some(RequestError::Conflict);
    bench.answers();
    bench.refusal = |_| None;
    bench.wait(3000);
    bench.answers();
    assert_eq!(published(&bench), json!([[COMPONENTS, "True"]]));
}

#[test]
fn a_published_condition_that_others_keep_changing_is_repeated_ever_more_slowly() {
    for others in [
        json!([]),
        json!([{ "type": COMPONENTS, "status": "Unknown" }]),
    ] {
        let mut bench = Bench::new(&[waiting()], &[node("n")]);
        bench.wait(3000);
        bench.asked();
        for _ in 0..600 {
            bench.change("n", |node| node["status"]["conditions"] = others.clone());
            bench.wait(1100);
        }
        let asked = bench.asked();
        let writes = asked.iter().filter(|it| **it == "conditions of n");
        let writes = writes.count();
        assert!((6..20).contains(&writes), "{writes} in eleven minutes");
        bench.wait(600_000);
        assert_eq!(published(&bench), json!([[COMPONENTS, "True"]]));
    }
}

#[test]
fn a_rule_whose_class_is_lost_changes_nothing_and_says_so() {
    let mut lost = super::settings();
    lost.classes.clear();
    let held = node("held")
        .taint(GATE, "NoSchedule")
        .owned_by("r", GATE, "NoSchedule");
    let published =
        json!({"type": COMPONENTS, "status": "True", "reason": "CriticalComponentsReady"});
    let open = node("open").condition_with(published);
    let mut bench = Bench::of(&lost);
    bench.begin(&[waiting()], &[held, open, node("unreported")]);
    bench.wait(10_000);
    bench.sees(&node("joins"));
    bench.wait(10_000);
    assert_eq!(bench.asked(), ["status of r"]);
    let status = bench.status("r")["conditions"].to_string();
    for (kind, is, reason) in [
        ("Accepted", "False", "NoSuchClass"),
        ("ConditionsNotMade", "True", "NoSuchClass"),
        ("Suspended", "True", "Suspended"),
    ] {
        let conditions = bench.status("r")["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|it| it["type"] == kind);
        let found = found.unwrap_or_else(|| panic!("{kind}: {status}"));
        assert_eq!(
            [&found["status"], &found["reason"]],
            [is, reason],
            "{status}"
        );
    }
    assert!(
        status.contains("has the prefix node.gardener.cloud/"),
        "{status}"
    );
}

#[test]
fn nothing_is_published_where_that_is_not_wanted() {
    let mut silent = super::settings();
    silent.publish_conditions = false;
    let mut bench = Bench::of(&silent);
    bench.begin(&[waiting()], &[node("n")]);
    bench.wait(10_000);
    assert_eq!(bench.asked(), ["status of r"]);
}
