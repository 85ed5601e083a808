//! The results, as a line for each phase and as a table in Markdown. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::measure::{Latencies, Spread, number};
use crate::plan::Phase;
use crate::requests::writes;

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

/// The results with one number of nodes.
#[derive(Debug, Clone)]
pub struct Run {
    /// The number of nodes.
    pub nodes: usize,
    /// The Kubernetes version, such as `v1.36.3`.
    pub kubernetes: String,
    /// The phases, in order.
    pub outcomes: Vec<Outcome>,
}

impl Run {
    /// The result of a phase, if it was measured.
    fn outcome(&self, phase: Phase) -> Option<&Outcome> {
        let mut outcomes = self.outcomes.iter();
        outcomes.find(|outcome| outcome.phase == phase)
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
    /// The times from each causing request until the client observed its own write, where one node changes at a time.
    pub own: Option<Latencies>,
    /// The controller's requests by verb and resource, until it was quiet again.
    pub requests: BTreeMap<String, u64>,
    /// The controller's CPU time in seconds, until it was quiet again.
    pub cpu: f64,
    /// The API server's CPU time in seconds over the same time, client requests included.
    pub api_server_cpu: f64,
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
        let requests = self.requests.iter();
        requests
            .filter(|(request, _)| request.split(" -> ").next() == Some(name))
            .map(|(_, count)| count)
            .sum()
    }

    /// How many requests were writes.
    pub fn writes(&self) -> u64 {
        writes(&self.requests)
    }

    /// The problems of the phase.
    fn troubles(&self) -> Vec<String> {
        let mut troubles = self.faults.clone();
        if self.missed > 0 {
            let Self {
                missed, changes, ..
            } = self;
            troubles.push(format!(
                "{missed} of {changes} changes were not seen in time"
            ));
        }
        troubles
    }
}

/// A phase as a line, with its problems below.
pub(crate) fn line(outcome: &Outcome) -> String {
    let mut text = format!("{}: {}", outcome.phase.name(), seconds(outcome.wall));
    if let Some(ratio) = outcome.over_limit() {
        let _ = write!(text, " ({ratio:.2} x its limit)");
    }
    if let Some(Latencies { p50, p99, max }) = &outcome.latencies {
        let [p50, p99, max] = [*p50, *p99, *max].map(milliseconds);
        let _ = write!(text, ", p50 {p50}, p99 {p99}, max {max}");
    }
    let _ = write!(
        text,
        ", CPU {:.3} s, {:.0} MiB, {} writes",
        outcome.cpu,
        outcome.peak_memory,
        outcome.writes()
    );
    for trouble in outcome.troubles() {
        let _ = write!(text, "\n  WRONG: {trouble}");
    }
    text
}

/// The table of `docs/performance.md`, with one column for each number of nodes, and what was wrong.
pub fn markdown(results: &Results) -> String {
    let runs = results.runs.iter();
    let versions: BTreeSet<&str> = runs.map(|run| run.kubernetes.as_str()).collect();
    let kubernetes = Vec::from_iter(versions).join(" and ");
    let mut text = format!(
        "{} on Kubernetes {kubernetes}, {}.\n\n",
        results.controller, results.machine
    );
    let sizes = || results.runs.chunk_by(|one, next| one.nodes == next.nodes);
    if sizes().any(|runs| runs.len() > 1) {
        text.push_str("Medians of several runs, with the least and the most in brackets.\n\n");
    }
    let head = sizes().map(|runs| format!("{} nodes", whole(number(runs[0].nodes))));
    add_row(&mut text, "", head);
    add_row(&mut text, "---", sizes().map(|_| "---".to_owned()));
    for (name, format, value) in rows() {
        let cells = sizes().map(|runs| {
            let spread = Spread::of(runs.iter().filter_map(&value));
            spread.map_or_else(String::new, |spread| spread.text(format))
        });
        let cells: Vec<String> = cells.collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            add_row(&mut text, &name, cells);
        }
    }
    for outcome in results.runs.iter().flat_map(|run| &run.outcomes) {
        for trouble in outcome.troubles() {
            let _ = write!(text, "\n**{}**: {trouble}\n", outcome.phase.name());
        }
    }
    text
}

fn add_row(text: &mut String, name: &str, cells: impl IntoIterator<Item = String>) {
    let _ = write!(text, "| {name} |");
    for cell in cells {
        let _ = write!(text, " {cell} |");
    }
    text.push('\n');
}

/// The value of a row for a run.
type Value = Box<dyn Fn(&Run) -> Option<f64>>;

type Quantile = fn(&Latencies) -> f64;

