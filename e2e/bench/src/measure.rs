//! Latencies: quantiles and distribution. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many points a distribution is kept with. A sample of up to as many values is kept as it is.
const POINTS: usize = 200;

/// How long something took each time, in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// How many there were.
    pub count: usize,
    /// Half of them were at most this.
    pub p50: f64,
    /// Nine in ten.
    pub p90: f64,
    /// Ninety-nine in a hundred.
    pub p99: f64,
    /// The worst.
    pub max: f64,
    /// The distribution: evenly spaced quantiles, ascending, from the least to the worst.
    pub curve: Vec<f64>,
}

impl Latencies {
    /// Sums up a sample; `None` for an empty one.
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

    /// The distribution as points: milliseconds, and the share (0 to 1) of latencies that were at most so long.
    #[must_use]
    pub fn cumulative(&self) -> Vec<(f64, f64)> {
        let all = number(self.curve.len());
        let shares = (1..).map(|rank| number(rank) / all);
        self.curve.iter().copied().zip(shares).collect()
    }
}

/// The least value that so many per cent of a sorted, non-empty sample do not exceed (the nearest-rank method).
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (percent * sorted.len()).div_ceil(100);
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn milliseconds(duration: Duration) -> f64 {
    // Microseconds are all that a watch can tell, and keep the results readable.
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// A count as a number to calculate with. Counts here are far below the 2^32 where this would saturate.
#[must_use]
pub fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
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
    fn the_distribution_ends_with_all_of_the_sample() {
        let points = sample([2, 1]).map(|latencies| latencies.cumulative());
        assert_eq!(points, Some(vec![(1.0, 0.5), (2.0, 1.0)]));
    }
}
