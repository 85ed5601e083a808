//! In which order requests are made, how many at a time, and which wait for which.

use std::time::Duration;

use serde_json::json;

use super::{Bench, Input, Rate, Seen, settings};
use crate::condition::{ComponentGroup, Watch};
use crate::engine::RequestError;
use crate::engine::count::Count;
use crate::engine::io::{Effect, Request};
use crate::engine::survey::{QUEUE_DEPTH, WRITE_LIMIT, WRITES_IN_FLIGHT};
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};

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
    assert!(!bench.engine.is_idle());
    bench.answers();
    assert_eq!(held(&bench, 5), 2);
    assert_eq!(
        seen(&bench),
        (2, 2, 3, 2),
        "what has been written is evaluated again"
    );
    bench.answers();
    bench.answers();
    assert_eq!(held(&bench, 5), 5);
    bench.wait(1000);
    assert_eq!(seen(&bench), (0, 0, 0, 2));
    assert!(bench.engine.is_idle());
}

#[test]
fn a_node_is_not_written_again_before_its_write_is_answered() {
    let mut bench = Bench::new(&[gate()], &[node("n").condition("Net", "True")]);
    bench.held_up = writes_a_node;
    let network = |bench: &mut Bench, status: &str| {
        bench.change("n", |node| {
            node["status"]["conditions"][0]["status"] = json!(status);
        });
    };
    network(&mut bench, "False");
    network(&mut bench, "True");
    bench.wait(5000);
    assert_eq!(bench.pending.len(), 1);
    bench.answers();
    assert_eq!(bench.taints("n"), [GATE]);
    assert_eq!(bench.pending.len(), 1, "it is to be released again");
    bench.answers();
    assert_eq!(bench.taints("n"), [""; 0]);
}

#[test]
fn events_wait_while_nodes_are_written_but_not_for_ever() {
    let mut bench = Bench::new(&[gate()], &[]);
    bench.held_up = |request| match request {
        Request::PatchNode(name, _) => **name == *"slow",
        _ => false,
    };
    bench.sees(&node("slow"));
    bench.sees(&node("n"));
    assert_eq!(bench.taints("n"), [GATE]);
    bench.wait(990);
    assert_eq!(bench.told(), [""; 0]);
    assert!(!bench.engine.is_idle());
    bench.wait(20);
    assert_eq!(bench.told().len(), 1);
    bench.answers();
    assert_eq!(
        bench.told().len(),
        1,
        "at once, since nothing is written any more"
    );
}

#[test]
fn few_events_are_posted_at_a_time_and_one_that_is_refused_is_dropped() {
    let mut bench = Bench::of(&settings());
    bench.held_up = |request| matches!(request, Request::PostEvent { .. });
    bench.begin(&[gate()], &nodes::<6>());
    assert_eq!(bench.pending.len(), 4);
    bench.counted();
    bench.refusal = |request| match request {
        Request::PostEvent { .. } => Some(RequestError::Failed("forbidden".into())),
        _ => None,
    };
    bench.answers();
    assert_eq!(bench.counted(), ["EventDropped"; 4]);
    bench.refusal = |_| None;
    bench.answers();
    assert_eq!(bench.told().len(), 2);
    assert_eq!(bench.counted(), [""; 0]);
}

#[test]
fn what_is_told_bears_the_time_at_which_it_happened_and_a_number_of_its_own() {
    let mut bench = Bench::of(&settings());
    bench.held_up = |request| match request {
        Request::PatchNode(name, _) => **name == *"n-0",
        Request::PostEvent { .. } => true,
        _ => false,
    };
    bench.begin(&[gate()], &nodes::<3>());
    let happened = bench.now.wall;
    bench.wait(2000);
    let mut numbers = Vec::new();
    for (_, request) in &bench.pending {
        if let Request::PostEvent { at, number, .. } = request {
            assert_eq!(*at, happened);
            numbers.push(*number);
        }
    }
    assert_eq!(numbers.len(), 2);
    assert_ne!(numbers[0], numbers[1]);
}

#[test]
fn a_status_is_put_off_while_nodes_are_written_but_not_for_ever() {
    let mut bench = Bench::of(&settings());
    bench.held_up = writes_a_node;
    bench.begin(&[gate()], &[node("n-0")]);
    bench.wait(3100);
    assert_eq!(bench.asked(), [""; 0]);
    bench.wait(400);
    assert_eq!(bench.asked(), ["status of r"]);
    bench.answers();
    bench.wait(5000);
    assert_eq!(bench.asked(), ["node n-0", "status of r"]);
}

