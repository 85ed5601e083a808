//! Taints and tolerations, and Kubernetes' rules for matching them.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Toleration;
use serde::{Deserialize, Serialize};

use crate::api::TaintEffect;

/// A taint on a node. It serializes exactly as the API server holds it, because patches `test` the list that they replace.
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

    /// As `Toleration.ToleratesTaint` of `k8s.io/api/core/v1`, without `Lt` and `Gt` (KEP-5471), off by default in Kubernetes.
    pub fn is_tolerated_by(&self, toleration: &Toleration) -> bool {
        let fits =
            |asked: Option<&str>, own: &str| asked.is_none_or(|it| it.is_empty() || it == own);
        fits(toleration.effect.as_deref(), &self.effect)
            && fits(toleration.key.as_deref(), &self.key)
            && match toleration.operator.as_deref() {
                None | Some("" | "Equal") => {
                    toleration.value.as_deref().unwrap_or_default() == self.value
                }
                operator => operator == Some("Exists"),
            }
    }
}

/// Key and effect, as in kubectl.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.effect)
    }
}

/// Tolerates any value of a taint with this key and effect.
pub(super) fn toleration_of(key: &str, effect: TaintEffect) -> Toleration {
    Toleration {
        key: Some(key.into()),
        operator: Some("Exists".into()),
        effect: Some(effect.as_str().into()),
        ..Toleration::default()
    }
}

/// What `AddOrUpdateDaemonPodTolerations` of `k8s.io/kubernetes/pkg/controller/daemon/util` adds to each pod of a `DaemonSet`.
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
        #[rustfmt::skip]
        let cases = [
            ("everything", r#"{"operator":"Exists"}"#, true),
            ("key of any value", r#"{"key":"k","operator":"Exists"}"#, true),
            ("equal value", r#"{"key":"k","operator":"Equal","value":"v"}"#, true),
            ("no operator means equal", r#"{"key":"k","value":"v"}"#, true),
            ("empty operator means equal", r#"{"key":"k","operator":"","value":"v"}"#, true),
            ("another value", r#"{"key":"k","value":"w"}"#, false),
            ("no value", r#"{"key":"k"}"#, false),
            ("another key", r#"{"key":"j","operator":"Exists"}"#, false),
            ("the effect", r#"{"key":"k","operator":"Exists","effect":"NoSchedule"}"#, true),
            ("another effect", r#"{"key":"k","operator":"Exists","effect":"NoExecute"}"#, false),
            ("a comparison", r#"{"key":"k","operator":"Gt","value":"1"}"#, false),
        ];
        for (name, json, tolerated) in cases {
            assert_eq!(
                taint.is_tolerated_by(&toleration(json)),
                tolerated,
                "{name}"
            );
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
