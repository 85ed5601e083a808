//! What each fault does to the engine, under a rule that holds four nodes. How clocks come apart and how the lead is lost, the
//! protections show.

use nodegate_core::condition::Watch;
use serde_json::json;

use super::actors::Operator;
use super::actors::ask::node_key;
use super::cluster::{Who, Write};
use super::fault::{Fault, Incident, Side};
use super::run::{Outcome, run};
use super::scenario::Scenario;
use super::settings::usual;
use super::time::{Time, ms, s};
use super::trace::Trace;
use crate::{Key, Kind};

/// Four nodes come, one every five seconds, and each changes a moment later.
const ALONE: Scenario = Scenario {
    title: "alone: one instance holds four nodes",
    instances: 1,
    settings: usual,
    brake: None,
    lasts: s(30),
    settles: s(30),
    build: |it| {
        let rule = json!({"spec": {
            "conditions": [{"type": "example.com/Ready", "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": "readiness.k8s.io/test", "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"pool": "a"}},
        }});
        let mut operator = Operator::default();
        for (number, name) in (1..).zip(["n0", "n1", "n2", "n3"]) {
            let (at, key) = (s(5 * number), node_key(name));
            let node = json!({"metadata": {"labels": {"pool": "a"}}});
            let change = json!({"spec": {"unschedulable": true}});
            operator = operator
                .creates(at, (key.clone(), node))
                .edits(at + ms(300), key, change);
        }
        it.has((Key::cluster(Kind::NodeReadinessRule, "r"), rule))
            .acts(operator)
    },
};
const TWO: Scenario = Scenario {
    instances: 2,
    ..ALONE
};

/// A run that breaks no law, with notes of what the engine takes in.
fn fine(scenario: &Scenario, faults: &[Fault]) -> Outcome {
    let outcome = run(scenario, 1, faults, true);
    assert_eq!(outcome.violation, None);
    outcome
}

/// When this was noted.
fn noted(outcome: &Outcome, what: &str) -> Vec<Time> {
    let notes = outcome.notes.iter();
    let notes = notes.filter(|(_, note)| note.contains(what));
    notes.map(|(at, _)| *at).collect()
}

/// The engine's writes that have arrived.
fn arrived(outcome: &Outcome) -> Vec<&Write> {
    let writes = outcome.cluster.writes().iter();
    let ours = writes.filter(|it| matches!(it.who, Who::Nodegate(_)));
    ours.collect()
}

/// When the engine first wrote this node, which means that it saw it.
fn held_at(outcome: &Outcome, node: &str) -> Time {
    let writes = arrived(outcome).into_iter();
    let mut of_node = writes.filter(|it| *it.request.key() == node_key(node));
    of_node.next().expect("each node is held").at
}

fn kill(instance: usize, write: usize, side: Side, down: Time) -> Fault {
    Fault::Kill {
        instance,
        write,
        side,
        down,
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let faults = [
        kill(0, 1, Side::After, s(2)),
        Incident::Stale(Watch::Nodes).at(s(12), s(30)),
    ];
    let all = |seed| {
        let outcome = run(&TWO, seed, &faults, false);
        let trace = Trace(&outcome).to_string();
        (trace, outcome.writes, outcome.events)
    };
    let (one, again, other) = (all(1), all(1), all(2));
    assert!(one == again);
    assert!(one != other);
}

#[test]
fn without_faults_each_node_is_written_once() {
    let quiet = fine(&ALONE, &[]);
    let writes = arrived(&quiet).into_iter();
    let of_nodes = writes.filter(|it| it.request.key().kind == Kind::Node);
    assert_eq!(of_nodes.count(), 4);
    assert_eq!(arrived(&quiet).len(), quiet.writes[0]);
    // Each is created, changed and held.
    assert_eq!(quiet.events[&(0, Watch::Nodes)], 12);
}

#[test]
fn a_process_dies_before_or_after_its_write() {
    for (side, lost) in [(Side::Before, 1), (Side::After, 0)] {
        let run = fine(&ALONE, &[kill(0, 0, side, s(2))]);
        let ends = noted(&run, "instance 0, life 0: ends")[0];
        let starts = noted(&run, "instance 0, life 1: starts")[0];
        assert_eq!(starts, ends + s(2));
        let first = arrived(&run)[0].at;
        assert_eq!(first < starts, side == Side::After, "{side:?}");
        assert!(run.writes[0] - arrived(&run).len() >= lost, "{side:?}");
    }
}

#[test]
fn an_answer_is_lost_whether_the_write_was_carried_out_or_not() {
    for (done, lost) in [(true, 0), (false, 1)] {
        let (instance, write) = (0, 0);
        let answer_lost = Fault::AnswerLost {
            instance,
            write,
            done,
        };
        let run = fine(&ALONE, &[answer_lost]);
        assert_eq!(run.writes[0] - arrived(&run).len(), lost, "{done}");
        let told = noted(&run, "Err(TimedOut");
        assert!(told[0] > s(10), "{told:?}");
    }
}

#[test]
fn a_watch_shows_late_what_happens_while_it_is_silent() {
    let silent = [
        (Incident::Stale(Watch::Nodes).at(s(9), s(5)), s(14)),
        (Incident::SilentDeath(Watch::Nodes).at(s(9), s(0)), s(12)),
    ];
    for (fault, until) in silent {
        let run = fine(&ALONE, &[fault]);
        assert!(held_at(&run, "n0") < s(6), "{fault}");
        let seen = held_at(&run, "n1");
        assert!(seen >= until && seen < s(32), "{fault}: {seen:?}");
    }
}

#[test]
fn a_watch_starts_again_with_a_list() {
    let expired = Incident::Expired(Watch::Nodes).at(s(12), s(0));
    // The first of each node's three events.
    let unseen = Fault::Unobserved {
        instance: 0,
        watch: Watch::Nodes,
        event: 3,
    };
    let lists = |faults: &[Fault]| noted(&fine(&ALONE, faults), "Init(Nodes").len();
    assert!(lists(&[expired]) > lists(&[]));
    assert!(lists(&[unseen]) > lists(&[]));
    let seen = held_at(&fine(&ALONE, &[unseen]), "n1");
    assert!(seen > s(10) + ms(300), "after it was touched: {seen:?}");
}

#[test]
fn a_follower_takes_over() {
    let leads = |run: &Outcome, instance| {
        let leads = noted(run, &format!("instance {instance}, life 0: leads"));
        !leads.is_empty()
    };
    let quiet = fine(&TWO, &[]);
    let leader = usize::from(!leads(&quiet, 0));
    assert!(!leads(&quiet, 1 - leader), "one leads");
    let run = fine(&TWO, &[kill(leader, 1, Side::Before, s(60))]);
    assert!(leads(&run, 1 - leader));
    assert!(held_at(&run, "n3") > s(20));
}

#[test]
fn a_lease_that_is_deleted_again_and_again_never_has_two_leaders() {
    for every in [700, 900, 1000, 1100, 1900, 2000, 2100].map(ms) {
        for seed in 0..20 {
            // Who has never seen another hold it takes it at once.
            let at = |number: u32| s(5) + every * number;
            let deletions = (1..=30).map(|it| Incident::LeaseDeleted.at(at(it), s(0)));
            let faults: Vec<Fault> = deletions.collect();
            let outcome = run(&TWO, seed, &faults, false);
            assert_eq!(outcome.violation, None, "each {every:?}, seed {seed}");
        }
    }
}
