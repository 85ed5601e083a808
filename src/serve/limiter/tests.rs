use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

const SMALL: ConnectionLimits = ConnectionLimits {
    connections: 3,
    bytes: 100,
    request: 50,
};

type Limiter = ConnectionLimiter<()>;

fn peer(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, number])
}

/// A limiter with these connections, opened a second apart, and the time after the last.
fn limiter(connections: &[(u8, Phase)]) -> (Limiter, Vec<ConnectionId>, Instant) {
    let mut now = Instant::now();
    let mut limiter = Limiter::new(SMALL);
    let mut ids = Vec::new();
    for (number, phase) in connections {
        ids.extend(limiter.admit(peer(*number), *phase, (), now).granted);
        now += SECOND;
    }
    (limiter, ids, now)
}

/// The positions of the closed connections.
fn closed(limiter: &Limiter, ids: &[ConnectionId]) -> Vec<usize> {
    let is_closed = |index: &usize| limiter.phase(ids[*index]).is_none();
    (0..ids.len()).filter(is_closed).collect()
}

#[test]
fn a_full_server_closes_the_slowest_connection_of_the_address_with_the_most() {
    use Phase::{Answer, Body, Handshake, Head, Idle, Sending};
    for (what, connections, expected) in [
        ("there is room", &[(1, Head), (1, Head)][..], &[][..]),
        ("one address", &[(1, Idle), (1, Head), (1, Body)], &[0]),
        ("a greedy one", &[(1, Idle), (2, Head), (2, Body)], &[1]),
        (
            "who is being answered comes last",
            &[(2, Answer), (2, Sending), (1, Handshake)],
            &[1],
        ),
        (
            "who has more than a share is not answered",
            &[(2, Answer), (2, Answer), (1, Handshake)],
            &[0],
        ),
    ] {
        let (mut limiter, ids, now) = limiter(connections);
        let grant = limiter.admit(peer(9), Head, (), now);
        assert!(grant.granted.is_some(), "{what}");
        assert_eq!(closed(&limiter, &ids), expected, "{what}");
        assert_eq!(grant.closed, expected.len(), "{what}");
    }
    for (answered, newcomer) in [([1, 2, 3], 4), ([1, 1, 2], 1)] {
        let (mut limiter, ids, now) = limiter(&answered.map(|number| (number, Answer)));
        assert_eq!(limiter.admit(peer(newcomer), Head, (), now).granted, None);
        assert_eq!(closed(&limiter, &ids), [0; 0]);
    }
}

#[test]
fn sending_a_byte_at_a_time_gains_no_time() {
    let (mut limiter, ids, now) = limiter(&[(1, Phase::Body), (1, Phase::Body), (1, Phase::Body)]);
    for bytes in 1..50 {
        assert!(limiter.hold(ids[0], bytes).granted.is_some());
    }
    limiter.admit(peer(1), Phase::Head, (), now);
    assert_eq!(closed(&limiter, &ids), [0]);
}

#[test]
fn the_slowest_connections_make_room_for_bytes() {
    use Phase::{Answer, Body, Sending};
    for (what, connections, held, wanted, granted, expected) in [
        (
            "there is room",
            [(1, Body), (1, Body), (1, Body)],
            [50, 0],
            50,
            true,
            &[][..],
        ),
        (
            "the slowest goes",
            [(1, Body), (1, Sending), (1, Body)],
            [50, 50],
            50,
            true,
            &[0],
        ),
        (
            "as many as it takes",
            [(1, Body), (1, Sending), (1, Body)],
            [50, 50],
            90,
            true,
            &[0, 1],
        ),
        (
            "work is left alone",
            [(1, Answer), (1, Body), (1, Body)],
            [50, 50],
            50,
            true,
            &[1],
        ),
        (
            "no room",
            [(1, Answer), (1, Answer), (1, Body)],
            [50, 50],
            50,
            false,
            &[],
        ),
        (
            "a large answer alone",
            [(1, Body), (1, Body), (1, Sending)],
            [0, 0],
            500,
            true,
            &[],
        ),
    ] {
        let (mut limiter, ids, _) = limiter(&connections);
        for (id, bytes) in ids.iter().zip(held) {
            assert!(limiter.hold(*id, bytes).granted.is_some(), "{what}");
        }
        let grant = limiter.hold(ids[2], wanted);
        assert_eq!(grant.granted.is_some(), granted, "{what}");
        assert_eq!(closed(&limiter, &ids), expected, "{what}");
        assert_eq!(grant.closed, expected.len(), "{what}");
    }
}

#[test]
fn an_idle_connection_holds_no_bytes() {
    let (mut limiter, ids, now) = limiter(&[(1, Phase::Sending)]);
    assert!(limiter.hold(ids[0], 70).granted.is_some());
    limiter.set_phase(ids[0], Phase::Idle, now);
    assert_eq!(limiter.connections[&ids[0]].bytes, 0);
}

#[test]
fn every_phase_has_its_time() {
    for (phase, seconds) in [
        (Phase::Handshake, 5),
        (Phase::Head, 5),
        (Phase::Body, 5),
        (Phase::Sending, 10),
        (Phase::Answer, 15),
        (Phase::Idle, 120),
    ] {
        let now = Instant::now();
        let mut limiter = Limiter::new(SMALL);
        let id = limiter.admit(peer(1), Phase::Handshake, (), now).granted;
        limiter.set_phase(id.unwrap(), phase, now);
        let before = now + (seconds - 1) * SECOND;
        assert_eq!(limiter.close_overdue(before), 0, "{phase:?}");
        assert_eq!(limiter.close_overdue(before + SECOND), 1, "{phase:?}");
        assert!(limiter.is_empty());
    }
}

fn phase() -> impl Strategy<Value = Phase> {
    use Phase::{Answer, Body, Handshake, Head, Idle, Sending};
    prop::sample::select(vec![Handshake, Idle, Head, Body, Answer, Sending])
}

proptest! {
    #[test]
    fn the_limits_hold_whatever_happens(
        steps in prop::collection::vec((0_u8..4, 0_usize..6, 0_usize..60, phase()), 1..200)
    ) {
        let mut limiter = Limiter::new(SMALL);
        let mut now = Instant::now();
        let mut ids = Vec::new();
        for (kind, index, bytes, phase) in steps {
            now += SECOND;
            let id = ids.get(index % ids.len().max(1)).copied();
            match (kind, id) {
                (0, _) => {
                    let peer = peer(u8::try_from(index)?);
                    ids.extend(limiter.admit(peer, phase, (), now).granted);
                }
                (1, Some(id)) => limiter.set_phase(id, phase, now),
                (2, Some(id)) => {
                    limiter.hold(id, bytes);
                }
                (3, Some(id)) => limiter.close(id),
                _ => {}
            }
            ids.retain(|id| limiter.phase(*id).is_some());
            prop_assert!(ids.len() <= SMALL.connections);
            let held: usize = limiter.connections.values().map(|it| it.bytes).sum();
            prop_assert!(held <= SMALL.bytes);
        }
    }
}
