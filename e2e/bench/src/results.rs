//! The results.

use std::collections::BTreeMap;

use crate::measure::{Latencies, number};
use crate::plan::Phase;
use crate::relay::Bytes;

/// All runs of one call.
#[derive(Debug, Clone)]
pub struct Results {
    /// The controller's command.
    pub controller: String,
    /// The machine.
    pub machine: String,
    /// Ordered by number of nodes; several of one number are repetitions.
    pub runs: Vec<Run>,
}

impl Results {
    /// The runs of each number of nodes, ascending.
    pub fn sizes(&self) -> impl Iterator<Item = &[Run]> + Clone {
        self.runs.chunk_by(|one, next| one.nodes == next.nodes)
    }
}

/// The results with one number of nodes.
#[derive(Debug, Clone)]
pub struct Run {
    /// The number of nodes.
    pub nodes: usize,
    /// The Kubernetes version, such as `v1.36.3`.
    pub kubernetes: String,
    /// The number of concurrent writes that is fastest for the client itself.
    pub at_once: usize,
    /// The phases, in order.
    pub outcomes: Vec<Outcome>,
    /// The pods bound before a gate was there, if counted.
    pub births: Option<Births>,
}

/// Pods bound to nodes that were to be closed, by what closes nodes.
#[derive(Debug, Clone)]
pub struct Births {
    /// How many nodes joined.
    pub nodes: usize,
    /// How many pods were pending.
    pub pods: usize,
    /// Closed by the controller alone.
    pub by_controller: Early,
    /// Closed by the API server at creation, while the controller runs.
    pub by_both: Early,
    /// Closed by the API server, while no controller runs.
    pub by_policy: Early,
}

/// What was bound too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early {
    /// The number of pods.
    pub pods: usize,
    /// The number of their nodes.
    pub nodes: usize,
}

impl Births {
    /// How many pods were bound to nodes that the API server closed.
    pub fn despite_the_policy(&self) -> usize {
        self.by_both.pods.max(self.by_policy.pods)
    }
}

impl Run {
    /// The result of a phase, if it was measured.
    pub fn outcome(&self, phase: Phase) -> Option<&Outcome> {
        let mut outcomes = self.outcomes.iter();
        outcomes.find(|outcome| outcome.phase == phase)
    }

    /// The latencies of a phase, if they were measured.
    pub fn latencies(&self, phase: Phase) -> Option<&Latencies> {
        self.outcome(phase)?.latencies.as_ref()
    }

    /// The controller's peak resident memory, in MiB.
    pub fn peak_memory(&self) -> Option<f64> {
        let peaks = self.outcomes.iter().map(|outcome| outcome.peak_memory);
        peaks.reduce(f64::max)
    }

    /// The size of the largest rule as JSON, in KiB.
    pub fn rule_size(&self) -> Option<f64> {
        let sizes = self.outcomes.iter();
        let largest = sizes.filter_map(|outcome| outcome.rule_bytes).max();
        largest.map(|bytes| number(bytes) / 1024.0)
    }
}

/// The result of one phase.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The phase.
    pub phase: Phase,
    /// The number of expected taint changes.
    pub changes: usize,
    /// How many of them did not happen in time.
    pub missed: usize,
    /// Seconds from the first cause to the last effect; for the idle phase, its length.
    pub wall: f64,
    /// The client's own result for the same writes right before, without a controller; `None` for a phase without a limit.
    pub limit: Option<Limit>,
    /// The times from each cause to its effect.
    pub latencies: Option<Latencies>,
    /// The times from each causing request until the client observed its own write.
    pub own: Option<Latencies>,
    /// The controller's requests by verb and resource, until it was quiet again.
    pub requests: BTreeMap<String, u64>,
    /// The bytes of these requests, if counted.
    pub bytes: Option<Bytes>,
    /// The controller's CPU time in seconds, until it was quiet again.
    pub cpu: f64,
    /// The API server's CPU time in seconds over the same time, client requests included, if measured.
    pub api_server_cpu: Option<f64>,
    /// The controller's peak resident memory since its start, in MiB.
    pub peak_memory: f64,
    /// The size of the rule at the end as JSON, in bytes, if there was one.
    pub rule_bytes: Option<usize>,
    /// What was wrong at the end.
    pub faults: Vec<String>,
}

