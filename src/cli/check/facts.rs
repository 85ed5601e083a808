//! What was asked of the API server, and how each part is found to be.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::page::NextStep;
use crate::cli::snapshot::Leader;

/// The name of the policy that closes nodes at birth, and of its binding.
pub const BIRTH: &str = "nrr-gate-at-birth";
/// The name of the webhook's configuration.
pub const WEBHOOK: &str = "nrr-validating-webhook-configuration";

/// Something that was looked for: nothing where it is not there, and why where that cannot be told.
pub type Lookup<T> = Result<Option<T>, String>;

/// What was asked of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    /// When, by the clock of this machine.
    pub at: Timestamp,
    /// What time it was by the API server's clock, to the second.
    pub served_at: Option<Timestamp>,
    /// Major and minor version, and how it calls itself.
    pub version: Result<(u32, u32, String), String>,
    /// The resources that may not be listed, with what cannot be said for that.
    pub denied: Result<Vec<(&'static str, &'static str)>, String>,
    /// The definition of rules.
    pub definition: Lookup<Definition>,
    /// Whether the API server knows mutating admission policies.
    pub policies: Lookup<()>,
    /// The policy that closes nodes at birth.
    pub birth_policy: Lookup<()>,
    /// Its binding.
    pub birth_binding: Lookup<()>,
    /// The webhook.
    pub webhook: Lookup<WebhookFacts>,
    /// Who leads.
    pub leader: Lookup<Leader>,
    /// Rules that are being deleted, and since when; or why nobody may say.
    pub deleted: Result<Vec<(String, Timestamp)>, String>,
}

/// The definition of rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// Whether the API server serves it.
    pub is_established: bool,
    /// The versions that are served.
    pub served: BTreeSet<String>,
    /// The fields of this binary's spec that it does not know.
    pub lacks: Vec<String>,
    /// Who else says that they run a controller for it.
    pub owner: Option<String>,
}

/// The webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookFacts {
    /// Whether the API server has been told which CA to trust.
    pub has_ca: bool,
    /// When the last of these certificates ends, and whether it is of Nodegate's own making, which ends together with the
    /// certificate that is served.
    pub ca_ends: Option<(Timestamp, bool)>,
    /// Whether rules are refused while it cannot be reached.
    pub fails_closed: bool,
    /// The service, as namespace and name.
    pub service: Option<(String, String)>,
    /// How many of its endpoints are ready, where that may be known.
    pub ready: Option<usize>,
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// What it is.
    pub what: &'static str,
    /// How it is.
    pub health: ItemHealth,
    /// Why.
    pub message: String,
    /// What to do next, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ItemHealth {
    /// As it should be.
    Ok,
    /// It may not do.
    Warning,
    /// It does not do.
    Failed,
    /// Nobody may say.
    Unknown,
}

impl Item {
    /// Something that is like this.
    pub fn new(what: &'static str, health: ItemHealth, message: impl Into<String>) -> Self {
        Self {
            what,
            health,
            message: message.into(),
            next: None,
        }
    }

    /// The same, with what to do next.
    pub fn next(self, say: &str, command: impl Into<String>) -> Self {
        Self {
            next: Some(NextStep::new(say, command)),
            ..self
        }
    }
}
