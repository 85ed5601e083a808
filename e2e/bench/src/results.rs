//! What came out, as it is kept in `results.json`.

use std::collections::BTreeMap;

use nodegate_plot::number;
use serde::{Deserialize, Serialize};

use crate::measure::Latencies;
use crate::plan::Phase;
use crate::relay::Bytes;

/// All runs of one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// What was measured: the controller's command.
    pub controller: String,
    /// Where it was measured.
    pub machine: String,
    /// By the number of nodes, ascending; several of one number where it was measured several times.
    pub runs: Vec<Run>,
}

impl Results {
    /// The runs of each number of nodes, ascending.
    pub fn sizes(&self) -> impl Iterator<Item = &[Run]> + Clone {
        self.runs.chunk_by(|one, next| one.nodes == next.nodes)
    }
}

/// What came out with so many nodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// How many nodes.
    pub nodes: usize,
    /// What Kubernetes it was, such as `v1.36.3`.
    pub kubernetes: String,
    /// How many writes at a time turned out fastest for the client itself.
    pub at_once: usize,
    /// The phases, in order.
    pub outcomes: Vec<Outcome>,
    /// What was bound before a gate was there, where that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub births: Option<Births>,
}

/// Pods that were bound to nodes which were to be closed, by who closes nodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Births {
    /// How many nodes joined.
    pub nodes: usize,
    /// How many pods were waiting.
    pub pods: usize,
    /// The controller alone.
    pub by_controller: Early,
    /// The API server as it creates them, and the controller runs.
    pub by_both: Early,
    /// The API server, and no controller runs.
    pub by_policy: Early,
}

/// What was bound too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Early {
    /// Pods.
    pub pods: usize,
    /// Nodes that they are on.
    pub nodes: usize,
}

impl Births {
    /// How many pods got onto nodes that the API server closed.
    #[must_use]
    pub fn despite_the_policy(&self) -> usize {
        self.by_both.pods.max(self.by_policy.pods)
    }
}

impl Run {
    /// What came out of a phase, if it was measured.
    #[must_use]
    pub fn outcome(&self, phase: Phase) -> Option<&Outcome> {
        let mut outcomes = self.outcomes.iter();
        outcomes.find(|outcome| outcome.phase == phase)
    }

    /// MiB that the controller had resident at most.
    #[must_use]
    pub fn peak_memory(&self) -> Option<f64> {
        let peaks = self.outcomes.iter().map(|outcome| outcome.peak_memory);
        peaks.reduce(f64::max)
    }

    /// KiB of the largest rule, as JSON.
    #[must_use]
    pub fn rule_size(&self) -> Option<f64> {
        let sizes = self.outcomes.iter();
        let largest = sizes.filter_map(|outcome| outcome.rule_bytes).max();
        largest.map(|bytes| number(bytes) / 1024.0)
    }
}

/// What came out of one phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The phase.
    pub phase: Phase,
    /// How many taint changes were due.
    pub changes: usize,
    /// How many of them were not seen in time.
    pub missed: usize,
    /// Seconds from the first cause to the last effect; of an idle phase, how long it was.
    pub wall: f64,
    /// What the client itself needed for the same writes right before, with no controller running; `None` for a phase that
    /// does not go as fast as it can.
    pub limit: Option<Limit>,
    /// From each cause to its effect.
    pub latencies: Option<Latencies>,
    /// From the request that was the cause until the client saw what it had written: what one write takes by itself.
    pub own: Option<Latencies>,
    /// The controller's requests by verb and resource, until it was quiet again.
    pub requests: BTreeMap<String, u64>,
    /// What went over the wire for that, where it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Seconds of CPU that the controller used, until it was quiet again.
    pub cpu: f64,
    /// Seconds of CPU that the API server used in the same time, for the client's own requests too, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_cpu: Option<f64>,
    /// MiB that the controller had resident at most since it was started.
    pub peak_memory: f64,
    /// Bytes of the rule, as JSON, where there was one at the end.
    pub rule_bytes: Option<usize>,
    /// What was not as it should have been at the end.
    pub faults: Vec<String>,
}

/// What the client itself needed to make a phase's writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Seconds from the first cause to the last effect.
    pub wall: f64,
    /// From each cause to its effect, where the phase goes node by node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<Latencies>,
    /// Seconds of CPU that the API server used, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_cpu: Option<f64>,
}

impl Outcome {
    /// How often its limit the phase took: by the time for all nodes, or where it goes node by node by the latency that one
    /// in a hundred exceeds. `None` where it has no limit, beyond all bounds where it did not end.
    #[must_use]
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

    /// How many of the controller's requests go by this name, such as `patch nodes`, whatever the answer was.
    #[must_use]
    pub fn requests_of(&self, name: &str) -> u64 {
        self.requests
            .iter()
            .filter(|(request, _)| without_code(request) == name)
            .map(|(_, count)| count)
            .sum()
    }

    /// How many requests were writes.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.requests
            .iter()
            .filter(|(request, _)| is_write(request))
            .map(|(_, count)| count)
            .sum()
    }

    /// Milliseconds of the controller's CPU for each taint change.
    #[must_use]
    pub fn cpu_per_change(&self) -> Option<f64> {
        self.per_change(self.cpu)
    }

    /// Milliseconds of the API server's CPU for each taint change, the client's own writes included.
    #[must_use]
    pub fn api_server_cpu_per_change(&self) -> Option<f64> {
        self.per_change(self.api_server_cpu?)
    }

    fn per_change(&self, seconds: f64) -> Option<f64> {
        (self.changes > 0).then(|| seconds * 1e3 / number(self.changes))
    }
}

/// Whether a request by this name changes something.
#[must_use]
pub fn is_write(request: &str) -> bool {
    !["get ", "list ", "watch "]
        .iter()
        .any(|reading| request.starts_with(reading))
}

/// The name of a request without the answer of one that failed.
fn without_code(request: &str) -> &str {
    request.split(" -> ").next().unwrap_or(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_whatever_the_answer_and_reads_are_no_writes() {
        let requests = [
            ("list nodes", 3),
            ("watch nodes", 1),
            ("patch nodes", 10),
            ("patch nodes -> 422", 2),
            ("patch nodes/status", 5),
        ];
        let outcome = Outcome {
            phase: Phase::Gate,
            changes: 10,
            missed: 0,
            wall: 1.0,
            limit: None,
            latencies: None,
            own: None,
            requests: requests
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            bytes: None,
            cpu: 0.02,
            api_server_cpu: Some(0.1),
            peak_memory: 10.0,
            rule_bytes: None,
            faults: Vec::new(),
        };
        assert_eq!(outcome.requests_of("patch nodes"), 12);
        assert_eq!(outcome.writes(), 17);
        assert_eq!(outcome.cpu_per_change(), Some(2.0));
        assert_eq!(outcome.api_server_cpu_per_change(), Some(10.0));
    }
}
