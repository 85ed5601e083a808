//! Checks and time go in, written conditions come out.

use super::super::outcome::CheckFinding;
use super::*;

const POLICY: Policy = Policy {
    success_threshold: 1,
    failure_threshold: 1,
    heartbeat: Duration::from_secs(300),
    phase: 0.0,
};

/// A reporter, its Node, and a clock that only the test moves.
struct World {
    state: ReporterState,
    now: Timestamp,
    /// The same moment on the monotonic clock.
    instant: Instant,
    written: Vec<(ConditionStatus, String, i64)>,
}

impl World {
    fn new(policy: Policy) -> Self {
        Self {
            state: ReporterState::new(policy),
            now: Timestamp::UNIX_EPOCH,
            instant: Instant::now(),
            written: Vec::new(),
        }
    }

    fn wait(&mut self, seconds: u32) {
        let duration = Duration::from_secs(seconds.into());
        self.instant += duration;
        self.now += duration;
    }

    fn write_what_is_due(&mut self) {
        if let Some(condition) = self.state.due(self.instant).cloned() {
            self.written.push((
                condition.status,
                condition.message.clone(),
                condition.transition.as_second(),
            ));
            self.state.published(condition, self.instant);
        }
    }

    /// Makes a check, and writes what is due.
    fn check(&mut self, finding: CheckFinding, message: &str) {
        self.state.observe(&finding.because(message), self.now);
        self.write_what_is_due();
    }

    fn resume(&mut self, status: ConditionStatus, message: &str, transition: i64) {
        let found = ReportedCondition {
            status,
            reason: match status {
                ConditionStatus::True => CheckFinding::Ok.row().1.to_owned(),
                _ => CheckFinding::NotReady.row().1.to_owned(),
            },
            message: message.to_owned(),
            transition: Timestamp::from_second(transition).unwrap(),
        };
        self.state.resume(found);
    }

    fn statuses(&self) -> Vec<&'static str> {
        self.written
            .iter()
            .map(|(status, ..)| status.as_str())
            .collect()
    }
}

#[test]
fn an_unchanged_condition_is_written_again_only_at_the_heartbeat() {
    let mut world = World::new(POLICY);
    for _ in 0..20 {
        world.check(CheckFinding::Ok, "ok");
        world.wait(30);
    }
    // At 0 s; early, at 150 s, by the phase; at 450 s.
    assert_eq!(world.statuses(), ["True"; 3]);
    assert!(
        world
            .written
            .iter()
            .all(|(.., transition)| *transition == 0)
    );
}

#[test]
fn reporters_that_start_together_beat_at_different_times() {
    let first_beat = |phase| {
        let mut world = World::new(Policy { phase, ..POLICY });
        world.check(CheckFinding::Ok, "ok");
        let mut seconds = 0;
        while world.written.len() < 2 {
            world.wait(1);
            seconds += 1;
            world.check(CheckFinding::Ok, "ok");
        }
        seconds
    };
    assert_eq!([0.0, 0.5, 0.99].map(first_beat), [150, 225, 299]);
}

#[test]
fn the_transition_moves_with_the_status_and_never_else() {
    let mut world = World::new(POLICY);
    for (finding, message) in [
        (CheckFinding::NoAnswer, "refused"),
        (CheckFinding::NotReady, "500"),
        (CheckFinding::Ok, "ok"),
        (CheckFinding::NotReady, "503"),
    ] {
        world.check(finding, message);
        world.wait(10);
    }
    let expected = [("refused", 0), ("500", 0), ("ok", 20), ("503", 30)];
    let written: Vec<_> = world
        .written
        .iter()
        .map(|(_, message, transition)| (message.as_str(), *transition))
        .collect();
    assert_eq!(written, expected);
}

#[test]
fn a_message_that_changes_with_every_check_is_not_written_with_every_check() {
    let mut world = World::new(POLICY);
    for second in 0..120 {
        world.check(CheckFinding::NotReady, &format!("503 at {second}"));
        world.wait(1);
    }
    assert_eq!(world.statuses(), ["False"; 2]);
    assert_eq!(world.written[1].1, "503 at 60");
}

#[test]
fn thresholds_keep_a_status_from_flapping() {
    use CheckFinding::{NotReady as Bad, Ok as Good};
    for (success, failure, checks, expected) in [
        (1, 1, vec![Good, Bad, Good], vec!["True", "False", "True"]),
        (1, 3, vec![Good, Bad, Bad, Good, Bad, Bad], vec!["True"]),
        (1, 3, vec![Good, Bad, Bad, Bad], vec!["True", "False"]),
        (2, 1, vec![Good, Good], vec!["True"]),
        (2, 1, vec![Good], vec![]),
        (
            2,
            3,
            vec![Bad, Good, Bad, Good, Good],
            vec!["False", "True"],
        ),
    ] {
        let mut world = World::new(Policy {
            success_threshold: success,
            failure_threshold: failure,
            ..POLICY
        });
        for finding in &checks {
            world.check(*finding, "same");
            world.wait(1);
        }
        assert_eq!(
            world.statuses(),
            expected,
            "{success}/{failure}: {checks:?}"
        );
    }
}

