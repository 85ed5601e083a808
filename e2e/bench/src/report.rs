//! What came out, as a line for each phase on the screen and as tables in Markdown. Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::measure::{Latencies, number};
use crate::plan::Phase;
use crate::results::{Births, Early, Outcome, Results, Run};
use crate::targets::{TARGETS, conditions, events, precise, taints};

/// A line for the screen.
#[must_use]
pub fn line(outcome: &Outcome) -> String {
    let mut text = format!("{}: {}", outcome.phase.name(), wall(outcome));
    if let Some(latencies) = &outcome.latencies {
        let _ = write!(
            text,
            ", p50 {}, p99 {}, max {}",
            milliseconds(latencies.p50),
            milliseconds(latencies.p99),
            milliseconds(latencies.max)
        );
    }
    let _ = write!(
        text,
        ", CPU {:.3} s, {:.0} MiB, {} writes",
        outcome.cpu,
        outcome.peak_memory,
        outcome.writes()
    );
    for trouble in troubles(outcome) {
        let _ = write!(text, "\n  WRONG: {trouble}");
    }
    text
}

/// Everything, as a page.
#[must_use]
pub fn markdown(results: &Results) -> String {
    let runs = results.runs.iter();
    let versions: BTreeSet<&str> = runs.map(|run| run.kubernetes.as_str()).collect();
    let kubernetes = Vec::from_iter(versions).join(" and ");
    let mut page = format!(
        "# Results\n\nMade by `make bench`; see [Performance](README.md) for what is measured and how. The figures are in \
         [results.json](results.json) too.\n\n{} on Kubernetes {}, {}.\n\n",
        results.controller, kubernetes, results.machine
    );
    page.push_str(&overview(results));
    page.push_str(&targets(results));
    for run in results.runs.iter().filter(|run| !run.outcomes.is_empty()) {
        page.push_str(&details(run));
    }
    page
}

/// What matters most, with one column for each number of nodes.
fn overview(results: &Results) -> String {
    let runs = &results.runs;
    let mut table = Table::new(
        [String::new()]
            .into_iter()
            .chain(runs.iter().map(|run| format!("{} nodes", count(run.nodes)))),
    );
    let mut row = |name: &str, cell: &dyn Fn(&Run) -> Option<String>| {
        let cells: Vec<Option<String>> = runs.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(Option::unwrap_or_default);
            table.row([name.to_owned()].into_iter().chain(cells));
        }
    };
    for phase in [Phase::Gate, Phase::Release, Phase::Delete] {
        let name = format!("{}: all nodes, and times its limit", phase.name());
        row(&name, &|run| run.outcome(phase).map(wall));
    }
    for (phase, what) in [
        (Phase::Single, "one node at a time"),
        (Phase::Churn, "the same among unrelated writes"),
        (Phase::Joins, "nodes that join"),
        (Phase::Rollout, "a rollout of critical pods"),
    ] {
        row(&format!("{}: {what}, p50 / p99", phase.name()), &|run| {
            Some(halfway_and_last(run.outcome(phase)?.latencies.as_ref()?))
        });
        row(
            &format!("{}: the write that was the cause, p50 / p99", phase.name()),
            &|run| Some(halfway_and_last(run.outcome(phase)?.own.as_ref()?)),
        );
    }
    row("catch-up: process start to the first right write", &|run| {
        let latencies = run.outcome(Phase::CatchUp)?.latencies.as_ref()?;
        Some(milliseconds(latencies.max))
    });
    row("restart: writes where nothing has changed", &|run| {
        run.outcome(Phase::Restart)
            .map(|outcome| outcome.writes().to_string())
    });
    row("idle: CPU, writes", &|run| {
        let outcome = run.outcome(Phase::Idle)?;
        let share = 100.0 * outcome.cpu / outcome.wall;
        Some(format!("{share:.3} % of a core, {}", outcome.writes()))
    });
    for (who, early) in [
        (
            "by the controller alone",
            (|births| births.by_controller) as fn(&Births) -> Early,
        ),
        ("at birth, controller running", |births| births.by_both),
        ("at birth, no controller", |births| births.by_policy),
    ] {
        row(
            &format!("birth: pods bound before the gate, nodes closed {who}"),
            &|run| {
                let births = run.births.as_ref()?;
                let early = early(births);
                let pods = count(births.pods);
                Some(match early.pods {
                    0 => format!("0 of {pods}"),
                    bound => format!(
                        "{} of {pods}, on {} nodes",
                        count(bound),
                        count(early.nodes)
                    ),
                })
            },
        );
    }
    row("CPU for each taint change, gate and release", &|run| {
        let outcomes = [run.outcome(Phase::Gate)?, run.outcome(Phase::Release)?];
        let [cpu, changes] = [
            outcomes.iter().map(|outcome| outcome.cpu).sum::<f64>(),
            outcomes.iter().map(|outcome| number(outcome.changes)).sum(),
        ];
        Some(milliseconds(1e3 * cpu / changes))
    });
    row("peak resident memory", &|run| {
        run.peak_memory().map(|peak| format!("{peak:.0} MiB"))
    });
    row("largest rule object", &|run| {
        run.rule_size().map(|size| format!("{size:.1} KiB"))
    });
    table.text
}

