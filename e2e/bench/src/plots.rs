//! Which charts there are.

use crate::chart::{Axis, Chart, Scale, Series, Style};
use crate::measure::number;
use crate::plan::Phase;
use crate::results::{Results, Run};
use crate::svg;

/// A value of a run, where it was measured.
type Value = fn(&Run) -> Option<f64>;

/// All charts, as SVG, by the names of their files.
#[must_use]
pub fn plots(results: &Results) -> Vec<(&'static str, String)> {
    let runs = &results.runs;
    let latency = [
        (Phase::Single, "One node at a time"),
        (Phase::Churn, "The same among unrelated writes"),
        (Phase::Joins, "Nodes that join"),
        (Phase::Rollout, "A rollout of critical pods"),
    ];
    let latency = latency.map(|(phase, title)| distribution(runs, phase, title));
    let latency: Vec<Chart> = latency.into_iter().flatten().collect();
    let mut charts = Vec::new();
    if !latency.is_empty() {
        charts.push(("latency.svg", svg::draw(&latency, 2)));
    }
    charts.push(("cost.svg", svg::draw(&costs(runs), 2)));
    charts
}

/// How the latencies of a phase are distributed, for each number of nodes.
fn distribution(runs: &[Run], phase: Phase, title: &str) -> Option<Chart> {
    let series: Vec<Series> = runs
        .iter()
        .filter_map(|run| {
            Some(Series {
                name: format!("{} nodes", run.nodes),
                points: run.outcome(phase)?.latencies.as_ref()?.cumulative(),
                style: Style::Steps,
            })
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let points = series.iter().flat_map(|series| &series.points);
    Some(Chart {
        title: title.to_owned(),
        x: Axis::logarithmic(
            "milliseconds from cause to effect",
            points.map(|(time, _)| *time),
        ),
        y: Axis::linear("share of changes", [1.0]),
        series,
    })
}

/// What grows with the number of nodes, and what should not.
fn costs(runs: &[Run]) -> [Chart; 4] {
    [
        over_nodes(
            runs,
            "All nodes at once",
            Scale::Logarithmic,
            "seconds",
            &[
                ("gate", Style::Marks, |run| wall(run, Phase::Gate)),
                ("release", Style::Marks, |run| wall(run, Phase::Release)),
                ("delete", Style::Marks, |run| wall(run, Phase::Delete)),
                ("limit: gate", Style::Dashed, |run| {
                    run.outcome(Phase::Gate)?.limit
                }),
                ("limit: release", Style::Dashed, |run| {
                    run.outcome(Phase::Release)?.limit
                }),
            ],
        ),
        over_nodes(
            runs,
            "One node",
            Scale::Logarithmic,
            "milliseconds",
            &[
                ("single, p50", Style::Marks, |run| {
                    latency(run, Phase::Single, 50)
                }),
                ("single, p99", Style::Marks, |run| {
                    latency(run, Phase::Single, 99)
                }),
                ("churn, p50", Style::Marks, |run| {
                    latency(run, Phase::Churn, 50)
                }),
                ("churn, p99", Style::Marks, |run| {
                    latency(run, Phase::Churn, 99)
                }),
            ],
        ),
        over_nodes(
            runs,
            "CPU for each taint change",
            Scale::Logarithmic,
            "milliseconds of CPU",
            &[
                ("gate", Style::Marks, |run| cpu(run, Phase::Gate)),
                ("release", Style::Marks, |run| cpu(run, Phase::Release)),
                ("single", Style::Marks, |run| cpu(run, Phase::Single)),
                ("rollout", Style::Marks, |run| cpu(run, Phase::Rollout)),
            ],
        ),
        over_nodes(
            runs,
            "Peak resident memory",
            Scale::Linear,
            "MiB",
            &[("over all phases", Style::Marks, Run::peak_memory)],
        ),
    ]
}

fn over_nodes(
    runs: &[Run],
    title: &str,
    scale: Scale,
    label: &str,
    values: &[(&str, Style, Value)],
) -> Chart {
    let series: Vec<Series> = values
        .iter()
        .map(|(name, style, value)| Series {
            name: (*name).to_owned(),
            points: runs
                .iter()
                .filter_map(|run| Some((number(run.nodes), value(run)?)))
                .collect(),
            style: *style,
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let nodes: Vec<f64> = runs.iter().map(|run| number(run.nodes)).collect();
    let heights = series
        .iter()
        .flat_map(|series| series.points.iter().map(|(_, y)| *y));
    Chart {
        title: title.to_owned(),
        x: Axis::logarithmic("nodes", nodes.iter().copied()).with_ticks(nodes.clone()),
        y: match scale {
            Scale::Linear => Axis::linear(label, heights),
            Scale::Logarithmic => Axis::logarithmic(label, heights),
        },
        series,
    }
}

fn wall(run: &Run, phase: Phase) -> Option<f64> {
    let outcome = run.outcome(phase)?;
    (outcome.missed == 0).then_some(outcome.wall)
}

fn latency(run: &Run, phase: Phase, percent: u8) -> Option<f64> {
    let latencies = run.outcome(phase)?.latencies.as_ref()?;
    Some(if percent == 50 {
        latencies.p50
    } else {
        latencies.p99
    })
}

fn cpu(run: &Run, phase: Phase) -> Option<f64> {
    run.outcome(phase)?.cpu_per_change()
}
