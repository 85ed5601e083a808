//! Where objects are read from.

use std::collections::BTreeMap;

use futures::future::join_all;
use jiff::Timestamp;

use super::cluster::Cluster;
use super::folder::Folder;
use super::lists::{Lists, show};
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
    /// Another one, of which some kinds have been read already.
    Kept(Box<Source>, Kept),
}

/// Kinds that have been read as a whole, or why they could not be.
pub type Kept = BTreeMap<Kind, Result<Vec<String>, Refusal>>;

impl Source {
    /// The namespace that is meant where none is named.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Cluster(cluster) => cluster.namespace(),
            Self::Folder(_) | Self::Lists(_) => "default",
            Self::Kept(source, _) => source.namespace(),
        }
    }

    /// The time for which it tells.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Cluster(_) => Timestamp::now(),
            Self::Folder(folder) => folder.at(),
            Self::Lists(lists) => lists.at,
            Self::Kept(source, _) => source.at(),
        }
    }

    /// The same, with all objects of these kinds read once and kept: for an answer that needs them more than once.
    pub async fn keeping(self, kinds: &[Kind]) -> Self {
        let read = kinds.iter().map(async |kind| {
            let mut objects = Vec::new();
            let take = |json: &str| objects.push(json.to_owned());
            let listed = self.each(*kind, &Filter::default(), take).await;
            (*kind, listed.map(|_| objects))
        });
        let kept = join_all(read).await.into_iter().collect();
        Self::Kept(Box::new(self), kept)
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
            Self::Kept(source, kept) => match kept.get(&kind) {
                Some(objects) => {
                    let objects = objects.as_ref().map_err(Clone::clone)?;
                    show(objects, filter, take);
                    Ok(None)
                }
                // No kind is kept within what is kept.
                None => Box::pin(source.each(kind, filter, take)).await,
            },
        }
    }
}
