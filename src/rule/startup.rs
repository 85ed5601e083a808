//! The annotation that records how a node started under a rule. The patch that opens the node for the first time writes it;
//! people and tools read it, and no decision depends on it.

use std::collections::BTreeMap;

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};

use crate::api::names::STARTUP_PREFIX;

/// The longest annotation value, in bytes.
const LIMIT: usize = 1024;

/// How a node started under a rule. Times are in UTC with milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StartupRecord {
    /// Name of the rule.
    pub rule_name: String,
    /// When the Node object was created.
    pub created: Timestamp,
    /// When the rule's taint was first present.
    pub tainted: Timestamp,
    /// When each of the rule's conditions was first met, if that was observed.
    pub conditions: BTreeMap<String, Timestamp>,
    /// How many conditions were left out for lack of space: those that were met first.
    #[serde(default, skip_serializing_if = "is_none")]
    pub left_out: usize,
    /// When the taint was removed.
    pub opened: Timestamp,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "so serde calls what decides whether a field is written"
)]
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl StartupRecord {
    /// Key of the annotation under the rule with this UID.
    pub fn key(rule_uid: &str) -> String {
        format!("{STARTUP_PREFIX}{rule_uid}")
    }

    /// The annotation's value, of at most 1024 bytes. For lack of space, the conditions that were met first are left out.
    pub fn value(mut self) -> String {
        let whole = |at: Timestamp| at.round(Unit::Millisecond).unwrap_or(at);
        for at in [&mut self.created, &mut self.tainted, &mut self.opened] {
            *at = whole(*at);
        }
        for at in self.conditions.values_mut() {
            *at = whole(*at);
        }
        loop {
            let value = serde_json::to_string(&self).unwrap_or_default();
            let mut met = self.conditions.iter();
            let Some(first) = met.next().filter(|_| value.len() > LIMIT) else {
                return value;
            };
            let (earliest, _) = met.fold(first, |a, b| if b.1 < a.1 { b } else { a });
            let earliest = earliest.clone();
            self.conditions.remove(&earliest);
            self.left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_stays_short_and_keeps_what_was_waited_for_last() {
        let at = |millis| Timestamp::from_millisecond(1_767_225_600_000 + millis).unwrap();
        let of = |count: i64| StartupRecord {
            rule_name: "network".into(),
            created: at(0),
            tainted: at(0),
            // The condition that was met last is the first by name.
            conditions: (0..count)
                .map(|index| {
                    (
                        format!("example.com/condition-{:03}", count - index),
                        at(index),
                    )
                })
                .collect(),
            left_out: 0,
            opened: at(2500),
        };
        assert_eq!(
            of(1).value(),
            r#"{"rule-name":"network","created":"2026-01-01T00:00:00Z","tainted":"2026-01-01T00:00:00Z","conditions":{"example.com/condition-001":"2026-01-01T00:00:00Z"},"opened":"2026-01-01T00:00:02.5Z"}"#
        );
        let value = of(100).value();
        assert!(value.len() <= 1024, "{value}");
        let kept: StartupRecord = serde_json::from_str(&value).unwrap();
        assert_eq!(kept.conditions.len() + kept.left_out, 100);
        assert!(kept.conditions.len() > 10, "{value}");
        assert!(kept.conditions.contains_key("example.com/condition-001"));
        assert!(!kept.conditions.contains_key("example.com/condition-100"));
    }
}
