//! Charts as values: scales, ticks and curves.

use crate::unit::Unit;

/// A chart: curves over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    /// The number of its colour: related curves share one.
    pub colour: usize,
    /// Its points, from left to right. A NaN value interrupts the curve.
    pub points: Vec<(f64, f64)>,
    /// The spread of values at a point: x, lowest and highest value.
    pub ranges: Vec<(f64, f64, f64)>,
    pub style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Straight lines, for frequent samples.
    Line,
    /// Steps, for a distribution.
    Steps,
    /// Straight lines with a mark at each point, for single measurements.
    Marks,
    /// A dashed line, for a reference.
    Dashed,
}

/// Maps values to places on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equal distances.
    Linear,
    /// Equal factors are equal distances. Values must be above zero.
    Logarithmic,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Its title, with the unit.
    pub label: String,
    pub unit: Unit,
    scale: Scale,
    low: f64,
    high: f64,
    /// The values to mark, ascending.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// An axis from zero to the next round value above these.
    pub fn linear(label: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let most = values.into_iter().fold(0.0, f64::max);
        let step = round_up(if most > 0.0 { most / 5.0 } else { 0.2 });
        let steps = (most / step).ceil().max(1.0);
        let ticks = (0..=20).map(f64::from).take_while(|tick| *tick <= steps);
        Self {
            label: label.to_owned(),
            unit: Unit::Plain,
            scale: Scale::Linear,
            low: 0.0,
            high: steps * step,
            ticks: ticks.map(|tick| tick * step).collect(),
        }
    }

    /// An axis between the round values around these; values of zero and below are ignored.
    pub fn logarithmic(label: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let values = values.into_iter().filter(|value| *value > 0.0);
        let (low, high) = values.fold((f64::INFINITY, 0.0), |(low, high), value| {
            (value.min(low), value.max(high))
        });
        let (low, high) = if high > 0.0 { (low, high) } else { (1.0, 10.0) };
        let low = round_down(low);
        let high = round_up(high).max(next_round(low));
        let mut ticks = vec![low];
        let mut tick = low;
        while tick < high * 0.999 {
            tick = next_round(tick);
            ticks.push(tick);
        }
        // Over many decades only powers of ten are marked.
        if ticks.len() > 8 {
            ticks.retain(|tick| is_power_of_ten(*tick));
        }
        Self {
            label: label.to_owned(),
            unit: Unit::Plain,
            scale: Scale::Logarithmic,
            low,
            high,
            ticks,
        }
    }

    /// A time axis from zero to this many seconds, marked at this interval.
    pub fn time(seconds: u32, apart: u32) -> Self {
        let ticks = (0..=seconds).step_by(apart.max(1) as usize);
        Self {
            label: String::new(),
            unit: Unit::Clock,
            scale: Scale::Linear,
            low: 0.0,
            high: f64::from(seconds.max(1)),
            ticks: ticks.map(f64::from).collect(),
        }
    }

    /// Writes the axis's values in this unit.
    pub fn of(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Marks exactly these values.
    pub fn with_ticks(mut self, ticks: Vec<f64>) -> Self {
        self.ticks = ticks;
        self
    }

    /// The place of a value: 0 at the axis's start, 1 at its end; clamped.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            // The smallest positive number replaces values without a logarithm.
            Scale::Logarithmic => {
                (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        place.clamp(0.0, 1.0)
    }
}

/// The marked values within a decade.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// Tolerance for rounding errors in round values.
const SLACK: f64 = 1e-9;

fn decade(value: f64) -> f64 {
    10_f64.powf((value.log10() + SLACK).floor())
}

/// The largest of 1, 2, 5, 10... at or below a value.
fn round_down(value: f64) -> f64 {
    let decade = decade(value);
    let steps = ROUND.iter().rev().map(|step| step * decade);
    let mut fitting = steps.filter(|step| *step <= value * (1.0 + SLACK));
    fitting.next().unwrap_or(decade)
}

/// The smallest of 1, 2, 5, 10... at or above a value.
fn round_up(value: f64) -> f64 {
    let below = round_down(value);
    if below >= value * (1.0 - SLACK) {
        below
    } else {
        next_round(below)
    }
}

fn next_round(round: f64) -> f64 {
    let decade = decade(round);
    let steps = ROUND.iter().map(|step| step * decade);
    let mut above = steps.filter(|step| *step > round * (1.0 + SLACK));
    above.next().unwrap_or(10.0 * decade)
}

fn is_power_of_ten(value: f64) -> bool {
    (value / decade(value) - 1.0).abs() < 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis) -> String {
        let texts: Vec<String> = axis
            .ticks
            .iter()
            .map(|tick| axis.unit.text(*tick))
            .collect();
        texts.join(" ")
    }

    #[test]
    fn an_axis_ends_at_round_values_around_what_is_on_it() {
        let cases = [
            (Axis::linear("", [3.0, 17.0]), "0 5 10 15 20"),
            (Axis::linear("", [1.0]), "0 0.2 0.4 0.6 0.8 1"),
            (Axis::linear("", []), "0 0.2"),
            (Axis::logarithmic("", [3.0, 40.0]), "2 5 10 20 50"),
            (
                Axis::logarithmic("", [100.0, 10_000.0]),
                "100 200 500 1,000 2,000 5,000 10,000",
            ),
            (Axis::logarithmic("", [0.02, 900.0]), "0.1 1 10 100 1,000"),
            (Axis::logarithmic("", [0.0, 5.0]), "5 10"),
            (Axis::logarithmic("", []), "1 2 5 10"),
            (Axis::time(150, 60), "0:00 1:00 2:00"),
            (
                Axis::linear("", [0.02]).of(Unit::Seconds),
                "0 s 5 ms 10 ms 15 ms 20 ms",
            ),
        ];
        for (axis, expected) in cases {
            assert_eq!(ticks(&axis), expected);
        }
    }

    #[test]
    fn equal_factors_are_equal_distances_on_a_logarithmic_axis() {
        let axis = Axis::logarithmic("", [1.0, 100.0]);
        let places =
            [0.0, 1.0, 10.0, 100.0, 1000.0].map(|value| format!("{:.2}", axis.place(value)));
        assert_eq!(places.join(" "), "0.00 0.00 0.50 1.00 1.00");
    }

    #[test]
    fn equal_differences_are_equal_distances_on_a_linear_axis() {
        let axis = Axis::linear("", [10.0]);
        let places = [-1.0, 0.0, 5.0, 10.0].map(|value| format!("{:.2}", axis.place(value)));
        assert_eq!(places.join(" "), "0.00 0.00 0.50 1.00");
        assert!((Axis::time(150, 60).place(75.0) - 0.5).abs() < 1e-9);
    }
}
