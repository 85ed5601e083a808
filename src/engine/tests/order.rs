//! In which order requests are made, how many at a time, and which wait for which.

use std::time::Duration;

use serde_json::json;

use super::{Bench, Input, Rate, settings};
use crate::RequestError;
use crate::count::Count;
use crate::io::{Effect, Request};
use crate::survey::{QUEUE_DEPTH, WRITE_LIMIT, WRITES_IN_FLIGHT};
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};
use nodegate_core::condition::Watch;

const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn nodes<const N: usize>() -> [NodeBuilder; N] {
    std::array::from_fn(|index| node(&format!("n-{index}")))
}

fn writes_a_node(request: &Request) -> bool {
    matches!(request, Request::PatchNode(..))
}

/// The API server is overloaded and refuses all writes for five seconds.
fn busy(request: &Request) -> Option<RequestError> {
    let busy = RequestError::Throttled {
        message: "busy".into(),
        retry_after: Some(Duration::from_secs(5)),
    };
    request.is_write().then_some(busy)
}

fn held(bench: &Bench, count: usize) -> usize {
    let is_held = |index: &usize| bench.taints(&format!("n-{index}")) == [GATE];
    (0..count).filter(is_held).count()
}

#[test]
fn no_more_nodes_are_written_at_a_time_than_is_configured() {
    let mut two = settings();
    two.concurrency = 2;
    let mut bench = Bench::of(&two);
    bench.held_up = writes_a_node;
    bench.begin(&[gate()], &nodes::<5>());
    let seen = |bench: &Bench| {
        let gauges = [WRITES_IN_FLIGHT, QUEUE_DEPTH, WRITE_LIMIT];
        let [under_way, queued, limit] = gauges.map(|it| bench.gauge(&it, &[]).unwrap());
        (bench.pending.len(), under_way, queued, limit)
    };
    assert_eq!(seen(&bench), (2, 2, 3, 2));
    bench.answers();
    assert_eq!(held(&bench, 5), 2);
    assert_eq!(
        seen(&bench),
        (2, 2, 3, 2),
        "what has been written is evaluated again"
    );
}

#[test]
fn a_status_that_changes_while_it_is_written_is_written_again_in_its_turn() {
    let mut bench = Bench::of(&settings());
    bench.held_up = |request| matches!(request, Request::PatchRuleStatus(..));
    bench.begin(&[gate()], &[node("n-0")]);
    bench.wait(500);
    assert_eq!(bench.pending.len(), 1);
    bench.sees(&node("n-1"));
    bench.wait(3000);
    assert_eq!(bench.pending.len(), 1, "one at a time");
    bench.answers();
    bench.wait(100);
    assert_eq!(
        bench.pending.len(),
        1,
        "and the next one at once, since it is due"
    );
    bench.answers();
    assert_eq!(bench.status("r")["nodegate"]["matchedNodes"], json!(2));
}

#[test]
fn conditions_are_published_one_at_a_time_while_nodes_are_written() {
    let waiting = rule("c")
        .waits_for(COMPONENTS)
        .taint("readiness.k8s.io/c", "NoSchedule");
    let said =
        nodes::<3>().map(|node| node.condition(COMPONENTS, "False").condition("Net", "True"));
    let mut bench = Bench::of(&settings());
    bench.held_up = |request| {
        matches!(
            request,
            Request::PatchNode(..) | Request::PatchNodeStatus(..)
        )
    };
    bench.begin(&[gate(), waiting], &[&said[..], &[node("late")]].concat());
    let conditions = |bench: &Bench| {
        let pending = bench.pending.iter();
        pending
            .filter(|(_, request)| matches!(request, Request::PatchNodeStatus(..)))
            .count()
    };
    assert_eq!(conditions(&bench), 1);
    bench.answers();
    assert_eq!(
        conditions(&bench),
        2,
        "the others together, since no node is written any more"
    );
    bench.answers();
    bench.wait(100);
    for index in 0..3 {
        let published = &bench.node(&format!("n-{index}"))["status"]["conditions"];
        assert!(published.to_string().contains("True"), "{published}");
    }
}

