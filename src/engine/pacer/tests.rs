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

fn broken() -> RequestError {
    RequestError::Broken("failed".into())
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
