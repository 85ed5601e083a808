//! Latencies and repeated measurements: quantiles, distribution, spread. Pure.

use std::time::Duration;

use nodegate_plot::number;
use serde::{Deserialize, Serialize};

/// The points of a stored distribution. A sample of up to this size is stored as it is.
const POINTS: usize = 200;

/// A sample of latencies, in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// The size of the sample.
    pub count: usize,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
    /// The distribution: evenly spaced quantiles, ascending, from the minimum to the maximum.
    pub curve: Vec<f64>,
}

impl Latencies {
    /// Summarizes a sample; `None` for an empty one.
    #[must_use]
    pub fn of(mut sample: Vec<Duration>) -> Option<Self> {
        sample.sort_unstable();
        let max = milliseconds(*sample.last()?);
        let step_of = |index: usize| index * (sample.len() - 1) / (POINTS - 1);
        let curve = if sample.len() <= POINTS {
            sample.iter().copied().map(milliseconds).collect()
        } else {
            (0..POINTS)
                .map(|index| milliseconds(sample[step_of(index)]))
                .collect()
        };
        Some(Self {
            count: sample.len(),
            p50: milliseconds(quantile(&sample, 50)),
            p90: milliseconds(quantile(&sample, 90)),
            p99: milliseconds(quantile(&sample, 99)),
            max,
            curve,
        })
    }
}

/// The results of a repeated measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// The median; of an even number, the upper middle value, which never flatters.
    pub median: f64,
    /// The minimum.
    pub least: f64,
    /// The maximum.
    pub most: f64,
}

impl Spread {
    /// Summarizes the values; `None` if there are none.
    #[must_use]
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values = Vec::from_iter(values);
        values.sort_by(f64::total_cmp);
        Some(Self {
            median: *values.get(values.len() / 2)?,
            least: *values.first()?,
            most: *values.last()?,
        })
    }

    /// The median, and the range where it is not a single value.
    #[must_use]
    pub(crate) fn text(self, format: impl Fn(f64) -> String) -> String {
        let [median, least, most] = [self.median, self.least, self.most].map(format);
        if least == most {
            median
        } else {
            format!("{median} ({least} to {most})")
        }
    }
}

/// Merges several distributions into one sample. They should be of similar size.
#[must_use]
pub(crate) fn together<'a>(all: impl IntoIterator<Item = &'a Latencies>) -> Vec<(f64, f64)> {
    let mut points: Vec<f64> = all
        .into_iter()
        .flat_map(|latencies| latencies.curve.iter().copied())
        .collect();
    points.sort_by(f64::total_cmp);
    let count = number(points.len());
    let shares = (1..).map(|rank| number(rank) / count);
    points.into_iter().zip(shares).collect()
}

/// The smallest value that `percent` of a sorted, non-empty sample do not exceed (the nearest-rank method).
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (percent * sorted.len()).div_ceil(100);
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn milliseconds(duration: Duration) -> f64 {
    // A watch is not more precise than microseconds, and short numbers keep the results readable.
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: impl IntoIterator<Item = u64>) -> Option<Latencies> {
        Latencies::of(values.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let quantiles = |values: Vec<u64>| {
            sample(values).map(|latencies| {
                [latencies.p50, latencies.p90, latencies.p99, latencies.max]
                    .map(|value| value.to_string())
                    .join(" ")
            })
        };
        let cases = [
            ("nothing", vec![], None),
            ("one value", vec![7], Some("7 7 7 7")),
            ("two values, unsorted", vec![9, 1], Some("1 9 9 9")),
            ("1 to 10", (1..=10).collect(), Some("5 9 10 10")),
            ("1 to 100", (1..=100).collect(), Some("50 90 99 100")),
            (
                "1 to 1000",
                (1..=1000).rev().collect(),
                Some("500 900 990 1000"),
            ),
        ];
        for (name, values, expected) in cases {
            assert_eq!(quantiles(values).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_small_sample_is_kept_and_a_large_one_is_thinned_between_its_ends() {
        let small = sample([3, 1, 2]).map(|latencies| latencies.curve);
        assert_eq!(small, Some(vec![1.0, 2.0, 3.0]));
        let large = sample(1..=5000).map(|latencies| latencies.curve);
        let large = large.unwrap_or_default();
        assert_eq!(large.len(), POINTS);
        assert_eq!((large.first(), large.last()), (Some(&1.0), Some(&5000.0)));
        assert!(large.is_sorted());
    }

    #[test]
    fn a_distribution_ends_with_all_of_its_samples() {
        let [one, other] = [[4, 1], [3, 2]].map(sample);
        assert_eq!(
            together(&one),
            [(1.0, 0.5), (4.0, 1.0)],
            "that of one sample"
        );
        assert_eq!(
            together(one.iter().chain(&other)),
            [(1.0, 0.25), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0)],
            "that of two"
        );
    }

    #[test]
    fn a_spread_is_made_of_values_that_were_measured() {
        let spread = |values: &[f64]| {
            Spread::of(values.iter().copied())
                .map(|spread| [spread.least, spread.median, spread.most])
        };
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[2.0]), Some([2.0, 2.0, 2.0]));
        assert_eq!(spread(&[4.0, 1.0]), Some([1.0, 4.0, 4.0]));
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some([1.0, 2.0, 3.0]));
    }
}
