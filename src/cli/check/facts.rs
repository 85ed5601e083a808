//! The API server's answers that `check` judges, and the type of a finding.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::page::NextStep;
use crate::cli::snapshot::Leader;

/// The name of the policy that taints nodes at creation, and of its binding.
pub(crate) const BIRTH: &str = "nrr-gate-at-birth";
/// The name of the webhook's configuration.
pub(crate) const WEBHOOK: &str = "nrr-validating-webhook-configuration";

/// An object that was looked up: `None` if it does not exist, and an error if that is unknown.
pub(crate) type Lookup<T> = Result<Option<T>, String>;

/// The API server's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterFacts {
    /// When they were read, by this machine's clock.
    pub at: Timestamp,
    /// When they were read, by the API server's clock, to the second.
    pub served_at: Option<Timestamp>,
    /// Major and minor version, and the full version string.
    pub version: Result<(u32, u32, String), String>,
    /// The resources that may not be listed, and what is unknown without them.
    pub denied: Result<Vec<(&'static str, &'static str)>, String>,
    /// The CRD of rules.
    pub definition: Lookup<Definition>,
    /// Whether the API server has mutating admission policies.
    pub policies: Lookup<()>,
    /// The policy that taints nodes at creation.
    pub birth_policy: Lookup<()>,
    /// The policy's binding.
    pub birth_binding: Lookup<()>,
    pub webhook: Lookup<WebhookFacts>,
    /// The leader, according to the Lease.
    pub leader: Lookup<Leader>,
    /// Rules that are being deleted, and since when.
    pub deleted: Result<Vec<(String, Timestamp)>, String>,
}

/// The CRD of rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Definition {
    /// Whether its `Established` condition is `True`.
    pub is_established: bool,
    /// The versions that are served.
    pub served: BTreeSet<String>,
    /// The fields of this binary's spec that it lacks.
    pub lacks: Vec<String>,
    /// Another owner, according to its label.
    pub owner: Option<String>,
}

/// The webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WebhookFacts {
    /// Whether it has a CA bundle.
    pub has_ca: bool,
    /// When the last CA of the bundle expires, and whether Nodegate made it; such a CA expires with the served certificate.
    pub ca_ends: Option<(Timestamp, bool)>,
    /// Whether rules are rejected while the webhook is unreachable.
    pub fails_closed: bool,
    /// The service's namespace and name.
    pub service: Option<(String, String)>,
    /// How many endpoints of the service are ready, if that is known.
    pub ready: Option<usize>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    /// The name of the checked part.
    pub what: &'static str,
    pub health: ItemHealth,
    pub message: String,
    /// What to do next, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ItemHealth {
    /// Works as it should.
    Ok,
    /// Works, but may cause trouble.
    Warning,
    /// Does not work.
    Failed,
    /// Could not be checked.
    Unknown,
}

impl Item {
    pub(crate) fn new(what: &'static str, health: ItemHealth, message: impl Into<String>) -> Self {
        Self {
            what,
            health,
            message: message.into(),
            next: None,
        }
    }

    /// Adds what to do next.
    pub(crate) fn next(self, say: &str, command: impl Into<String>) -> Self {
        Self {
            next: Some(NextStep::new(say, command)),
            ..self
        }
    }
}