#[test]
fn a_status_is_written_when_nodes_are_written_no_more() {
    let mut bench = Bench::of(&settings());
    bench.held_up = writes_a_node;
    bench.begin(&[gate()], &[node("n-0")]);
    bench.wait(1000);
    bench.answers();
    bench.wait(250);
    assert_eq!(bench.asked(), ["node n-0", "status of r"]);
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
fn all_writes_wait_as_long_as_the_api_server_says() {
    let mut bench = Bench::of(&settings());
    bench.held_up = writes_a_node;
    bench.begin(&[gate()], &nodes::<3>());
    bench.refusal = busy;
    bench.wait(10);
    bench.answers();
    bench.held_up = |_| false;
    bench.refusal = |_| None;
    let limit = bench.gauge(&WRITE_LIMIT, &[]);
    assert_eq!(limit, Some(32), "halved once for all three");
    bench.wait(4900);
    assert_eq!(bench.asked(), [""; 0]);
    bench.wait(200);
    assert_eq!(held(&bench, 3), 3);
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
fn events_that_are_refused_hold_up_no_node() {
    let mut bench = Bench::refusing(&[gate()], &nodes::<1>(), |request| match request {
        Request::PostEvent { .. } => Some(RequestError::Throttled {
            message: "busy".into(),
            retry_after: Some(Duration::from_secs(60)),
        }),
        _ => None,
    });
    bench.wait(3000);
    assert!(bench.refused > 0);
    bench.sees(&node("n-1"));
    assert_eq!(held(&bench, 2), 2);
    assert_eq!(bench.gauge(&WRITE_LIMIT, &[]), Some(64));
}

#[test]
fn few_rules_are_written_at_a_time() {
    let names: Vec<String> = (0..40).map(|index| format!("r-{index}")).collect();
    let rules: Vec<_> = names
        .iter()
        .map(|name| gate_of(name).without_finalizer())
        .collect();
    let mut bench = Bench::of(&settings());
    bench.held_up = |request| {
        matches!(
            request,
            Request::PatchRule(..) | Request::PatchRuleStatus(..)
        )
    };
    bench.begin(&rules, &[]);
    assert_eq!(bench.pending.len(), 16);
    bench.wait(3000);
    assert_eq!(bench.pending.len(), 16);
    while !bench.pending.is_empty() {
        bench.answers();
        assert!(bench.pending.len() <= 16);
        bench.wait(300);
    }
    for name in &names {
        let rule = bench.rule(name);
        assert!(rule["metadata"]["finalizers"][0].is_string(), "{name}");
        assert!(rule["status"].is_object(), "{name}");
    }
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
        burst: 3,
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

#[test]
fn in_an_outage_events_wait_for_its_end() {
    let mut bench = Bench::refusing(&[gate()], &nodes::<2>(), |request| match request {
        Request::PatchNode(name, _) if **name == *"n-1" => {
            Some(RequestError::Unreachable("nothing listens".into()))
        }
        _ => None,
    });
    assert_eq!(held(&bench, 2), 1);
    bench.counted();
    assert_eq!(bench.told(), [""; 0]);
    bench.refusal = |_| None;
    bench.wait(3000);
    assert_eq!(held(&bench, 2), 2);
    assert_eq!(bench.told().len(), 2);
    assert!(!bench.counted().contains(&"EventDropped".to_owned()));
}

#[test]
fn an_outage_is_over_for_events_when_anything_is_heard_of_the_api_server() {
    const WATCH: Watch = Watch::Pods(ComponentGroup::Class(0));
    let begins = |bench: &Bench| Input::Seen(Seen::Init(WATCH, bench.now.monotonic));
    let shows = |_: &Bench| Input::Seen(Seen::Progress(WATCH, 0));
    for (name, heard, told) in [
        ("a list is to begin", begins as fn(&Bench) -> Input, 0),
        ("a watch shows something", shows, 1),
        ("the lease is renewed", |_| Input::Leads, 1),
    ] {
        let mut bench = Bench::refusing(&[gate()], &nodes::<2>(), |request| match request {
            Request::PatchNode(name, _) if **name == *"n-1" => {
                Some(RequestError::Unreachable("nothing listens".into()))
            }
            _ => None,
        });
        // Nothing else is heard from the API server, and the next probe is not answered.
        bench.held_up = writes_a_node;
        bench.silent = bench.watches.clone();
        let heard = heard(&bench);
        bench.take(vec![heard]);
        bench.wait(1100);
        assert_eq!(bench.told().len(), told, "{name}");
    }
}
