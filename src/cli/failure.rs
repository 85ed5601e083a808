//! Why a command failed, and what to do about it.

use std::fmt;
use std::path::Path;

use crate::cluster::{ResourceKind, Unreadable};
use crate::{client, config};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Cluster(#[from] client::Error),
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    #[error("{0}")]
    Input(String),
    /// The command line asks for something that there is not.
    #[error("{0}")]
    Usage(String),
    /// The answer needs something that could not be read.
    #[error("the answer is incomplete: {0}")]
    Incomplete(String),
}

/// The error of a command that requires this kind.
impl From<Unreadable> for CliError {
    fn from(refusal: Unreadable) -> Self {
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
    /// A file or folder cannot be used.
    pub(super) fn file(path: &Path, why: impl fmt::Display) -> Self {
        Self::Input(format!("cannot read {}: {why}", path.display()))
    }

    /// There is no object of this name, but perhaps some with similar ones.
    pub(super) fn unknown<'a>(
        kind: ResourceKind,
        namespace: Option<&str>,
        name: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> Self {
        let namespace = namespace.map_or_else(String::new, |it| format!("{it}/"));
        let offer = match near_names(name, names).join(", ").as_str() {
            "" => String::new(),
            names => format!("; did you mean {names}?"),
        };
        let kind = kind.singular();
        Self::Input(format!("there is no {kind} {namespace}{name}{offer}"))
    }
}

/// The most similar names, best first: those that contain the name or are contained in it, and those within a few edits.
fn near_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    const SHOWN: usize = 3;
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|other| {
            let changes = strsim::levenshtein(name, other);
            let is_part = name.len() >= 3 && (other.contains(name) || name.contains(other));
            let is_near = changes <= name.len() / 3 + 1;
            (is_part || is_near).then_some((if is_part { changes.min(1) } else { changes }, other))
        })
        .collect();
    near.sort_unstable();
    let shown = near.into_iter().take(SHOWN);
    shown.map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_nearest_first() {
        let names = ["worker-1", "worker-2", "worker-11", "control-plane"];
        let near = |name| near_names(name, names.into_iter());
        assert_eq!(near("worker1"), ["worker-1", "worker-11", "worker-2"]);
        assert_eq!(near("control"), ["control-plane"]);
        assert!(near("zzz").is_empty());
    }
}
