//! What was asked of the API server, and what it said.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::cli::snapshot::Leader;

/// The name of the policy that closes nodes at birth, and of its binding.
pub const BIRTH: &str = "nrr-gate-at-birth";
/// The name of the webhook's configuration.
pub const WEBHOOK: &str = "nrr-validating-webhook-configuration";

/// Something that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T> {
    /// It is there.
    There(T),
    /// It is not there.
    Missing,
    /// It cannot be told, for this reason.
    Unknown(String),
}

/// What was asked of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// When, by the clock of this machine.
    pub at: Timestamp,
    /// What time it was by the API server's clock, to the second.
    pub served_at: Option<Timestamp>,
    /// Major and minor version, and how it calls itself.
    pub version: Result<(u32, u32, String), String>,
    /// The resources that may not be listed, with what cannot be said for that.
    pub denied: Result<Vec<(&'static str, &'static str)>, String>,
    /// The definition of rules.
    pub definition: Found<Definition>,
    /// Whether the API server knows mutating admission policies.
    pub policies: Found<()>,
    /// The policy that closes nodes at birth.
    pub birth_policy: Found<()>,
    /// Its binding.
    pub birth_binding: Found<()>,
    /// The webhook.
    pub webhook: Found<WebhookFacts>,
    /// Who leads.
    pub leader: Found<Leader>,
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
