//! Nodegate's performance targets, and whether a run meets them. Pure.

use crate::measure::number;
use crate::plan::Phase;
use crate::results::{Outcome, Run};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// What it measures, with its bound.
    pub what: &'static str,
    /// The largest value that meets it, by number of nodes.
    bound: fn(usize) -> f64,
    measured: fn(&Run) -> Option<f64>,
}

impl Target {
    /// The value of a run; `None` if not measured.
    pub(crate) fn measured(&self, run: &Run) -> Option<f64> {
        (self.measured)(run)
    }

    /// Whether the value meets the target with this many nodes.
    pub(crate) fn is_met(&self, nodes: usize, measured: f64) -> bool {
        measured <= (self.bound)(nodes)
    }
}

/// The largest ratio of a phase over all nodes to its limit.
const OVER_LIMIT: f64 = 1.3;

#[rustfmt::skip]
pub(crate) const TARGETS: [Target; 16] = [
    target("gate, times its limit: at most 1.3", |_| OVER_LIMIT, |run| over_limit(run, Phase::Gate)),
    target("release, times its limit: at most 1.3", |_| OVER_LIMIT, |run| over_limit(run, Phase::Release)),
    target("delete, times its limit: at most 1.3", |_| OVER_LIMIT, |run| over_limit(run, Phase::Delete)),
    target("rollout, p99 times its limit: at most 1.5", |_| 1.5, |run| over_limit(run, Phase::Rollout)),
    target("single, p50 in ms: at most 10", |_| 10.0, |run| run.latencies(Phase::Single).map(|of| of.p50)),
    target("single, p99 in ms: at most 50", |_| 50.0, |run| run.latencies(Phase::Single).map(|of| of.p99)),
    target("churn, p50 in ms: at most 10", |_| 10.0, |run| run.latencies(Phase::Churn).map(|of| of.p50)),
    target("churn, p99 in ms: at most 50", |_| 50.0, |run| run.latencies(Phase::Churn).map(|of| of.p99)),
    target("taint writes for each change: at most 1", |_| 1.0, |run| most_per_change(run, taints)),
    target("condition writes for each change: at most 1", |_| 1.0, |run| most_per_change(run, conditions)),
    target("events for each change: at most 1", |_| 1.0, |run| most_per_change(run, events)),
    target("writes where nothing happens, or has while the controller was away: 0", |_| 0.0, most_quiet_writes),
    target("idle, % of a core: at most 0.1", |_| 0.1, |run| run.outcome(Phase::Idle).map(|idle| 100.0 * idle.cpu / idle.wall)),
    target("peak memory in MiB: at most 40 with up to 1,000 nodes, 150 with up to 10,000, 300 above", memory, Run::peak_memory),
    target("rule object in KiB: at most 64", |_| 64.0, Run::rule_size),
    target("pods bound before the gate of a node that is gated at birth: 0", |_| 0.0, |run| {
        Some(number(run.births.as_ref()?.despite_the_policy()))
    }),
];

const fn target(
    what: &'static str,
    bound: fn(usize) -> f64,
    measured: fn(&Run) -> Option<f64>,
) -> Target {
    Target {
        what,
        bound,
        measured,
    }
}

/// The most MiB for this many nodes.
fn memory(nodes: usize) -> f64 {
    match nodes {
        0..=1000 => 40.0,
        1001..=10_000 => 150.0,
        _ => 300.0,
    }
}

/// The most writes of a phase in which nothing is to be written.
fn most_quiet_writes(run: &Run) -> Option<f64> {
    let quiet = [Phase::Idle, Phase::Restart].map(|phase| run.outcome(phase));
    let writes = quiet.into_iter().flatten().map(Outcome::writes);
    writes.map(precise).reduce(f64::max)
}

fn over_limit(run: &Run, phase: Phase) -> Option<f64> {
    run.outcome(phase)?.over_limit()
}

/// The most requests per change that any phase needed.
fn most_per_change(run: &Run, count: fn(&Outcome) -> u64) -> Option<f64> {
    let phases = run.outcomes.iter().filter(|outcome| outcome.changes > 0);
    phases
        .map(|outcome| precise(count(outcome)) / number(outcome.changes))
        .reduce(f64::max)
}

/// Writes of nodes themselves.
pub(crate) fn taints(outcome: &Outcome) -> u64 {
    outcome.requests_of("patch nodes") + outcome.requests_of("update nodes")
}

/// Writes of nodes' statuses.
pub(crate) fn conditions(outcome: &Outcome) -> u64 {
    outcome.requests_of("patch nodes/status") + outcome.requests_of("update nodes/status")
}

/// Events created or updated.
pub(crate) fn events(outcome: &Outcome) -> u64 {
    ["create events", "patch events", "update events"]
        .iter()
        .map(|request| outcome.requests_of(request))
        .sum()
}

pub(crate) fn precise(count: u64) -> f64 {
    usize::try_from(count).map_or(f64::INFINITY, number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::outcome;

    fn run(phase: Phase, wall: f64, missed: usize, requests: &[(&str, u64)]) -> Run {
        Run {
            nodes: 10,
            kubernetes: String::new(),
            at_once: 8,
            outcomes: vec![Outcome {
                missed,
                wall,
                ..outcome(phase, requests)
            }],
            births: None,
        }
    }

    fn missed(run: &Run) -> Vec<&'static str> {
        let missed = TARGETS.iter().filter(|target| {
            let measured = target.measured(run);
            measured.is_some_and(|measured| !target.is_met(run.nodes, measured))
        });
        let short = missed.map(|target| target.what.split(':').next().unwrap_or_default());
        short.filter(|what| *what != "peak memory in MiB").collect()
    }

    #[rustfmt::skip]
    #[test]
    fn what_is_over_a_bound_is_missed_and_what_was_not_measured_is_not() {
        let events = [("patch nodes", 10), ("create events", 20)];
        let restless = "writes where nothing happens, or has while the controller was away";
        for (run, expected) in [
            (run(Phase::Gate, 1.2, 0, &[("patch nodes", 10)]), &[][..]),
            (run(Phase::Gate, 1.4, 0, &[]), &["gate, times its limit"]),
            (run(Phase::Delete, 1.0, 1, &[]), &["delete, times its limit"]),
            (run(Phase::Single, 1.0, 0, &events), &["events for each change"]),
            (run(Phase::Idle, 40.0, 0, &[]), &[]),
            (run(Phase::Idle, 1.0, 0, &[("patch nodes", 1)]), &[restless, "idle, % of a core"]),
        ] {
            assert_eq!(missed(&run), expected, "{run:?}");
        }
    }
}
