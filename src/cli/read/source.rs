//! Where objects are read from.

use jiff::Timestamp;

use super::cluster::Cluster;
use super::folder::Folder;
use super::lists::Lists;
use super::page::{Refusal, Version};
use crate::cli::snapshot::{Filter, Kind};

/// Where objects are read from.
pub enum Source {
    /// The API server.
    Cluster(Cluster),
    /// What `dump` has written.
    Folder(Folder),
    /// What is at hand.
    Lists(Lists),
}

impl Source {
    /// The namespace that is meant where none is named.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Cluster(cluster) => cluster.namespace(),
            Self::Folder(_) | Self::Lists(_) => "default",
        }
    }

    /// The time for which it tells.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Cluster(_) => Timestamp::now(),
            Self::Folder(folder) => folder.at(),
            Self::Lists(lists) => lists.at,
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
    ) -> Result<Version, Refusal> {
        match self {
            Self::Cluster(cluster) => cluster.each(kind, filter, take).await,
            Self::Folder(folder) => folder.each(kind, filter, take),
            Self::Lists(lists) => {
                lists.each(kind, filter, take);
                Ok(None)
            }
        }
    }
}
