//! Prometheus's answers, as curves. Pure.

use anyhow::{Context, Result};
use serde_json::Value;

use super::SCRAPE;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its points: seconds since the beginning, and the value; NaN for a gap.
    pub points: Vec<(f64, f64)>,
}

/// The curves of an answer, named by this legend, with times from this moment.
pub(super) fn curves(answer: &[Value], legend: &str, begun: u64) -> Result<Vec<Curve>> {
    let curve = |series: &Value| {
        let points = points(series, begun).with_context(|| series.to_string())?;
        Ok(Curve {
            name: name(legend, &series["metric"]),
            points: without_the_middle(&points),
        })
    };
    answer.iter().map(curve).collect()
}

/// The legend's text with the values of a series' labels.
fn name(legend: &str, labels: &Value) -> String {
    let mut name = String::new();
    let mut rest = legend;
    while let Some((before, (label, after))) = rest
        .split_once("{{")
        .and_then(|(before, inside)| Some((before, inside.split_once("}}")?)))
    {
        name += before;
        name += labels[label.trim()].as_str().unwrap_or_default();
        rest = after;
    }
    name += rest;
    name.trim().to_owned()
}

fn points(series: &Value, begun: u64) -> Option<Vec<(f64, f64)>> {
    let begun = begun.to_string().parse::<f64>().ok()?;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for sample in series["values"].as_array()? {
        let at = sample[0].as_f64()? - begun;
        let value: f64 = sample[1].as_str()?.parse().ok()?;
        // Prometheus leaves out times without a value.
        let last = points.last().map_or(at, |(last, _)| *last);
        if at - last > 1.5 * SCRAPE.as_secs_f64() {
            points.push((last, f64::NAN));
        }
        let value = if value.is_finite() { value } else { f64::NAN };
        points.push((at, value));
    }
    Some(points)
}

/// Drops the middle points of each stretch with a constant value.
fn without_the_middle(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let same = |one: f64, other: f64| one.total_cmp(&other).is_eq();
    let is_middle = |index: usize| {
        let neighbours = points.get(index.wrapping_sub(1)).zip(points.get(index + 1));
        neighbours.is_some_and(|((_, before), (_, after))| {
            same(*before, points[index].1) && same(*after, points[index].1)
        })
    };
    let kept = (0..points.len()).filter(|index| !is_middle(*index));
    kept.map(|index| points[index]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_curve_is_called_by_its_labels() {
        let labels = json!({"rule": "network", "class": ""});
        for (legend, expected) in [
            ("{{rule}} p50", "network p50"),
            ("{{class}} {{rule}}", "network"),
            ("{{ rule }}: {{zone}}", "network:"),
            ("queue", "queue"),
        ] {
            assert_eq!(name(legend, &labels), expected);
        }
    }

    #[test]
    fn a_curve_has_the_points_at_which_it_changes() -> Result<()> {
        let values = [(100, "0"), (102, "0"), (104, "0"), (106, "3"), (108, "4")];
        let values: Vec<Value> = values.iter().map(|(at, it)| json!([at, it])).collect();
        let answer = [json!({"metric": {}, "values": values})];
        let curves = curves(&answer, "nodes", 100)?;
        let points = vec![(0.0, 0.0), (4.0, 0.0), (6.0, 3.0), (8.0, 4.0)];
        let name = "nodes".to_owned();
        assert_eq!(curves, [Curve { name, points }]);
        Ok(())
    }

    #[test]
    fn where_there_is_no_value_the_curve_is_interrupted() -> Result<()> {
        let values = json!([[100, "1"], [102, "NaN"], [104, "2"], [110, "2"]]);
        let answer = [json!({"metric": {}, "values": values})];
        let curves = curves(&answer, "", 100)?;
        let points = format!("{:?}", curves[0].points);
        let expected = "[(0.0, 1.0), (2.0, NaN), (4.0, 2.0), (4.0, NaN), (10.0, 2.0)]";
        assert_eq!(points, expected);
        Ok(())
    }

    #[test]
    fn what_is_no_series_is_an_error() {
        assert!(curves(&[json!({"metric": {}})], "", 100).is_err());
    }
}
