//! Latencies and repeated measurements: quantiles and spread. Pure.

use std::time::Duration;

/// A sample of latencies, in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

impl Latencies {
    /// Summarizes a sample; `None` for an empty one.
    pub fn of(mut sample: Vec<Duration>) -> Option<Self> {
        sample.sort_unstable();
        let max = milliseconds(*sample.last()?);
        Some(Self {
            p50: milliseconds(quantile(&sample, 50)),
            p99: milliseconds(quantile(&sample, 99)),
            max,
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
    pub(crate) fn text(self, format: impl Fn(f64) -> String) -> String {
        let [median, least, most] = [self.median, self.least, self.most].map(format);
        if least == most {
            median
        } else {
            format!("{median} ({least} to {most})")
        }
    }
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

/// Converts a count for calculations. Counts here are far below 2^32, where this would saturate.
pub(crate) fn number(count: usize) -> f64 {
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
                [latencies.p50, latencies.p99, latencies.max]
                    .map(|value| value.to_string())
                    .join(" ")
            })
        };
        let cases = [
            ("nothing", vec![], None),
            ("one value", vec![7], Some("7 7 7")),
            ("two values, unsorted", vec![9, 1], Some("1 9 9")),
            ("1 to 10", (1..=10).collect(), Some("5 10 10")),
            ("1 to 100", (1..=100).collect(), Some("50 99 100")),
            (
                "1 to 1000",
                (1..=1000).rev().collect(),
                Some("500 990 1000"),
            ),
        ];
        for (name, values, expected) in cases {
            assert_eq!(quantiles(values).as_deref(), expected, "{name}");
        }
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
