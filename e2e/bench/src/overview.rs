//! The summary table. Pure.

use std::rc::Rc;

use crate::measure::{Latencies, number};
use crate::plan::Phase;
use crate::results::{Births, Outcome, Results, Run};
use crate::table::{
    Quantile, Table, figure, head, kibibytes, mebibytes, milliseconds, percent, ratio, seconds,
    whole,
};
use crate::targets::precise;

/// The most important figures, with one column for each number of nodes.
pub(crate) fn overview(results: &Results) -> String {
    let mut table = Table::new(head(String::new(), results));
    for row in [throughput(), latencies(), births(), costs()].concat() {
        let cells: Vec<Option<String>> = results
            .sizes()
            .map(|runs| figure(runs, &*row.value, row.format))
            .collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(Option::unwrap_or_default);
            table.row([row.name].into_iter().chain(cells));
        }
    }
    table.text
}

/// The value of a row for a run.
type Shown = Rc<dyn Fn(&Run) -> Option<f64>>;

#[derive(Clone)]
struct Row {
    name: String,
    format: fn(f64) -> String,
    value: Shown,
}

fn row(
    name: impl Into<String>,
    format: fn(f64) -> String,
    value: impl Fn(&Run) -> Option<f64> + 'static,
) -> Row {
    Row {
        name: name.into(),
        format,
        value: Rc::new(value),
    }
}

/// The phases over all nodes.
fn throughput() -> Vec<Row> {
    let phases = [Phase::Gate, Phase::Release, Phase::Delete].into_iter();
    let rows = phases.flat_map(|phase| {
        [
            row(
                format!("{}: all nodes", phase.name()),
                seconds,
                move |run| Some(run.outcome(phase)?.wall),
            ),
            row(
                format!("{}: times its limit", phase.name()),
                ratio,
                move |run| run.outcome(phase)?.over_limit(),
            ),
        ]
    });
    rows.collect()
}

/// The phases that change one node at a time.
fn latencies() -> Vec<Row> {
    let of = |phase: Phase, what: &str, sample: fn(&Outcome) -> Option<&Latencies>| {
        let quantiles: [(&str, Quantile); 2] = [
            ("p50", |latencies| latencies.p50),
            ("p99", |latencies| latencies.p99),
        ];
        quantiles.map(|(name, quantile)| {
            row(
                format!("{}: {what}, {name}", phase.name()),
                milliseconds,
                move |run| sample(run.outcome(phase)?).map(quantile),
            )
        })
    };
    let mut rows = Vec::new();
    for (phase, what) in [
        (Phase::Single, "one node at a time"),
        (Phase::Churn, "the same among unrelated writes"),
        (Phase::Joins, "nodes that join"),
        (Phase::Rollout, "a rollout of critical pods"),
    ] {
        rows.extend(of(phase, what, |outcome| outcome.latencies.as_ref()));
        let cause = "the write that was the cause";
        rows.extend(of(phase, cause, |outcome| outcome.own.as_ref()));
    }
    rows.extend(of(Phase::Rollout, "its limit", |outcome| {
        outcome.limit.as_ref()?.latencies.as_ref()
    }));
    rows.push(row(
        "catch-up: process start to the first right write",
        milliseconds,
        |run| Some(run.outcome(Phase::CatchUp)?.latencies.as_ref()?.max),
    ));
    rows
}

/// The pods bound before a gate was there.
fn births() -> Vec<Row> {
    let of = |what: &str, pods: fn(&Births) -> usize| {
        row(format!("birth: {what}"), whole, move |run| {
            run.births.as_ref().map(|births| number(pods(births)))
        })
    };
    vec![
        of("pods that wait", |births| births.pods),
        of(
            "bound before the gate, nodes closed by the controller alone",
            |births| births.by_controller.pods,
        ),
        of(
            "bound before the gate, nodes gated at birth, controller running",
            |births| births.by_both.pods,
        ),
        of(
            "bound before the gate, nodes gated at birth, no controller",
            |births| births.by_policy.pods,
        ),
    ]
}

/// The costs, also of an idle controller.
fn costs() -> Vec<Row> {
    vec![
        row("restart: writes where nothing has changed", whole, |run| {
            Some(precise(run.outcome(Phase::Restart)?.writes()))
        }),
        row("idle: share of a core", percent, |run| {
            let idle = run.outcome(Phase::Idle)?;
            Some(idle.cpu / idle.wall)
        }),
        row("idle: writes", whole, |run| {
            Some(precise(run.outcome(Phase::Idle)?.writes()))
        }),
        row(
            "the controller's CPU for each taint change, gate and release",
            milliseconds,
            |run| over_both(run, |outcome| Some(outcome.cpu)),
        ),
        row(
            "the API server's CPU for each, reporters' writes included",
            milliseconds,
            |run| over_both(run, |outcome| outcome.api_server_cpu),
        ),
        row(
            "the API server's CPU for each in the limit: no controller, no events",
            milliseconds,
            |run| over_both(run, |outcome| outcome.limit.as_ref()?.api_server_cpu),
        ),
        row("peak resident memory", mebibytes, Run::peak_memory),
        row("largest rule object", kibibytes, Run::rule_size),
    ]
}

/// Milliseconds per taint change over gate and release together, from seconds per phase.
fn over_both(run: &Run, seconds: fn(&Outcome) -> Option<f64>) -> Option<f64> {
    let outcomes = [run.outcome(Phase::Gate)?, run.outcome(Phase::Release)?];
    let sum: Option<f64> = outcomes.iter().map(|outcome| seconds(outcome)).sum();
    let changes: f64 = outcomes.iter().map(|outcome| number(outcome.changes)).sum();
    Some(1e3 * sum? / changes)
}