/// A row's name, the format of its figures, and its value.
type Row = (String, fn(f64) -> String, Value);

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let row = |name: &str, format, value: Value| -> Row { (name.to_owned(), format, value) };
    let mut rows = Vec::new();
    for phase in [Phase::Gate, Phase::Release, Phase::Delete] {
        let name = phase.name();
        rows.push(row(&format!("{name}: all nodes"), seconds, Box::new(move |run| Some(run.outcome(phase)?.wall))));
        rows.push(row(&format!("{name}: times its limit"), ratio, Box::new(move |run| run.outcome(phase)?.over_limit())));
    }
    let both: [(&str, Quantile); 2] = [("p50", |it| it.p50), ("p99", |it| it.p99)];
    let p99 = &both[1..];
    let mut latencies = |phase: Phase, what: &str, quantiles: &[(&str, Quantile)], sample: fn(&Outcome) -> Option<&Latencies>| {
        for &(quantile, of) in quantiles {
            let name = format!("{}: {what}, {quantile}", phase.name());
            rows.push(row(&name, milliseconds, Box::new(move |run| sample(run.outcome(phase)?).map(of))));
        }
    };
    latencies(Phase::Single, "one node at a time", &both, |outcome| outcome.latencies.as_ref());
    latencies(Phase::Single, "the write that was the cause", p99, |outcome| outcome.own.as_ref());
    for (phase, what) in [
        (Phase::Churn, "the same among unrelated writes"),
        (Phase::Joins, "nodes that join"),
        (Phase::Rollout, "a rollout of critical pods"),
    ] {
        latencies(phase, what, &both, |outcome| outcome.latencies.as_ref());
    }
    latencies(Phase::Rollout, "its limit", p99, |outcome| outcome.limit.as_ref()?.latencies.as_ref());
    rows.extend([
        row("catch-up: process start to the first right write", milliseconds,
            Box::new(|run| Some(run.outcome(Phase::CatchUp)?.latencies.as_ref()?.max))),
        row("idle: share of a core", percent,
            Box::new(|run| run.outcome(Phase::Idle).map(|idle| idle.cpu / idle.wall))),
        row("the controller's CPU for each taint change, gate and release", milliseconds,
            Box::new(|run| for_each_change(run, |outcome| outcome.cpu))),
        row("the API server's CPU for each, reporters' writes included", milliseconds,
            Box::new(|run| for_each_change(run, |outcome| outcome.api_server_cpu))),
        row("peak resident memory", mebibytes,
            Box::new(|run| run.outcomes.iter().map(|outcome| outcome.peak_memory).reduce(f64::max))),
        row("largest rule object", kibibytes,
            Box::new(|run| run.outcomes.iter().filter_map(|outcome| outcome.rule_bytes).max().map(number))),
    ]);
    rows
}

/// Milliseconds per taint change over gate and release together, from seconds per phase.
fn for_each_change(run: &Run, seconds: fn(&Outcome) -> f64) -> Option<f64> {
    let outcomes = [run.outcome(Phase::Gate)?, run.outcome(Phase::Release)?];
    let sum: f64 = outcomes.iter().map(|outcome| seconds(outcome)).sum();
    let changes: f64 = outcomes.iter().map(|outcome| number(outcome.changes)).sum();
    Some(1e3 * sum / changes)
}

fn seconds(value: f64) -> String {
    format!("{value:.2} s")
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

fn percent(share: f64) -> String {
    format!("{:.3} %", 100.0 * share)
}

fn mebibytes(value: f64) -> String {
    format!("{value:.0} MiB")
}

fn kibibytes(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}

/// A count with separated thousands.
fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds with about two significant digits.
fn milliseconds(value: f64) -> String {
    match value {
        value if value < 0.995 => format!("{value:.2} ms"),
        value if value < 9.95 => format!("{value:.1} ms"),
        value if value < 9950.0 => format!("{value:.0} ms"),
        value => format!("{:.1} s", value / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A phase of three seconds over ten nodes, with a limit of two.
    fn outcome(missed: usize) -> Outcome {
        let requests = [
            ("list nodes", 3),
            ("patch nodes", 10),
            ("patch nodes -> 422", 2),
        ];
        Outcome {
            phase: Phase::Gate,
            changes: 10,
            missed,
            wall: 3.0,
            limit: Some(Limit {
                wall: 2.0,
                latencies: None,
            }),
            latencies: None,
            own: None,
            requests: requests
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            cpu: 0.02,
            api_server_cpu: 0.1,
            peak_memory: 41.0,
            rule_bytes: Some(1024),
            faults: Vec::new(),
        }
    }

    #[test]
    fn a_phase_is_compared_with_its_limit_only_where_it_ended() {
        let ended = "gate: 3.00 s (1.50 x its limit), CPU 0.020 s, 41 MiB, 12 writes";
        assert_eq!(line(&outcome(0)), ended);
        assert_eq!(outcome(0).requests_of("patch nodes"), 12);
        let missed = "gate: 3.00 s (inf x its limit), CPU 0.020 s, 41 MiB, 12 writes\n  \
                      WRONG: 1 of 10 changes were not seen in time";
        assert_eq!(line(&outcome(1)), missed);
    }

    #[test]
    fn the_table_has_a_column_for_each_size_and_what_was_measured() {
        let run = |nodes, missed| Run {
            nodes,
            kubernetes: "v1".to_owned(),
            outcomes: vec![outcome(missed)],
        };
        let results = Results {
            controller: "it".to_owned(),
            machine: "here".to_owned(),
            runs: vec![run(300, 0), run(10_000, 0)],
        };
        let expected = "it on Kubernetes v1, here.\n\n\
            |  | 300 nodes | 10,000 nodes |\n| --- | --- | --- |\n\
            | gate: all nodes | 3.00 s | 3.00 s |\n| gate: times its limit | 1.50 | 1.50 |\n\
            | peak resident memory | 41 MiB | 41 MiB |\n| largest rule object | 1.0 KiB | 1.0 KiB |\n";
        assert_eq!(markdown(&results), expected);
    }

    #[test]
    fn figures_are_as_precise_as_they_are_worth() {
        let figures = [0.25, 0.999, 4.44, 9.96, 123.4, 24_700.0].map(milliseconds);
        let expected = ["0.25 ms", "1.0 ms", "4.4 ms", "10 ms", "123 ms", "24.7 s"];
        assert_eq!(figures, expected);
    }
}
