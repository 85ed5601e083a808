//! Why a command failed, and what to do about it.

use std::fmt;
use std::path::Path;

use nodegate_cluster::{Gap, ResourceKind, client};
use nodegate_core::config;

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Cluster(#[from] client::Error),
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    #[error("{0}")]
    Input(String),
}

/// The error of a command that requires this kind.
impl From<Gap> for CliError {
    fn from(refusal: Gap) -> Self {
        let (kind, why) = (refusal.kind.name(), &refusal.why);
        Self::Input(match refusal.kind {
            ResourceKind::Rules if refusal.absent => {
                "this cluster has no NodeReadinessRules: their CustomResourceDefinition is not installed \
                 (`kubectl nodegate check` says what is missing)"
                    .into()
            }
            _ if refusal.forbidden => format!(
                "not allowed to list {kind}: {why} (the ClusterRole nodegate-view has all the rights that this command \
                 needs; bind it with a ClusterRoleBinding)"
            ),
            _ => format!("cannot list {kind}: {why}"),
        })
    }
}

impl CliError {
    pub(super) fn file(path: &Path, why: impl fmt::Display) -> Self {
        Self::Input(format!("cannot read {}: {why}", path.display()))
    }
}
