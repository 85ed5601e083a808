//! Nodegate's performance targets, and whether a run meets them. Pure.

use nodegate_plot::number;

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
    #[must_use]
    pub(crate) fn measured(&self, run: &Run) -> Option<f64> {
        (self.measured)(run)
    }

    /// Whether the value meets the target with this many nodes.
    #[must_use]
    pub(crate) fn is_met(&self, nodes: usize, measured: f64) -> bool {
        measured <= (self.bound)(nodes)
    }
}

/// The largest ratio of a phase over all nodes to its limit.
const OVER_LIMIT: f64 = 1.3;

pub(crate) const TARGETS: [Target; 16] = [
    Target {
        what: "gate, times its limit: at most 1.3",
        bound: |_| OVER_LIMIT,
        measured: |run| over_limit(run, Phase::Gate),
    },
    Target {
        what: "release, times its limit: at most 1.3",
        bound: |_| OVER_LIMIT,
        measured: |run| over_limit(run, Phase::Release),
    },
    Target {
        what: "delete, times its limit: at most 1.3",
        bound: |_| OVER_LIMIT,
        measured: |run| over_limit(run, Phase::Delete),
    },
    Target {
        what: "rollout, p99 times its limit: at most 1.5",
        bound: |_| 1.5,
        measured: |run| over_limit(run, Phase::Rollout),
    },
    Target {
        what: "single, p50 in ms: at most 10",
        bound: |_| 10.0,
        measured: |run| Some(run.outcome(Phase::Single)?.latencies.as_ref()?.p50),
    },
    Target {
        what: "single, p99 in ms: at most 50",
        bound: |_| 50.0,
        measured: |run| Some(run.outcome(Phase::Single)?.latencies.as_ref()?.p99),
    },
    Target {
        what: "churn, p50 in ms: at most 10",
        bound: |_| 10.0,
        measured: |run| Some(run.outcome(Phase::Churn)?.latencies.as_ref()?.p50),
    },
    Target {
        what: "churn, p99 in ms: at most 50",
        bound: |_| 50.0,
        measured: |run| Some(run.outcome(Phase::Churn)?.latencies.as_ref()?.p99),
    },
    Target {
        what: "taint writes for each change: at most 1",
        bound: |_| 1.0,
        measured: |run| most_per_change(run, taints),
    },
    Target {
        what: "condition writes for each change: at most 1",
        bound: |_| 1.0,
        measured: |run| most_per_change(run, conditions),
    },
    Target {
        what: "events for each change: at most 1",
        bound: |_| 1.0,
        measured: |run| most_per_change(run, events),
    },
    Target {
        what: "writes where nothing happens, or has while the controller was away: 0",
        bound: |_| 0.0,
        measured: |run| {
            let quiet = [Phase::Idle, Phase::Restart].map(|phase| run.outcome(phase));
            let writes = quiet.into_iter().flatten().map(Outcome::writes);
            writes.map(precise).reduce(f64::max)
        },
    },
    Target {
        what: "idle, % of a core: at most 0.1",
        bound: |_| 0.1,
        measured: |run| {
            let idle = run.outcome(Phase::Idle)?;
            Some(100.0 * idle.cpu / idle.wall)
        },
    },
    Target {
        what: "peak memory in MiB: at most 40 with up to 1,000 nodes, 150 with up to 10,000, 300 above",
        bound: |nodes| match nodes {
            0..=1000 => 40.0,
            1001..=10_000 => 150.0,
            _ => 300.0,
        },
        measured: Run::peak_memory,
    },
    Target {
        what: "rule object in KiB: at most 64",
        bound: |_| 64.0,
        measured: |run| run.rule_size(),
    },
    Target {
        what: "pods bound before the gate of a node that is closed at birth: 0",
        bound: |_| 0.0,
        measured: |run| Some(number(run.births.as_ref()?.despite_the_policy())),
    },
];

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
    use crate::results::Limit;

    fn run(phase: Phase, wall: f64, missed: usize, requests: &[(&str, u64)]) -> Run {
        let requests = requests
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        Run {
            nodes: 10,
            kubernetes: String::new(),
            at_once: 8,
            outcomes: vec![Outcome {
                phase,
                changes: if phase == Phase::Idle { 0 } else { 10 },
                missed,
                wall,
                limit: phase.has_limit().then_some(Limit {
                    wall: 1.0,
                    latencies: None,
                    api_server_cpu: Some(0.1),
                }),
                latencies: None,
                own: None,
                requests: requests.collect(),
                bytes: None,
                cpu: 0.02,
                api_server_cpu: Some(0.2),
                peak_memory: 41.0,
                rule_bytes: None,
                faults: Vec::new(),
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

    #[test]
    fn what_is_over_a_bound_is_missed_and_what_was_not_measured_is_not() {
        let events = [("patch nodes", 10), ("create events", 20)];
        let cases = [
            (
                "fast",
                run(Phase::Gate, 1.2, 0, &[("patch nodes", 10)]),
                vec![],
            ),
            (
                "slow",
                run(Phase::Gate, 1.4, 0, &[]),
                vec!["gate, times its limit"],
            ),
            (
                "never",
                run(Phase::Delete, 1.0, 1, &[]),
                vec!["delete, times its limit"],
            ),
            (
                "chatty",
                run(Phase::Single, 1.0, 0, &events),
                vec!["events for each change"],
            ),
            ("asleep", run(Phase::Idle, 40.0, 0, &[]), vec![]),
            (
                "restless",
                run(Phase::Idle, 1.0, 0, &[("patch nodes", 1)]),
                vec![
                    "writes where nothing happens, or has while the controller was away",
                    "idle, % of a core",
                ],
            ),
        ];
        for (name, run, expected) in cases {
            assert_eq!(missed(&run), expected, "{name}");
        }
    }
}