#[test]
fn the_finalizer_and_the_status_of_a_rule_wait_for_a_common_pause_too() {
    let mut bench = Bench::new(&[], &[node("n-0")]);
    bench.refusal = busy;
    bench.sees_rule(&gate());
    bench.sees_rule(&gate_of("s").without_finalizer());
    let refused = bench.refused;
    bench.refusal = |_| None;
    bench.wait(4900);
    assert_eq!((bench.refused, bench.asked()), (refused, vec![]));
    bench.wait(1500);
    let mut asked = bench.asked();
    asked.sort();
    asked.dedup();
    assert_eq!(asked, ["node n-0", "rule s", "status of r", "status of s"]);
}

#[test]
fn work_for_many_rules_and_nodes_is_done_in_small_steps() {
    let (mut bench, mut inputs) = many(12, 5000);
    let (mut evaluations, mut statuses) = (Vec::new(), Vec::new());
    let end = bench.now.monotonic + Duration::from_secs(1);
    while bench.now.monotonic < end {
        let effects = bench.engine.take(inputs.drain(..), bench.now);
        let counts = |what: fn(&Effect) -> bool| effects.iter().filter(|it| what(it)).count();
        evaluations.push(counts(is_evaluation));
        statuses.push(counts(|it| {
            matches!(it, Effect::Request(_, Request::PatchRuleStatus(..)))
        }));
        inputs.extend(bench.confirmed());
        let wake = bench.engine.next_wake().unwrap();
        bench.now.monotonic = bench.now.monotonic.max(wake);
        bench.now.wall = at(100)
            .checked_add(bench.now.monotonic - bench.began)
            .unwrap();
    }
    assert_eq!(evaluations.iter().sum::<usize>(), 60_000);
    assert!(evaluations.iter().all(|it| *it <= 5000), "{evaluations:?}");
    let statuses: Vec<_> = statuses.into_iter().filter(|it| *it > 0).collect();
    assert_eq!(statuses, [10, 2]);
}

#[test]
fn fewer_nodes_are_evaluated_at_once_where_each_has_many_rules_to_compare() {
    let (mut bench, inputs) = many(64, 100);
    let effects = bench.engine.take(inputs, bench.now);
    let evaluations = effects.iter().filter(|it| is_evaluation(it)).count();
    assert!((1..=64 * 40).contains(&evaluations), "{evaluations}");
}

/// A bench that has seen nothing yet, and what it sees first: this many rules and nodes.
fn many(rules: usize, nodes: usize) -> (Bench, Vec<Input>) {
    let mut bench = Bench::of(&settings());
    let rules =
        (0..rules).map(|index| (Watch::Rules, gate_of(&format!("r-{index}")).json().clone()));
    let nodes = (0..nodes).map(|index| (Watch::Nodes, node(&format!("n-{index}")).json().clone()));
    for (watch, object) in rules.chain(nodes) {
        bench.cluster.put(watch, object);
    }
    let mut inputs = vec![Input::Leads];
    inputs.extend(bench.listed());
    (bench, inputs)
}

fn is_evaluation(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Count(Count::Rule(_, super::RuleCount::Evaluated))
    )
}

fn gate_of(name: &str) -> RuleBuilder {
    let taint = format!("readiness.k8s.io/{name}");
    rule(name)
        .waits_for("Nothing")
        .taint(&taint, "NoSchedule")
        .remove_only()
}

#[test]
fn no_more_is_written_a_second_than_is_configured() {
    let mut slow = settings();
    slow.rate = Some(Rate {
        per_second: 2.0,
        burst: 3.0,
    });
    let mut bench = Bench::of(&slow);
    bench.begin(&[gate()], &nodes::<9>());
    assert_eq!(held(&bench, 9), 3);
    bench.wait(1050);
    assert_eq!(held(&bench, 9), 5);
    bench.wait(1000);
    assert_eq!(held(&bench, 9), 7);
    bench.wait(20_000);
    assert_eq!(held(&bench, 9), 9);
}
