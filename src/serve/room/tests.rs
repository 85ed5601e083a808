use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

const SMALL: RoomLimits = RoomLimits {
    connections: 3,
    bytes: 100,
    request: 50,
};

fn peer(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, number])
}

/// A room with these connections, each a second younger than the one before it, and the time after the last of them.
fn room(connections: &[(u8, Phase)]) -> (Room, Vec<SeatId>, Instant) {
    let mut now = Instant::now();
    let mut room = Room::new(SMALL);
    let mut seats = Vec::new();
    for (number, phase) in connections {
        seats.extend(room.enter(peer(*number), *phase, now).granted);
        now += SECOND;
    }
    (room, seats, now)
}

#[test]
fn a_full_room_sends_away_the_slowest_of_the_address_with_the_most_seats() {
    use Phase::{Answer, Body, Handshake, Head, Idle, Sending};
    for (what, connections, leaving) in [
        ("free seats", &[(1, Head), (1, Head)][..], None),
        ("one address", &[(1, Idle), (1, Head), (1, Body)], Some(0)),
        ("a greedy one", &[(1, Idle), (2, Head), (2, Body)], Some(1)),
        (
            "never one that is being answered",
            &[(2, Answer), (2, Sending), (1, Handshake)],
            Some(1),
        ),
    ] {
        let (mut room, seats, now) = room(connections);
        let expected: Vec<_> = leaving
            .map(|index: usize| seats[index])
            .into_iter()
            .collect();
        let is_full = !room.pause().is_zero();
        assert_eq!(is_full, !expected.is_empty(), "{what}");
        let grant = room.enter(peer(9), Head, now);
        assert!(grant.granted.is_some(), "{what}");
        assert_eq!(grant.leaving, expected, "{what}");
    }
    let (mut room, _, now) = room(&[(1, Answer), (2, Answer), (3, Answer)]);
    assert_eq!(room.enter(peer(4), Head, now).granted, None);
}

#[test]
fn a_byte_at_a_time_wins_no_time() {
    let (mut room, seats, now) = room(&[(1, Phase::Body), (1, Phase::Body), (1, Phase::Body)]);
    for bytes in 1..50 {
        assert!(room.hold(seats[0], bytes).granted.is_some());
    }
    let leaving = room.enter(peer(1), Phase::Head, now).leaving;
    assert_eq!(leaving, [seats[0]]);
}

#[test]
fn bytes_make_room_for_others_by_who_is_slowest() {
    use Phase::{Answer, Body, Sending};
    for (what, connections, held, wanted, granted, leaving) in [
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
        let (mut room, seats, _) = room(&connections);
        for (seat, bytes) in seats.iter().zip(held) {
            assert!(room.hold(*seat, bytes).granted.is_some(), "{what}");
        }
        let grant = room.hold(seats[2], wanted);
        let expected: Vec<_> = leaving.iter().map(|index: &usize| seats[*index]).collect();
        assert_eq!(grant.granted.is_some(), granted, "{what}");
        assert_eq!(grant.leaving, expected, "{what}");
    }
}

#[test]
fn who_has_been_answered_holds_nothing() {
    let (mut room, seats, now) = room(&[(1, Phase::Sending)]);
    assert!(room.hold(seats[0], 70).granted.is_some());
    room.turn(seats[0], Phase::Idle, now);
    assert_eq!(room.seats[&seats[0]].bytes, 0);
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
        let mut room = Room::new(SMALL);
        let seat = room.enter(peer(1), Phase::Handshake, now).granted.unwrap();
        room.turn(seat, phase, now);
        let before = now + (seconds - 1) * SECOND;
        assert_eq!(room.sweep(before), [], "{phase:?}");
        assert_eq!(room.sweep(before + SECOND), [seat], "{phase:?}");
        assert!(room.is_empty());
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
        let mut room = Room::new(SMALL);
        let mut now = Instant::now();
        let mut seats = Vec::new();
        for (kind, index, bytes, phase) in steps {
            now += SECOND;
            let seat = seats.get(index % seats.len().max(1)).copied();
            match (kind, seat) {
                (0, _) => seats.extend(room.enter(peer(u8::try_from(index)?), phase, now).granted),
                (1, Some(seat)) => room.turn(seat, phase, now),
                (2, Some(seat)) => {
                    room.hold(seat, bytes);
                }
                (3, Some(seat)) => room.leave(seat),
                _ => {}
            }
            seats.retain(|seat| room.phase(*seat).is_some());
            prop_assert!(seats.len() <= SMALL.connections);
            let held: usize = room.seats.values().map(|seat| seat.bytes).sum();
            prop_assert!(held <= SMALL.bytes);
        }
    }
}
