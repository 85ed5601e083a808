//! Which request the pacer permits, by class and by the API server's responses.

use std::time::Duration;

use super::*;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);
const ALL: [Class; CLASSES] = [
    Class::Node,
    Class::Rule,
    Class::Claim,
    Class::Read,
    Class::Conditions,
    Class::Event,
];

fn unreachable() -> RequestError {
    RequestError::Unreachable("nothing listens".into())
}

fn throttled(retry_after: Option<Duration>) -> RequestError {
    RequestError::Throttled {
        message: "busy".into(),
        retry_after,
    }
}

#[test]
fn how_many_there_may_be_at_a_time_depends_on_what_they_are_and_on_an_outage() {
    let now = Instant::now();
    let permits = |pacer: &Pacer, now| ALL.map(|class| pacer.permits(class, now));
    let mut pacer = Pacer::new(10, None);
    assert_eq!(permits(&pacer, now), [10, 16, 8, 16, 8, 4]);
    pacer.answered(Class::Node, None, now, Some(&unreachable()), now);
    assert_eq!(permits(&pacer, now), [0, 0, 0, 16, 0, 0]);
    let again = pacer.next_turn(now).expect("the next try");
    assert!(again > now && again <= now + 50 * MS, "{:?}", again - now);
    assert_eq!(permits(&pacer, again), [1, 1, 1, 16, 1, 0]);
    pacer.on_sign_of_life();
    assert_eq!(permits(&pacer, again), [1, 1, 1, 16, 1, 4]);
    pacer.answered(Class::Node, None, again, None, again);
    assert_eq!(permits(&pacer, again), [10, 16, 8, 16, 8, 4]);
}

#[test]
fn conditions_share_what_may_be_written_at_a_time_with_nodes_and_do_not_hold_them_up() {
    let now = Instant::now();
    let mut pacer = Pacer::new(4, None);
    #[rustfmt::skip]
    let cases = [
        (&[][..], true, true),
        (&[Class::Node, Class::Node, Class::Node], true, true),
        (&[Class::Node, Class::Node, Class::Conditions, Class::Node], true, false),
        (&[Class::Node; 4], false, false),
        (&[Class::Conditions; 4], true, false),
        (&[Class::Rule, Class::Claim, Class::Event, Class::Read], true, true),
    ];
    for (under_way, nodes, conditions) in cases {
        for class in under_way {
            pacer.begins(*class, true, now);
        }
        for (class, may_begin) in [(Class::Node, nodes), (Class::Conditions, conditions)] {
            assert_eq!(
                pacer.may_begin(class, now),
                may_begin,
                "{class:?} after {under_way:?}"
            );
        }
        for class in [Class::Rule, Class::Claim, Class::Read, Class::Event] {
            assert!(pacer.may_begin(class, now), "{class:?} after {under_way:?}");
        }
        for class in under_way {
            pacer.ends(*class);
        }
        assert_eq!(ALL.map(|class| pacer.under_way(class)), [0; CLASSES]);
    }
    assert_eq!(
        pacer.next_turn(now),
        None,
        "whose answer is waited for is no time"
    );
}

#[test]
fn no_class_has_more_under_way_than_it_may() {
    let now = Instant::now();
    let limits = [
        (Class::Rule, 16),
        (Class::Claim, 8),
        (Class::Read, 16),
        (Class::Event, 4),
    ];
    for (class, limit) in limits {
        let mut pacer = Pacer::new(64, None);
        let mut begun = 0;
        while pacer.may_begin(class, now) {
            pacer.begins(class, true, now);
            begun += 1;
        }
        assert_eq!(begun, limit, "{class:?}");
        pacer.ends(class);
        assert!(pacer.may_begin(class, now), "{class:?}");
    }
}

#[test]
fn all_but_reads_wait_while_the_api_server_refuses_writes_of_nodes() {
    let now = Instant::now();
    let mut pacer = Pacer::new(64, None);
    assert_eq!(pacer.not_before(Class::Node, now), None);
    pacer.answered(Class::Node, None, now, Some(&throttled(Some(3 * S))), now);
    assert_eq!(pacer.not_before(Class::Node, now), Some(now + 3 * S));
    for class in ALL {
        let may_begin = pacer.may_begin(class, now);
        assert_eq!(may_begin, class == Class::Read, "{class:?}");
    }
    assert_eq!(pacer.next_turn(now), Some(now + 3 * S));
    assert!(pacer.may_begin(Class::Node, now + 3 * S));
    assert_eq!(pacer.not_before(Class::Node, now + 3 * S), None);
}

#[test]
fn a_throttled_class_of_requests_holds_up_no_other() {
    let now = Instant::now();
    for refused in ALL.into_iter().filter(|it| *it != Class::Node) {
        let mut pacer = Pacer::new(64, None);
        for _ in 0..8 {
            pacer.answered(refused, None, now, Some(&throttled(Some(3 * S))), now);
        }
        for class in ALL {
            let may_begin = pacer.may_begin(class, now);
            assert_eq!(may_begin, class != refused, "{class:?} for {refused:?}");
        }
        assert_eq!(pacer.at_a_time(), 64, "{refused:?}");
        assert!(pacer.may_begin(refused, now + 3 * S), "{refused:?}");
    }
}

