//! How values are written.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// None, or the one in the axis's label.
    #[default]
    Plain,
    /// Durations in seconds, written in a suitable unit.
    Seconds,
    PerSecond,
    /// Seconds since the beginning, written as a clock time.
    Clock,
}

impl Unit {
    /// Formats a value: no superfluous digits, separated thousands.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Plain => plain(value),
            Self::PerSecond => format!("{} ops/s", plain(value)),
            Self::Clock => format!("{}:{:02}", (value / 60.0).floor(), (value % 60.0).round()),
            Self::Seconds => duration(value),
        }
    }
}

fn plain(value: f64) -> String {
    if value >= 1000.0 && value % 1000.0 == 0.0 && value < 1e6 {
        return format!("{},000", value / 1000.0);
    }
    trimmed(&format!("{value:.4}"))
}

fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        0.0 => (0.0, "s"),
        size if size < 1e-3 => (seconds * 1e6, "µs"),
        size if size < 1.0 => (seconds * 1e3, "ms"),
        size if size < 60.0 => (seconds, "s"),
        size if size < 3600.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3600.0, "h"),
    };
    format!("{} {unit}", trimmed(&format!("{value:.2}")))
}

fn trimmed(text: &str) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_their_units() {
        let cases = [
            (Unit::Plain, 0.0, "0"),
            (Unit::Plain, 0.25, "0.25"),
            (Unit::Plain, 1500.0, "1500"),
            (Unit::Plain, 20_000.0, "20,000"),
            (Unit::PerSecond, 0.5, "0.5 ops/s"),
            (Unit::Clock, 0.0, "0:00"),
            (Unit::Clock, 90.0, "1:30"),
            (Unit::Seconds, 0.0, "0 s"),
            (Unit::Seconds, 0.000_02, "20 µs"),
            (Unit::Seconds, 0.25, "250 ms"),
            (Unit::Seconds, 2.5, "2.5 s"),
            (Unit::Seconds, 100.0, "1.67 min"),
            (Unit::Seconds, 7200.0, "2 h"),
        ];
        for (unit, value, text) in cases {
            assert_eq!(unit.text(value), text);
        }
    }
}
