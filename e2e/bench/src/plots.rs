//! The charts.

use nodegate_plot::{Axis, Chart, Scale, Series, Style, number, svg};

use crate::measure::{Spread, together};
use crate::plan::Phase;
use crate::results::{Results, Run};
use crate::table::count;

/// A value of a run, if it was measured.
type Value = fn(&Run) -> Option<f64>;

/// All charts as SVG, by file name.
#[must_use]
pub fn plots(results: &Results) -> Vec<(&'static str, String)> {
    let latency = [
        (Phase::Single, "One node at a time"),
        (Phase::Churn, "The same among unrelated writes"),
        (Phase::Joins, "Nodes that join"),
        (Phase::Rollout, "A rollout of critical pods"),
    ];
    let latency = latency.map(|(phase, title)| distribution(results, phase, title));
    let latency: Vec<Chart> = latency.into_iter().flatten().collect();
    let mut charts = Vec::new();
    if !latency.is_empty() {
        charts.push(("latency.svg", svg::draw(&latency, 2)));
    }
    charts.push(("cost.svg", svg::draw(&costs(results), 2)));
    charts
}

/// The distribution of a phase's latencies, for each number of nodes.
fn distribution(results: &Results, phase: Phase, title: &str) -> Option<Chart> {
    let series: Vec<Series> = results
        .sizes()
        .enumerate()
        .map(|(index, runs)| {
            let outcomes = runs.iter().filter_map(|run| run.outcome(phase));
            Series {
                name: format!("{} nodes", count(runs[0].nodes)),
                colour: index,
                points: together(outcomes.filter_map(|outcome| outcome.latencies.as_ref())),
                ranges: Vec::new(),
                style: Style::Steps,
            }
        })
        .filter(|series| !series.points.is_empty())
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

/// The costs by number of nodes; some should not grow with it.
#[rustfmt::skip]
fn costs(results: &Results) -> [Chart; 4] {
    use Phase::{Churn, Delete, Gate, Release, Single};
    use Style::{Dashed, Marks};
    let chart = |title, label, values: &[(&str, usize, Style, Value)]| {
        over_nodes(results, title, Scale::Logarithmic, label, values)
    };
    [
        chart("All nodes at once", "seconds", &[
            ("gate", 0, Marks, |run| wall(run, Gate)),
            ("release", 1, Marks, |run| wall(run, Release)),
            ("delete", 2, Marks, |run| wall(run, Delete)),
            ("gate's limit", 0, Dashed, |run| limit(run, Gate)),
            ("release's limit", 1, Dashed, |run| limit(run, Release)),
            ("delete's limit", 2, Dashed, |run| limit(run, Delete)),
        ]),
        chart("One node", "milliseconds", &[
            ("single, p50", 0, Marks, |run| Some(run.latencies(Single)?.p50)),
            ("churn, p50", 1, Marks, |run| Some(run.latencies(Churn)?.p50)),
            ("single, p99", 0, Dashed, |run| Some(run.latencies(Single)?.p99)),
            ("churn, p99", 1, Dashed, |run| Some(run.latencies(Churn)?.p99)),
        ]),
        chart("CPU for each taint change", "milliseconds of CPU", &[
            ("controller, gate", 0, Marks, |run| run.outcome(Gate)?.cpu_per_change()),
            ("controller, release", 1, Marks, |run| run.outcome(Release)?.cpu_per_change()),
            ("API server, gate", 0, Dashed, |run| run.outcome(Gate)?.api_server_cpu_per_change()),
            ("API server, release", 1, Dashed, |run| run.outcome(Release)?.api_server_cpu_per_change()),
        ]),
        over_nodes(results, "Peak resident memory", Scale::Linear, "MiB", &[
            ("over all phases", 0, Marks, Run::peak_memory),
        ]),
    ]
}

fn over_nodes(
    results: &Results,
    title: &str,
    scale: Scale,
    label: &str,
    values: &[(&str, usize, Style, Value)],
) -> Chart {
    let series: Vec<Series> = values
        .iter()
        .map(|(name, colour, style, value)| {
            let spreads: Vec<(f64, Spread)> = results
                .sizes()
                .filter_map(|runs| {
                    let spread = Spread::of(runs.iter().filter_map(value))?;
                    Some((number(runs[0].nodes), spread))
                })
                .collect();
            Series {
                name: (*name).to_owned(),
                colour: *colour,
                points: spreads
                    .iter()
                    .map(|(nodes, spread)| (*nodes, spread.median))
                    .collect(),
                ranges: spreads
                    .iter()
                    .filter(|(_, spread)| spread.least < spread.most)
                    .map(|(nodes, spread)| (*nodes, spread.least, spread.most))
                    .collect(),
                style: *style,
            }
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let nodes: Vec<f64> = results.sizes().map(|runs| number(runs[0].nodes)).collect();
    let heights = series.iter().flat_map(|series| {
        let points = series.points.iter().map(|(_, y)| *y);
        points.chain(
            series
                .ranges
                .iter()
                .flat_map(|(_, least, most)| [*least, *most]),
        )
    });
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

fn limit(run: &Run, phase: Phase) -> Option<f64> {
    Some(run.outcome(phase)?.limit.as_ref()?.wall)
}