/// What Nodegate aims at, with one column for each number of nodes.
fn targets(results: &Results) -> String {
    let runs = &results.runs;
    let head = runs.iter().map(|run| format!("{} nodes", count(run.nodes)));
    let mut table = Table::new(["target".to_owned()].into_iter().chain(head));
    for target in TARGETS {
        let cells = runs.iter().map(|run| {
            let verdict = target.judge(run);
            verdict.map_or_else(String::new, |verdict| {
                let measured = format!("{:.2}", verdict.measured);
                if verdict.met {
                    measured
                } else {
                    format!("**{measured}**")
                }
            })
        });
        let what = [target.what.to_owned()].into_iter();
        table.row(what.chain(cells));
    }
    format!(
        "\n## Targets\n\nWhat misses its target is **bold**.\n\n{}",
        table.text
    )
}

/// All phases of one run.
fn details(run: &Run) -> String {
    let mut text = format!(
        "\n## {} nodes\n\nThe limits are those of {} writes at a time.\n\n",
        count(run.nodes),
        run.at_once
    );
    let mut table = Table::new(
        [
            "phase",
            "changes",
            "wall",
            "p50",
            "p90",
            "p99",
            "max",
            "CPU",
            "peak memory",
        ]
        .map(str::to_owned),
    );
    for outcome in &run.outcomes {
        let quantile = |value: fn(&Latencies) -> f64| {
            let latencies = outcome.latencies.as_ref();
            latencies.map_or_else(String::new, |latencies| milliseconds(value(latencies)))
        };
        table.row([
            outcome.phase.name().to_owned(),
            count(outcome.changes),
            wall(outcome),
            quantile(|latencies| latencies.p50),
            quantile(|latencies| latencies.p90),
            quantile(|latencies| latencies.p99),
            quantile(|latencies| latencies.max),
            format!("{:.3} s", outcome.cpu),
            format!("{:.1} MiB", outcome.peak_memory),
        ]);
    }
    text.push_str(&table.text);
    text.push_str("\nThe controller's requests:\n\n");
    let mut table = Table::new(
        [
            "phase",
            "taints",
            "node conditions",
            "events",
            "rules",
            "other writes",
            "lists",
            "watches",
            "failed",
        ]
        .map(str::to_owned),
    );
    for outcome in &run.outcomes {
        table.row(requests(outcome));
    }
    text.push_str(&table.text);
    if run.outcomes.iter().any(|outcome| outcome.bytes.is_some()) {
        text.push_str("\nOver the wire, with TLS:\n\n");
        let head = ["phase", "sent", "received", "for each change"].map(str::to_owned);
        let mut table = Table::new(head);
        for outcome in &run.outcomes {
            table.row(bytes(outcome));
        }
        text.push_str(&table.text);
    }
    for outcome in &run.outcomes {
        for trouble in troubles(outcome) {
            let _ = write!(text, "\n**{}**: {trouble}\n", outcome.phase.name());
        }
    }
    text
}