/// The client's own result for the writes of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Seconds from the first cause to the last effect.
    pub wall: f64,
    /// The times from each cause to its effect, where the phase changes one node at a time.
    pub latencies: Option<Latencies>,
    /// The API server's CPU time in seconds, if measured.
    pub api_server_cpu: Option<f64>,
}

impl Outcome {
    /// The ratio of the phase to its limit: of the total time, or of the 99th percentile where it changes one node at a time.
    /// `None` without a limit, infinite if the phase did not end.
    pub fn over_limit(&self) -> Option<f64> {
        let limit = self.limit.as_ref()?;
        let ratio = match (&self.latencies, &limit.latencies) {
            (_, None) => self.wall / limit.wall,
            (Some(latencies), Some(limit)) => latencies.p99 / limit.p99,
            (None, Some(_)) => f64::INFINITY,
        };
        Some(if self.missed == 0 {
            ratio
        } else {
            f64::INFINITY
        })
    }

    /// The number of the controller's requests of this name, such as `patch nodes`, failed ones included.
    pub fn requests_of(&self, name: &str) -> u64 {
        self.requests
            .iter()
            .filter(|(request, _)| without_code(request) == name)
            .map(|(_, count)| count)
            .sum()
    }

    /// How many requests were writes.
    pub fn writes(&self) -> u64 {
        self.requests
            .iter()
            .filter(|(request, _)| is_write(request))
            .map(|(_, count)| count)
            .sum()
    }

    /// The controller's CPU time per taint change, in milliseconds.
    pub fn cpu_per_change(&self) -> Option<f64> {
        self.per_change(self.cpu)
    }

    /// The API server's CPU time per taint change, in milliseconds, the client's own writes included.
    pub fn api_server_cpu_per_change(&self) -> Option<f64> {
        self.per_change(self.api_server_cpu?)
    }

    fn per_change(&self, seconds: f64) -> Option<f64> {
        (self.changes > 0).then(|| seconds * 1e3 / number(self.changes))
    }
}

/// Whether a request of this name is a write.
pub(crate) fn is_write(request: &str) -> bool {
    !["get ", "list ", "watch "]
        .iter()
        .any(|reading| request.starts_with(reading))
}

/// The name of a request without the status code of a failed one.
fn without_code(request: &str) -> &str {
    request.split(" -> ").next().unwrap_or(request)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A phase of a second, at its limit if it has one, with ten changes unless nothing happens in it.
    pub(crate) fn outcome(phase: Phase, requests: &[(&str, u64)]) -> Outcome {
        let requests = requests.iter();
        Outcome {
            phase,
            changes: if phase == Phase::Idle { 0 } else { 10 },
            missed: 0,
            wall: 1.0,
            limit: phase.has_limit().then_some(Limit {
                wall: 1.0,
                latencies: None,
                api_server_cpu: Some(0.1),
            }),
            latencies: None,
            own: None,
            requests: requests
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            bytes: None,
            cpu: 0.02,
            api_server_cpu: Some(0.1),
            peak_memory: 41.0,
            rule_bytes: None,
            faults: Vec::new(),
        }
    }

    #[test]
    fn requests_are_counted_whatever_the_answer_and_reads_are_no_writes() {
        let requests = [
            ("list nodes", 3),
            ("watch nodes", 1),
            ("patch nodes", 10),
            ("patch nodes -> 422", 2),
            ("patch nodes/status", 5),
        ];
        let outcome = outcome(Phase::Gate, &requests);
        assert_eq!(outcome.requests_of("patch nodes"), 12);
        assert_eq!(outcome.writes(), 17);
        assert_eq!(outcome.cpu_per_change(), Some(2.0));
        assert_eq!(outcome.api_server_cpu_per_change(), Some(10.0));
    }
}
