//! What a node has to allocate of each resource.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

/// The resources of which a node has an amount above zero to allocate, each with its whole units, rounded down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
pub struct Resources(pub BTreeMap<String, u64>);

impl Resources {
    pub fn has(&self, resource: &str) -> bool {
        self.0.contains_key(resource)
    }

    pub fn units(&self, resource: &str) -> u64 {
        self.0.get(resource).copied().unwrap_or_default()
    }

    /// Whether both have the same resources, and the same units of those that are `counted`.
    pub fn count_alike(&self, other: &Self, counted: &BTreeSet<Arc<str>>) -> bool {
        let mut counted = counted.iter();
        self.0.keys().eq(other.0.keys())
            && counted.all(|resource| self.units(resource) == other.units(resource))
    }
}

impl From<BTreeMap<String, Value>> for Resources {
    fn from(quantities: BTreeMap<String, Value>) -> Self {
        let above_zero = quantities.into_iter().filter_map(|(name, quantity)| {
            let units = match quantity {
                Value::String(text) => units_above_zero(&text)?,
                other => other.as_u64().filter(|units| *units > 0)?,
            };
            Some((name, units))
        });
        Self(above_zero.collect())
    }
}

/// Whole units, rounded down, of a `resource.Quantity` of k8s.io/apimachinery; `None` if malformed, or not above zero.
fn units_above_zero(text: &str) -> Option<u64> {
    let number = text.strip_prefix('+').unwrap_or(text);
    let is_suffix = |c: char| !c.is_ascii_digit() && c != '.';
    let (number, suffix) = number.split_at(number.find(is_suffix).unwrap_or(number.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (bits, tens) = scale(suffix)?;
    let mut digits: u128 = 0;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = digit.to_digit(10)?;
        digits = digits.saturating_mul(10).saturating_add(digit.into());
    }
    if digits == 0 {
        return None;
    }
    let tens = tens.saturating_sub_unsigned(u32::try_from(fraction.len()).ok()?);
    let power = 10_u128.saturating_pow(tens.unsigned_abs());
    let units = digits.saturating_mul(1 << bits);
    let units = if tens < 0 {
        units / power
    } else {
        units.saturating_mul(power)
    };
    Some(u64::try_from(units).unwrap_or(u64::MAX))
}

/// The exponents of 2 and of 10 that a quantity's suffix stands for.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    let mut decimal = (-3..).zip(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]);
    if let Some((power, _)) = decimal.find(|(_, it)| *it == suffix) {
        return Some((0, 3 * power));
    }
    let mut binary = (1..).zip(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]);
    if let Some((power, _)) = binary.find(|(_, it)| *it == suffix) {
        return Some((10 * power, 0));
    }
    Some((0, suffix.strip_prefix(['e', 'E'])?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resources(amounts: Value) -> Resources {
        serde_json::from_value(amounts).unwrap()
    }

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        for (quantity, expected) in [
            (json!("0"), None),
            (json!("0.0"), None),
            (json!("1"), Some(1)),
            (json!("+10"), Some(10)),
            (json!("500m"), Some(0)),
            (json!("8000m"), Some(8)),
            (json!("7999m"), Some(7)),
            (json!("8k"), Some(8000)),
            (json!("1.5k"), Some(1500)),
            (json!("8e3"), Some(8000)),
            (json!("8E-1"), Some(0)),
            (json!("1E"), Some(1_000_000_000_000_000_000)),
            (json!("64Mi"), Some(64 * 1024 * 1024)),
            (json!("0.5Gi"), Some(512 * 1024 * 1024)),
            (json!("999999E"), Some(u64::MAX)),
            (json!("1e2147483647"), Some(u64::MAX)),
            (json!("1e-2147483648"), Some(0)),
            (json!("-1"), None),
            (json!(0), None),
            (json!(3), Some(3)),
            (json!(-3), None),
            (json!("m"), None),
            (json!("."), None),
            (json!("1.2.3"), None),
            (json!("8 GPUs"), None),
            (json!([1]), None),
        ] {
            let resources = resources(json!({ "r": quantity }));
            assert_eq!(resources.has("r"), expected.is_some(), "{quantity}");
            assert_eq!(
                resources.units("r"),
                expected.unwrap_or_default(),
                "{quantity}"
            );
        }
    }
}