fn requests(outcome: &Outcome) -> [String; 9] {
    let with = |verb: &str, resource: &str| {
        let requests = outcome.requests.iter();
        requests
            .filter(|(name, _)| name.starts_with(verb) && name.contains(resource))
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    let rules = with("patch ", "nodereadinessrules") + with("update ", "nodereadinessrules");
    let known = [taints(outcome), conditions(outcome), events(outcome), rules];
    let other = outcome.writes() - known.iter().sum::<u64>();
    let [taints, conditions, events, rules] = known;
    let figures = [
        taints,
        conditions,
        events,
        rules,
        other,
        with("list ", ""),
        with("watch ", ""),
        with("", " -> "),
    ];
    let mut cells = [const { String::new() }; 9];
    outcome.phase.name().clone_into(&mut cells[0]);
    for (cell, figure) in cells[1..].iter_mut().zip(figures) {
        *cell = figure.to_string();
    }
    cells
}

fn bytes(outcome: &Outcome) -> [String; 4] {
    let kibibytes = |bytes: f64| format!("{:.1} KiB", bytes / 1024.0);
    let phase = outcome.phase.name().to_owned();
    let Some(bytes) = outcome.bytes else {
        return [phase, String::new(), String::new(), String::new()];
    };
    let [sent, received] = [bytes.sent, bytes.received].map(precise);
    let each = (outcome.changes > 0).then(|| (sent + received) / number(outcome.changes));
    let each = each.map_or_else(String::new, kibibytes);
    [phase, kibibytes(sent), kibibytes(received), each]
}

/// What is wrong, if anything.
fn troubles(outcome: &Outcome) -> Vec<String> {
    let missed = (outcome.missed > 0).then(|| {
        format!(
            "{} of {} changes were not seen in time",
            outcome.missed, outcome.changes
        )
    });
    missed
        .into_iter()
        .chain(outcome.faults.iter().cloned())
        .collect()
}

/// How long a phase took, and how often its limit that is.
fn wall(outcome: &Outcome) -> String {
    let wall = format!("{:.2} s", outcome.wall);
    match (outcome.limit, outcome.over_limit()) {
        (Some(limit), Some(ratio)) if ratio.is_finite() => {
            format!("{wall} ({ratio:.2} x {limit:.2} s)")
        }
        (Some(_), _) => format!("over {wall}"),
        (None, _) => wall,
    }
}

fn halfway_and_last(latencies: &Latencies) -> String {
    let [p50, p99] = [latencies.p50, latencies.p99].map(milliseconds);
    format!("{p50} / {p99}")
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

/// A count with its thousands set apart.
fn count(value: usize) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table in Markdown, in the making.
struct Table {
    text: String,
}

impl Table {
    fn new(head: impl IntoIterator<Item = String>) -> Self {
        let mut table = Self {
            text: String::new(),
        };
        let columns = table.row(head);
        table.row((0..columns).map(|_| "---".to_owned()));
        table
    }

    /// Adds a row and says how many cells it has.
    fn row(&mut self, cells: impl IntoIterator<Item = String>) -> usize {
        let mut columns = 0;
        for cell in cells {
            let _ = write!(self.text, "| {cell} ");
            columns += 1;
        }
        self.text.push_str("|\n");
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_precise_as_they_are_worth() {
        let cases = [
            (0.25, "0.25 ms"),
            (0.999, "1.0 ms"),
            (4.44, "4.4 ms"),
            (9.96, "10 ms"),
            (123.4, "123 ms"),
            (24_700.0, "24.7 s"),
        ];
        for (value, expected) in cases {
            assert_eq!(milliseconds(value), expected);
        }
        assert_eq!(
            [1, 300, 1000, 10_000, 1_234_567].map(count).join(" "),
            "1 300 1,000 10,000 1,234,567"
        );
    }

    #[test]
    fn a_phase_is_compared_with_its_limit_only_where_it_ended() {
        let outcome = |phase, missed| Outcome {
            phase,
            changes: 10,
            missed,
            wall: 3.0,
            limit: (phase != Phase::Single).then_some(2.0),
            latencies: None,
            own: None,
            requests: [("patch nodes".to_owned(), 9), ("list pods".to_owned(), 1)].into(),
            bytes: None,
            cpu: 0.5,
            peak_memory: 20.0,
            rule_bytes: None,
            faults: Vec::new(),
        };
        assert_eq!(wall(&outcome(Phase::Gate, 0)), "3.00 s (1.50 x 2.00 s)");
        assert_eq!(wall(&outcome(Phase::Gate, 1)), "over 3.00 s");
        assert_eq!(wall(&outcome(Phase::Single, 0)), "3.00 s");
        assert_eq!(
            line(&outcome(Phase::Delete, 2)),
            "delete: over 3.00 s, CPU 0.500 s, 20 MiB, 9 writes\n  WRONG: 2 of 10 changes were not seen in time"
        );
        assert_eq!(
            requests(&outcome(Phase::Gate, 0)).join(" "),
            "gate 9 0 0 0 0 1 0 0"
        );
    }

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new(["a", "b"].map(str::to_owned));
        table.row(["1", "2"].map(str::to_owned));
        assert_eq!(table.text, "| a | b |\n| --- | --- |\n| 1 | 2 |\n");
    }
}
