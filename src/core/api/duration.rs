//! Durations in Kubernetes' notation, which is Go's, as in `metav1.Duration`. kube has such a type too, but its parser panics on
//! huge numbers (`mul_f64`), and anyone who may annotate a `NodePool` can send one here.

use std::{fmt, str::FromStr, time};

use jiff::fmt::friendly::{FractionalUnit, Spacing, SpanPrinter};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest duration, in nanoseconds: Go's `int64`, about 292 years.
const MAX_NANOS: u64 = i64::MAX.unsigned_abs();

/// A duration that is not negative, written as `90s`, `5m` or `1h30m`.
///
/// Parses what Go's `time.ParseDuration` parses, except negative durations: decimal numbers, each with a unit of `h`, `m`, `s`,
/// `ms`, `us` or `ns`. Prints the shortest form in hours, minutes and seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
pub struct Duration(
    #[schemars(
        with = "String",
        length(max = 32),
        regex(pattern = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$")
    )]
    time::Duration,
);

const EMPTY: &str = "must not be empty; write for example 90s, 5m or 1h30m";
const NEGATIVE: &str = "must not be negative";
const NO_NUMBER: &str = "needs a number before each unit; write for example 90s, 5m or 1h30m";
const BAD_UNIT: &str = "needs a unit after each number: one of h, m, s, ms, us, ns";
const TOO_LONG: &str = "is too long: at most 2562047h fit";

impl Duration {
    pub const fn from_secs(seconds: u32) -> Self {
        Self(time::Duration::new(seconds as u64, 0))
    }

    pub const fn as_std(self) -> time::Duration {
        self.0
    }
}

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let nanos = parse(text).map_err(|problem| format!("duration {text:?} {problem}"))?;
        Ok(Self(time::Duration::from_nanos(nanos)))
    }
}

fn parse(text: &str) -> Result<u64, &'static str> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    match rest {
        "" => return Err(EMPTY),
        "0" => return Ok(0),
        _ if rest.starts_with('-') => return Err(NEGATIVE),
        _ => {}
    }
    let mut nanos = 0_u64;
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split_while(after, |c| !c.is_ascii_digit() && c != '.');
        let unit: u128 = match unit {
            "ns" => 1,
            // Both characters that look like a micro sign: U+00B5 and the Greek letter U+03BC.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ if number.is_empty() => return Err(NO_NUMBER),
            _ => return Err(BAD_UNIT),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(NO_NUMBER);
        }
        // Nothing is finer than a nanosecond, and an hour has fewer than 10^13: further decimals do not matter.
        let number = format!("{whole}{fraction:0<13.13}").parse::<u128>().ok();
        nanos = number
            .and_then(|number| number.checked_mul(unit))
            .and_then(|part| u64::try_from(part / 10_u128.pow(13)).ok())
            .and_then(|part| nanos.checked_add(part))
            .filter(|nanos| *nanos <= MAX_NANOS)
            .ok_or(TOO_LONG)?;
        rest = after;
    }
    Ok(nanos)
}

/// Splits off the longest prefix of such characters.
fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printer = SpanPrinter::new()
            .spacing(Spacing::None)
            .fractional(Some(FractionalUnit::Second));
        f.write_str(&printer.unsigned_duration_to_string(&self.0))
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("+5m", 300 * S),
            ("5m", 300 * S),
            ("90s", 90 * S),
            ("1h30m", 5400 * S),
            ("30m1h", 5400 * S),
            ("1h0m0s", 3600 * S),
            ("1.5h", 5400 * S),
            (".5m", 30 * S),
            ("5.s", 5 * S),
            ("250ms", 250 * MS),
            ("1us", 1_000),
            ("1µs", 1_000),
            ("7ns", 7),
            ("0.1ns", 0),
            ("0.3333333333333333333h", 1_199_999_999_999),
            ("2562047h47m16.854775807s", MAX_NANOS),
        ] {
            let read: Duration = text
                .parse()
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read.as_std(), time::Duration::from_nanos(nanos), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_is_an_error_that_says_why() {
        for (text, why) in [
            ("-5m", NEGATIVE),
            ("5", BAD_UNIT),
            ("5 m", BAD_UNIT),
            ("5d", BAD_UNIT),
            ("1h5", BAD_UNIT),
            ("m", NO_NUMBER),
            (".m", NO_NUMBER),
            ("1.2.3s", NO_NUMBER),
            ("five", NO_NUMBER),
            ("2562047h47m16.854775808s", TOO_LONG),
            ("2562048h", TOO_LONG),
            ("2562047h2562047h", TOO_LONG),
            ("99999999999999999999ns", TOO_LONG),
            ("18446744073709551615h", TOO_LONG),
        ] {
            assert_eq!(parse(text), Err(why), "{text}");
        }
        assert_eq!(parse(""), Err(EMPTY));
        assert_eq!(parse("+"), Err(EMPTY));
    }

    #[test]
    fn durations_print_in_the_shortest_form() {
        for (text, printed) in [
            ("0", "0s"),
            ("90s", "1m30s"),
            ("60m", "1h"),
            ("1h0m5s", "1h5s"),
            ("1500ms", "1.5s"),
            ("7ns", "0.000000007s"),
            ("1h1ns", "1h0.000000001s"),
        ] {
            assert_eq!(
                text.parse::<Duration>().unwrap().to_string(),
                printed,
                "{text}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_reads_back_the_same(nanos in 0..=MAX_NANOS) {
            let duration = Duration(time::Duration::from_nanos(nanos));
            proptest::prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn no_string_makes_the_parser_panic(text in "[-+]?([0-9.]{0,25}[a-zµ]{0,3}){0,4}") {
            let _ = text.parse::<Duration>();
        }
    }
}
