//! Whose turn it is, by the urgency of what waits and by what the API server has answered.

use std::time::Duration;

use super::*;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);
const ALL: [Class; CLASSES] = [
    Class::Node,
    Class::Rule,
    Class::Claim,
    Class::Look,
    Class::Conditions,
    Class::Event,
];

fn unreachable() -> RequestError {
    RequestError::Unreachable("nothing listens".into())
}

fn throttled(come_again: Option<Duration>) -> RequestError {
    RequestError::Throttled {
        message: "busy".into(),
        come_again,
    }
}

#[test]
fn how_many_there_may_be_at_a_time_depends_on_what_they_are_and_on_an_outage() {
    let now = Instant::now();
    let permits = |turns: &Turns, now| ALL.map(|class| turns.permits(class, now));
    let mut turns = Turns::new(10, None);
    assert_eq!(permits(&turns, now), [10, usize::MAX, 8, 16, 8, 4]);
    turns.answered(now, Some(&unreachable()), now);
    assert_eq!(permits(&turns, now), [0, usize::MAX, 0, 16, 0, 0]);
    let again = turns.next_turn(now).expect("the next try");
    assert!(again > now && again <= now + 50 * MS, "{:?}", again - now);
    assert_eq!(permits(&turns, again), [1, usize::MAX, 1, 16, 1, 0]);
    turns.heard();
    assert_eq!(permits(&turns, again), [1, usize::MAX, 1, 16, 1, 4]);
    turns.answered(again, None, again);
    assert_eq!(permits(&turns, again), [10, usize::MAX, 8, 16, 8, 4]);
}

#[test]
fn nodes_and_their_conditions_share_what_may_be_written_at_a_time() {
    let now = Instant::now();
    let mut turns = Turns::new(4, None);
    for (under_way, may_begin) in [
        (&[][..], true),
        (&[Class::Node, Class::Node, Class::Node], true),
        (
            &[Class::Node, Class::Node, Class::Conditions, Class::Node],
            false,
        ),
        (&[Class::Conditions; 4], false),
        (
            &[Class::Rule, Class::Claim, Class::Event, Class::Look],
            true,
        ),
    ] {
        for class in under_way {
            turns.begins(*class, true, now);
        }
        for class in [Class::Node, Class::Conditions] {
            assert_eq!(
                turns.may_begin(class, now),
                may_begin,
                "{class:?} after {under_way:?}"
            );
        }
        for class in [Class::Rule, Class::Claim, Class::Look, Class::Event] {
            assert!(turns.may_begin(class, now), "{class:?} after {under_way:?}");
        }
        for class in under_way {
            turns.ends(*class);
        }
        assert_eq!(ALL.map(|class| turns.under_way(class)), [0; CLASSES]);
    }
    assert_eq!(
        turns.next_turn(now),
        None,
        "whose answer is waited for is no time"
    );
}

#[test]
fn no_class_has_more_under_way_than_it_may() {
    let now = Instant::now();
    for (class, limit) in [(Class::Claim, 8), (Class::Look, 16), (Class::Event, 4)] {
        let mut turns = Turns::new(64, None);
        let mut begun = 0;
        while turns.may_begin(class, now) {
            turns.begins(class, true, now);
            begun += 1;
        }
        assert_eq!(begun, limit, "{class:?}");
        turns.ends(class);
        assert!(turns.may_begin(class, now), "{class:?}");
    }
}

#[test]
fn all_but_looks_wait_where_the_api_server_asks_for_that() {
    let now = Instant::now();
    let mut turns = Turns::new(64, None);
    assert_eq!(turns.not_before(now), None);
    turns.answered(now, Some(&throttled(Some(3 * S))), now);
    assert_eq!(turns.not_before(now), Some(now + 3 * S));
    assert_eq!(turns.next_turn(now), None, "nobody has asked");
    for class in ALL {
        let may_begin = turns.may_begin(class, now);
        assert_eq!(may_begin, class == Class::Look, "{class:?}");
    }
    assert_eq!(turns.next_turn(now), Some(now + 3 * S));
    turns.ask_again();
    assert_eq!(turns.next_turn(now), None);
    assert!(turns.may_begin(Class::Node, now + 3 * S));
    assert_eq!(turns.not_before(now + 3 * S), None);
}

