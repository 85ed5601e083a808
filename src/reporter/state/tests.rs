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

    /// Makes a check, and writes what is due.
    fn check(&mut self, finding: CheckFinding, message: &str) {
        self.state.observe(&finding.because(message), self.now);
        if let Some(condition) = self.state.due(self.instant).cloned() {
            self.written.push((
                condition.status,
                condition.message.clone(),
                condition.transition.as_second(),
            ));
            self.state.published(condition, self.instant);
        }
    }

    fn statuses(&self) -> Vec<&'static str> {
        self.written
            .iter()
            .map(|(status, ..)| status.as_str())
            .collect()
    }
}

#[test]
fn an_unchanged_condition_is_written_again_at_each_heartbeat_first_by_the_phase() {
    for (phase, expected) in [
        (0.0, [0, 150, 450]),
        (0.5, [0, 225, 525]),
        (0.99, [0, 299, 599]),
    ] {
        let mut world = World::new(Policy { phase, ..POLICY });
        let mut written = Vec::new();
        for second in 0..600 {
            let before = world.written.len();
            world.check(CheckFinding::Ok, "ok");
            if world.written.len() > before {
                written.push(second);
            }
            world.wait(1);
        }
        assert_eq!(written, expected, "{phase}");
    }
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
