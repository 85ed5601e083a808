//! The taint in a rule's spec.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice::TaintEffect;

/// The taint of a rule.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[x_kube(
    validation = ("self.key == oldSelf.key", "taint key is immutable"),
    validation = ("self.effect == oldSelf.effect", "taint effect is immutable"),
    validation = (
        "!has(oldSelf.value) || oldSelf.value == '' || (has(self.value) && self.value == oldSelf.value)",
        "taint value is immutable",
    ),
)]
pub struct TaintSpec {
    /// Key of the taint. It starts with `readiness.k8s.io/`, unless `taintPolicy` is `remove-only`.
    #[x_kube(
        validation = ("size(self) <= 253", "taint key length must be at most 253 characters"),
        validation = (
            "!self.contains('/') || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/')",
            "taint key prefix must be a DNS name in lower case, for example 'readiness.k8s.io'",
        ),
        validation = (
            "self.matches('(^|/)[^/]{1,63}$')",
            "taint key name part must be 1-63 characters",
        ),
        validation = (
            "self.matches('(^|/)([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",
            "taint key name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        ),
    )]
    pub key: String,

    /// Value of the taint. It is for people to read: a taint counts as the rule's by key and effect. A taint without one
    /// can be given one later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = ("size(self) <= 63", "taint value length must be at most 63 characters"),
        validation = (
            "self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",
            "taint value must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        ),
    )]
    pub value: Option<String>,

    /// What the taint does to pods that do not tolerate it: `NoSchedule` keeps new ones away, `PreferNoSchedule`
    /// tries to, `NoExecute` evicts running ones as well. A `remove-only` rule removes another project's taint whatever its
    /// effect, save one that another rule names.
    #[schemars(with = "String")]
    #[x_kube(validation = (
        "self in ['NoSchedule', 'PreferNoSchedule', 'NoExecute']",
        "taint effect must be one of 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
    ))]
    pub effect: TaintEffect,

    /// Accepted because taints on nodes have it, and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub time_added: Option<Value>,
}