#[test]
fn only_what_changes_something_counts_among_the_writes_of_a_second() {
    let now = Instant::now();
    let rate = Rate {
        per_second: 1.0,
        burst: 2,
    };
    let mut turns = Turns::new(64, Some(rate));
    for _ in 0..5 {
        turns.begins(Class::Look, false, now);
    }
    turns.begins(Class::Node, true, now);
    assert!(turns.may_begin(Class::Node, now));
    turns.begins(Class::Event, true, now);
    assert!(!turns.may_begin(Class::Node, now));
    assert_eq!(turns.next_turn(now), Some(now + S));
}

#[test]
fn what_an_answer_says_about_the_api_server() {
    let broken = |come_again| RequestError::Broken {
        message: "failed".into(),
        come_again,
    };
    let pause = Some(2 * S);
    for (name, error, at_a_time, waits) in [
        ("done", None, 8, None),
        ("a conflict", Some(RequestError::Conflict), 8, None),
        ("gone", Some(RequestError::Gone), 8, None),
        (
            "a refusal",
            Some(RequestError::Failed("no".into())),
            8,
            None,
        ),
        ("throttled", Some(throttled(pause)), 4, pause),
        ("broken", Some(broken(pause)), 4, pause),
        (
            "broken, without a time",
            Some(broken(None)),
            4,
            Some(100 * MS),
        ),
        (
            "no answer",
            Some(RequestError::TimedOut(10 * S)),
            4,
            Some(100 * MS),
        ),
        ("not reached", Some(unreachable()), 8, None),
    ] {
        let now = Instant::now();
        let mut turns = Turns::new(8, None);
        turns.answered(now, error.as_ref(), now);
        assert_eq!(turns.at_a_time(), at_a_time, "{name}");
        let until = turns.not_before(now).map(|at| at - now);
        assert!(
            until <= waits && until.is_some() == waits.is_some(),
            "{name}: {until:?}"
        );
        let unreached = turns.permits(Class::Node, now) == 0;
        assert_eq!(unreached, name == "not reached", "{name}");
    }
}

#[test]
fn an_answer_that_was_late_neither_begins_nor_ends_an_outage() {
    let now = Instant::now();
    let mut turns = Turns::new(8, None);
    turns.answered(now, Some(&unreachable()), now);
    turns.answered(now, Some(&RequestError::TimedOut(10 * S)), now);
    assert_eq!(turns.permits(Class::Event, now), 0);
    turns.answered(now, Some(&RequestError::Conflict), now);
    assert_eq!(turns.permits(Class::Event, now), 4, "any answer ends it");
}

#[test]
fn a_full_round_of_answers_lets_one_more_through() {
    let now = Instant::now();
    let mut turns = Turns::new(8, None);
    turns.answered(now, Some(&throttled(Some(S))), now);
    assert_eq!(turns.at_a_time(), 4);
    for answered in 0..5 {
        assert_eq!(turns.at_a_time(), 4, "after {answered}");
        turns.answered(now + S, None, now + S);
    }
    assert_eq!(turns.at_a_time(), 5);
}

#[test]
fn conditions_are_published_one_at_a_time_while_nodes_are_written() {
    let now = Instant::now();
    let mut turns = Turns::new(64, None);
    assert!(turns.may_publish(true, now));
    turns.begins(Class::Conditions, true, now);
    assert!(!turns.may_publish(true, now));
    assert!(turns.may_publish(false, now));
}

#[test]
fn it_is_somebodys_turn_as_soon_as_anything_says_so() {
    let now = Instant::now();
    let (node, other) = ("n".into(), "m".into());
    let mut turns = Turns::new(8, None);
    let wait = |retries: &mut Retries, name| while retries.turn(name, "gate", 1, now) {};
    wait(&mut turns.nodes, &node);
    let of_nodes = turns.next_turn(now);
    assert_eq!(of_nodes, turns.nodes.next_turn(now));
    assert!(of_nodes.is_some_and(|at| at > now));
    turns.try_nothing_again();
    assert_eq!(turns.next_turn(now), None);
    wait(&mut turns.conditions, &other);
    assert_eq!(turns.next_turn(now), turns.conditions.next_turn(now));
    assert!(turns.next_turn(now).is_some());
    turns.try_nothing_again();
    assert_eq!(turns.next_turn(now), None);
}