#[test]
fn a_restart_writes_once_and_keeps_the_transition() {
    // The first check comes before or after the Node is read.
    for check_first in [false, true] {
        let mut world = World::new(POLICY);
        world.wait(1000);
        if check_first {
            let outcome = CheckFinding::Ok.because("ok");
            world.state.observe(&outcome, world.now);
        }
        world.resume(ConditionStatus::True, "ok", 5);
        if !check_first {
            world.write_what_is_due();
            assert!(world.written.is_empty(), "nobody has checked yet");
        }
        for _ in 0..14 {
            world.check(CheckFinding::Ok, "ok");
            world.wait(10);
        }
        assert_eq!(world.written, [(ConditionStatus::True, "ok".to_owned(), 5)]);
    }
}

#[test]
fn a_resumed_condition_changes_only_at_the_threshold() {
    for check_first in [false, true] {
        let policy = Policy {
            failure_threshold: 2,
            ..POLICY
        };
        let mut world = World::new(policy);
        world.wait(1000);
        if check_first {
            let outcome = CheckFinding::NotReady.because("503");
            world.state.observe(&outcome, world.now);
        }
        world.resume(ConditionStatus::True, "ok", 5);
        world.write_what_is_due();
        if !check_first {
            world.check(CheckFinding::NotReady, "503");
        }
        assert!(world.written.is_empty(), "True is not said again unchecked");
        world.check(CheckFinding::NotReady, "503");
        let expected = (ConditionStatus::False, "503".to_owned(), 1000);
        assert_eq!(world.written, [expected]);
    }
}

#[test]
fn a_reporter_that_starts_from_nothing_believes_the_first_bad_check() {
    let mut world = World::new(Policy {
        success_threshold: 2,
        failure_threshold: 3,
        ..POLICY
    });
    world.check(CheckFinding::NoAnswer, "refused");
    world.wait(30);
    world.check(CheckFinding::Ok, "ok");
    assert_eq!(world.statuses(), ["False"]);
    world.check(CheckFinding::Ok, "ok");
    assert_eq!(world.statuses(), ["False", "True"]);
}

#[test]
fn after_an_outage_the_latest_state_is_written_and_no_other() {
    let mut world = World::new(POLICY);
    world.check(CheckFinding::Ok, "ok");
    for finding in [
        CheckFinding::NotReady,
        CheckFinding::NoAnswer,
        CheckFinding::Ok,
        CheckFinding::Broken,
    ] {
        // The API server is unreachable.
        world.wait(10);
        let outcome = finding.because(finding.row().1);
        world.state.observe(&outcome, world.now);
    }
    world.wait(1);
    world.write_what_is_due();
    world.write_what_is_due();
    let last = (ConditionStatus::False, "HealthCheckFailed".to_owned(), 40);
    assert_eq!(world.written[1..], [last]);
}

#[test]
fn a_condition_that_does_not_stand_on_the_node_any_more_is_written_again() {
    let mut world = World::new(POLICY);
    assert!(
        !world.state.is_reread_due(world.instant),
        "nothing is there"
    );
    world.check(CheckFinding::Ok, "fine");
    for (there, expected) in [
        (Some(ConditionStatus::True), 0),
        (None, 1),
        (Some(ConditionStatus::False), 1),
        (Some(ConditionStatus::True), 0),
    ] {
        let before = world.written.len();
        world.wait(59);
        assert!(!world.state.is_reread_due(world.instant));
        world.wait(1);
        assert!(world.state.is_reread_due(world.instant));
        world.state.reread(there, world.instant);
        assert!(!world.state.is_reread_due(world.instant));
        world.check(CheckFinding::Ok, "fine");
        assert_eq!(world.written.len() - before, expected, "{there:?}");
    }
    // The transition is the old one: the checks still agree.
    assert!(
        world
            .written
            .iter()
            .all(|(_, _, transition)| *transition == 0)
    );
}

#[test]
fn the_node_is_re_read_a_few_times_per_heartbeat() {
    for (heartbeat, pause) in [(300, 60), (60, 12), (10, 5)] {
        let mut world = World::new(Policy {
            heartbeat: Duration::from_secs(heartbeat),
            ..POLICY
        });
        world.check(CheckFinding::Ok, "fine");
        world.wait(pause - 1);
        assert!(!world.state.is_reread_due(world.instant), "{heartbeat}");
        world.wait(1);
        assert!(world.state.is_reread_due(world.instant), "{heartbeat}");
    }
}
