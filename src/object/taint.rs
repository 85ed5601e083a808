//! Taints and tolerations, and Kubernetes' rules for matching them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::TaintEffect;

/// A taint on a node.
///
/// It serializes exactly as the API server holds it, because patches `test` the list that they replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    /// The taint's value; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule`, `NoExecute`, or an effect of a newer Kubernetes.
    pub effect: String,
    /// When the taint was added, as the API server prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

impl Taint {
    pub fn new(key: impl Into<String>, value: impl Into<String>, effect: TaintEffect) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            effect: effect.as_str().into(),
            time_added: None,
        }
    }

    pub fn added_at(self, time: Timestamp) -> Self {
        Self {
            // As the API server prints it, in whole seconds.
            time_added: Some(time.strftime("%FT%TZ").to_string()),
            ..self
        }
    }

    /// Whether the taint has this key and effect, which identify a taint on a node.
    pub fn is(&self, key: &str, effect: TaintEffect) -> bool {
        self.key == key && self.effect == effect.as_str()
    }

    /// Whether the taint keeps the `DaemonSet` controller from creating a pod that does not tolerate it.
    pub fn repels_daemon_pods(&self) -> bool {
        self.effect == TaintEffect::NoSchedule.as_str()
            || self.effect == TaintEffect::NoExecute.as_str()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The taint key; empty for any.
    pub key: String,
    pub operator: TolerationOperator,
    pub value: String,
    /// The taint effect; empty for any.
    pub effect: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum TolerationOperator {
    #[default]
    #[serde(alias = "")]
    Equal,
    Exists,
    /// A comparison that is off by default in Kubernetes (`Lt`, `Gt`, KEP-5471): it tolerates nothing.
    #[serde(other)]
    Unsupported,
}

impl Toleration {
    /// Whether this toleration matches the taint (`Toleration.ToleratesTaint` of `k8s.io/api/core/v1`).
    pub fn tolerates(&self, taint: &Taint) -> bool {
        (self.effect.is_empty() || self.effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Unsupported => false,
            }
    }

    /// Tolerates any value of a taint with this key and effect.
    pub fn of(key: &str, effect: &str) -> Self {
        Self {
            key: key.into(),
            operator: TolerationOperator::Exists,
            value: String::new(),
            effect: effect.into(),
        }
    }
}

/// Key and effect of the tolerations that the `DaemonSet` controller adds to each of its pods
/// (`AddOrUpdateDaemonPodTolerations` of `k8s.io/kubernetes/pkg/controller/daemon/util`).
pub(super) const DAEMON_TOLERATIONS: [(&str, TaintEffect); 6] = [
    ("node.kubernetes.io/not-ready", TaintEffect::NoExecute),
    ("node.kubernetes.io/unreachable", TaintEffect::NoExecute),
    ("node.kubernetes.io/disk-pressure", TaintEffect::NoSchedule),
    (
        "node.kubernetes.io/memory-pressure",
        TaintEffect::NoSchedule,
    ),
    ("node.kubernetes.io/pid-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule),
];

/// Key and effect of the toleration that it adds to pods on the host network.
pub(super) const NETWORK_UNAVAILABLE_TOLERATION: (&str, TaintEffect) = (
    "node.kubernetes.io/network-unavailable",
    TaintEffect::NoSchedule,
);

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(json: &str) -> Toleration {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn tolerations_follow_kubernetes() {
        let taint = Taint::new("k", "v", TaintEffect::NoSchedule);
        for (name, json, tolerated) in [
            ("everything", r#"{"operator":"Exists"}"#, true),
            (
                "key of any value",
                r#"{"key":"k","operator":"Exists"}"#,
                true,
            ),
            (
                "equal value",
                r#"{"key":"k","operator":"Equal","value":"v"}"#,
                true,
            ),
            (
                "no operator means equal",
                r#"{"key":"k","value":"v"}"#,
                true,
            ),
            (
                "empty operator means equal",
                r#"{"key":"k","operator":"","value":"v"}"#,
                true,
            ),
            ("another value", r#"{"key":"k","value":"w"}"#, false),
            ("no value", r#"{"key":"k"}"#, false),
            ("another key", r#"{"key":"j","operator":"Exists"}"#, false),
            (
                "the effect",
                r#"{"key":"k","operator":"Exists","effect":"NoSchedule"}"#,
                true,
            ),
            (
                "another effect",
                r#"{"key":"k","operator":"Exists","effect":"NoExecute"}"#,
                false,
            ),
            (
                "a comparison",
                r#"{"key":"k","operator":"Gt","value":"1"}"#,
                false,
            ),
        ] {
            assert_eq!(toleration(json).tolerates(&taint), tolerated, "{name}");
        }
    }

    #[test]
    fn a_taint_serializes_as_the_server_holds_it() {
        for json in [
            r#"{"key":"a","effect":"NoSchedule"}"#,
            r#"{"key":"a","value":"b","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}"#,
        ] {
            let taint: Taint = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&taint).unwrap(), json);
        }
    }
}
