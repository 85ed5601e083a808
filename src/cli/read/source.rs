//! Where objects are read from.

use super::cluster::Cluster;
use super::folder::Folder;
use super::page::Refusal;
use crate::cli::snapshot::{Filter, Kind};

/// Where objects are read from.
pub enum Source {
    /// The API server.
    Cluster(Cluster),
    /// What `dump` has written.
    Folder(Folder),
}

impl Source {
    /// The namespace that is meant where none is named.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Cluster(cluster) => cluster.namespace(),
            Self::Folder(_) => "default",
        }
    }

    /// Shows each object of a kind that the filter lets through, as JSON.
    ///
    /// # Errors
    /// Why the list cannot be had, or not to its end.
    pub async fn each(
        &self,
        kind: Kind,
        filter: &Filter,
        take: impl FnMut(&str),
    ) -> Result<(), Refusal> {
        match self {
            Self::Cluster(cluster) => cluster.each(kind, filter, take).await,
            Self::Folder(folder) => folder.each(kind, filter, take),
        }
    }
}