#[test]
fn only_writes_that_change_something_count_against_the_rate() {
    let now = Instant::now();
    let rate = Rate {
        per_second: 1.0,
        burst: 2,
    };
    let mut pacer = Pacer::new(64, Some(rate));
    for _ in 0..5 {
        pacer.begins(Class::Read, false, now);
    }
    pacer.begins(Class::Node, true, now);
    assert!(pacer.may_begin(Class::Node, now));
    pacer.begins(Class::Event, true, now);
    assert!(!pacer.may_begin(Class::Node, now));
    assert_eq!(
        pacer.next_turn(now),
        Some(now + S + Duration::from_nanos(1))
    );
}

fn broken() -> RequestError {
    RequestError::Broken("failed".into())
}

#[test]
fn what_an_answer_says_about_the_api_server() {
    let timed_out = RequestError::TimedOut(10 * S);
    let refused = RequestError::Failed("no".into());
    let (pause, least) = (Some(2 * S), Some(100 * MS));
    // The error, then how many nodes may be written at a time and how long all wait after one node's, and after another's.
    for (name, error, (at_a_time, waits), (after_two, waits_then)) in [
        ("done", None, (8, None), (8, None)),
        (
            "a conflict",
            Some(RequestError::Conflict),
            (8, None),
            (8, None),
        ),
        ("gone", Some(RequestError::Gone), (8, None), (8, None)),
        ("a refusal", Some(refused), (8, None), (8, None)),
        ("throttled", Some(throttled(pause)), (4, pause), (4, pause)),
        ("broken", Some(broken()), (8, None), (4, least)),
        ("no answer", Some(timed_out), (8, None), (4, least)),
        ("not reached", Some(unreachable()), (8, None), (8, None)),
    ] {
        let now = Instant::now();
        let mut pacer = Pacer::new(8, None);
        for (node, at_a_time, waits) in [
            ("a", at_a_time, waits),
            ("a", at_a_time, waits),
            ("b", after_two, waits_then),
        ] {
            // Both were under way together.
            let then = now + MS;
            pacer.answered(Class::Node, Some(&node.into()), now, error.as_ref(), then);
            assert_eq!(pacer.at_a_time(), at_a_time, "{name}, {node}");
            let until = pacer.not_before(Class::Node, then).map(|at| at - then);
            assert!(
                until <= waits && until.is_some() == waits.is_some(),
                "{name}, {node}: {until:?}"
            );
            let unreached = pacer.permits(Class::Node, then) == 0;
            assert_eq!(unreached, name == "not reached", "{name}");
        }
    }
}

#[test]
fn nodes_that_fail_one_by_one_amid_others_that_do_not_slow_nothing() {
    let now = Instant::now();
    let mut pacer = Pacer::new(8, None);
    let mut answered = |node: &str, error: Option<&RequestError>, now| {
        pacer.answered(Class::Node, Some(&node.into()), now, error, now);
        pacer.not_before(Class::Node, now).is_some()
    };
    for (index, node) in ["a", "b", "a", "b"].iter().enumerate() {
        let now = now + u32::try_from(index).unwrap() * S;
        assert!(!answered(node, Some(&broken()), now));
        assert!(!answered("well", None, now));
    }
    assert!(!answered("a", Some(&broken()), now + 20 * S));
    assert!(!answered("b", Some(&broken()), now + 40 * S));
    assert!(answered("a", Some(&broken()), now + 41 * S));
}

#[test]
fn failing_writes_of_nodes_do_not_delay_the_status_that_reports_them() {
    let now = Instant::now();
    let mut pacer = Pacer::new(8, None);
    for node in ["a", "b"] {
        pacer.answered(Class::Node, Some(&node.into()), now, Some(&broken()), now);
    }
    for class in ALL {
        let may_begin = pacer.may_begin(class, now);
        assert_eq!(may_begin, class != Class::Node, "{class:?}");
    }
}

#[test]
fn an_answer_that_was_late_neither_begins_nor_ends_an_outage() {
    let now = Instant::now();
    let mut pacer = Pacer::new(8, None);
    pacer.answered(Class::Node, None, now, Some(&unreachable()), now);
    pacer.answered(
        Class::Node,
        None,
        now,
        Some(&RequestError::TimedOut(10 * S)),
        now,
    );
    assert_eq!(pacer.permits(Class::Event, now), 0);
    pacer.answered(Class::Node, None, now, Some(&RequestError::Conflict), now);
    assert_eq!(pacer.permits(Class::Event, now), 4, "any answer ends it");
}

#[test]
fn a_full_round_of_answers_lets_one_more_through() {
    let now = Instant::now();
    let mut pacer = Pacer::new(8, None);
    pacer.answered(Class::Node, None, now, Some(&throttled(Some(S))), now);
    assert_eq!(pacer.at_a_time(), 4);
    for answered in 0..5 {
        assert_eq!(pacer.at_a_time(), 4, "after {answered}");
        pacer.answered(Class::Node, None, now + S, None, now + S);
    }
    assert_eq!(pacer.at_a_time(), 5);
}

#[test]
fn conditions_are_published_one_at_a_time_while_nodes_are_written() {
    let now = Instant::now();
    let mut pacer = Pacer::new(64, None);
    assert!(pacer.may_publish(Class::Conditions, true, now));
    pacer.begins(Class::Conditions, true, now);
    assert!(!pacer.may_publish(Class::Conditions, true, now));
    assert!(pacer.may_publish(Class::Conditions, false, now));
}
