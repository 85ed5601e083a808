//! The results as a table and as a plot. Pure.

use std::fmt::Write as _;

use nodegate_plot::{Axis, Chart, Series, Style, number, svg};

use super::{Outcome, Run, Seen, Setup};
use crate::measure::Spread;

/// The table: medians, and the range where it is not a single value.
#[must_use]
pub fn table(outcome: &Outcome) -> String {
    let needed = number(outcome.burst.needed());
    let mut text = format!(
        "| {} pods, {} nodes needed | runs | NodeClaims | over those needed | last pod runs after | pods on nodes that were not ready |\n\
         |---|---:|---:|---:|---:|---:|\n",
        outcome.burst.pods,
        outcome.burst.needed()
    );
    for (setup, runs) in by_setup(outcome) {
        let launched = spread(&runs, |run| number(run.launched));
        let ratio = Spread::of(runs.iter().map(|run| number(run.launched) / needed));
        let ratio = ratio.map_or(f64::NAN, |ratio| ratio.median);
        let last = spread(&runs, |run| run.last.round());
        let early = spread(&runs, |run| number(run.early));
        let count = runs.len();
        let title = setup.title();
        let _ = writeln!(
            text,
            "| {title} | {count} | {launched} | {ratio:.2} | {last} s | {early} |"
        );
    }
    text
}

/// The plot: nodes and pods over time, from the median run of each set-up.
#[must_use]
pub fn plot(outcome: &Outcome) -> String {
    let needed = number(outcome.burst.needed());
    let pods = number(outcome.burst.pods);
    let claims = over_time(
        outcome,
        "NodeClaims over those needed",
        "times those needed",
        |seen| number(seen.claims) / needed,
    );
    let running = over_time(outcome, "Pods that run", "share of pods", |seen| {
        number(seen.running) / pods
    });
    svg::draw(&[claims, running], 2)
}

fn over_time(outcome: &Outcome, title: &str, label: &str, value: impl Fn(&Seen) -> f64) -> Chart {
    let longest = outcome
        .runs
        .iter()
        .flat_map(|run| &run.course)
        .map(|seen| seen.at);
    let longest = longest.fold(0.0, f64::max);
    let series: Vec<Series> = by_setup(outcome)
        .into_iter()
        .enumerate()
        .filter_map(|(colour, (setup, mut runs))| {
            runs.sort_by(|a, b| a.last.total_cmp(&b.last));
            let course = &runs.get(runs.len() / 2)?.course;
            let mut points: Vec<_> = course.iter().map(|seen| (seen.at, value(seen))).collect();
            points.extend(course.last().map(|seen| (longest, value(seen))));
            Some(Series {
                name: setup.name().to_owned(),
                colour,
                points,
                ranges: Vec::new(),
                style: Style::Steps,
            })
        })
        .collect();
    let heights = series.iter().flat_map(|series| &series.points);
    Chart {
        title: title.to_owned(),
        x: Axis::linear("seconds since the pods came", [longest]),
        y: Axis::linear(label, heights.map(|(_, height)| *height)),
        series,
    }
}

/// The runs by set-up, in the order of the table.
fn by_setup(outcome: &Outcome) -> Vec<(Setup, Vec<&Run>)> {
    Setup::ALL
        .into_iter()
        .map(|setup| {
            let runs = outcome.runs.iter().filter(|run| run.setup == setup);
            (setup, runs.collect::<Vec<_>>())
        })
        .filter(|(_, runs)| !runs.is_empty())
        .collect()
}

/// The median, and the range where it is not a single value.
fn spread(runs: &[&Run], value: impl Fn(&Run) -> f64) -> String {
    let spread = Spread::of(runs.iter().map(|run| value(run)));
    spread.map_or_else(String::new, |spread| spread.text(|value| value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::karpenter::Burst;

    fn run(setup: Setup, launched: usize, last: f64) -> Run {
        let seen = |at, claims, running| Seen {
            at,
            claims,
            running,
        };
        Run {
            setup,
            launched,
            early: 0,
            last,
            course: vec![seen(0.0, 0, 0), seen(last, launched, 9)],
        }
    }

    fn outcome() -> Outcome {
        Outcome {
            burst: Burst::of(9),
            runs: vec![
                run(Setup::NoRule, 3, 6.0),
                run(Setup::Unknown, 9, 20.0),
                run(Setup::Unknown, 6, 18.4),
                run(Setup::Unknown, 3, 22.0),
            ],
        }
    }

    #[test]
    fn the_table_has_medians_and_what_is_around_them() {
        let text = table(&outcome());
        let has = |line: &str| assert!(text.contains(line), "{line} in:\n{text}");
        has("| 9 pods, 3 nodes needed |");
        has("| 1 | 3 | 1.00 | 6 s | 0 |");
        has("| 3 | 6 (3 to 9) | 2.00 | 20 (18 to 22) s | 0 |");
    }

    #[test]
    fn the_plot_has_a_curve_for_each_set_up_that_was_measured() {
        let svg = plot(&outcome());
        assert!(svg.contains("unknown taint"), "{svg}");
        assert!(!svg.contains("recommended"), "{svg}");
    }
}
