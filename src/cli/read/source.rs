//! Sources of objects: the API server, a dump or memory. All list the same way, as JSON, one object after the other.

use std::collections::BTreeMap;

use futures::future::join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cluster::{Cluster, DryRunAnswer};
use super::folder::Folder;
use super::list::{ListError, Objects};
use crate::cli::snapshot::{Filter, Gap, ResourceKind};

pub(crate) enum ObjectSource {
    Cluster(Cluster),
    /// A folder that `dump` wrote.
    Folder(Folder),
    Lists(Lists),
    /// Another source, with some kinds already read.
    Kept(Box<ObjectSource>, Kept),
}

/// Objects in memory, as JSON.
#[derive(Debug, Clone)]
pub struct Lists {
    /// The time at which the objects were in this state.
    pub at: Timestamp,
    /// The objects of each kind.
    pub objects: BTreeMap<ResourceKind, Vec<String>>,
}

/// Kinds that have been read completely, or why they could not be.
type Kept = BTreeMap<ResourceKind, Result<Vec<String>, ListError>>;

impl ObjectSource {
    /// The default namespace.
    pub(crate) fn namespace(&self) -> &str {
        match self {
            Self::Cluster(cluster) => cluster.namespace(),
            Self::Folder(_) | Self::Lists(_) => "default",
            Self::Kept(source, _) => source.namespace(),
        }
    }

    pub(crate) fn at(&self) -> Timestamp {
        match self {
            Self::Cluster(_) => Timestamp::now(),
            Self::Folder(folder) => folder.at(),
            Self::Lists(lists) => lists.at,
            Self::Kept(source, _) => source.at(),
        }
    }

    /// Reads all objects of these kinds once and keeps them, for commands that need them several times.
    pub(crate) async fn keeping(self, kinds: impl Iterator<Item = ResourceKind>) -> Self {
        let all = Filter::default();
        let read = kinds.map(async |kind| (kind, self.list(kind, &all).try_collect().await));
        let kept = join_all(read).await.into_iter().collect();
        Self::Kept(Box::new(self), kept)
    }

    /// The objects of a kind that pass the filter.
    pub(crate) fn list(&self, kind: ResourceKind, filter: &Filter) -> Objects<'_> {
        let at_hand = |objects: Option<&'_ Vec<String>>| {
            let objects = objects.into_iter().flatten();
            let objects = objects.filter(|it| filter.lets_through(it)).cloned();
            stream::iter(objects.map(Ok).collect::<Vec<_>>()).boxed_local()
        };
        match self {
            Self::Cluster(cluster) => cluster.list(kind, filter),
            Self::Folder(folder) => match folder.list(kind, filter) {
                Ok(objects) => stream::iter(objects.into_iter().map(Ok)).boxed_local(),
                Err(refusal) => refused(refusal),
            },
            Self::Lists(lists) => at_hand(lists.objects.get(&kind)),
            Self::Kept(source, kept) => match kept.get(&kind) {
                Some(Ok(objects)) => at_hand(Some(objects)),
                Some(Err(refusal)) => refused(refusal.clone()),
                None => source.list(kind, filter),
            },
        }
    }

    /// What the API server would say of a rule, which replaces one of this version.
    pub(crate) async fn dry_run(&self, rule: &Value, replaced: Option<&str>) -> DryRunAnswer {
        match self {
            Self::Cluster(cluster) => cluster.dry_run(rule, replaced).await,
            Self::Kept(source, _) => Box::pin(source.dry_run(rule, replaced)).await,
            Self::Folder(_) | Self::Lists(_) => DryRunAnswer::NotAsked("this is a dump".into()),
        }
    }

    pub(crate) async fn all<T: DeserializeOwned>(
        &self,
        kind: ResourceKind,
        filter: &Filter,
    ) -> Result<Vec<T>, ListError> {
        let mut all = Vec::new();
        let mut objects = self.list(kind, filter);
        while let Some(object) = objects.try_next().await? {
            all.extend(serde_json::from_str(&object).ok());
        }
        Ok(all)
    }
}

fn refused<'a>(refusal: ListError) -> Objects<'a> {
    stream::iter([Err(refusal)]).boxed_local()
}

/// The listed objects; a refused list is empty and recorded as a gap. So is a list that every cluster has and this one does not
/// know: then something else answers than an API server.
pub(super) fn or_note<T: Default>(
    gaps: &mut Vec<Gap>,
    kind: ResourceKind,
    listed: Result<T, ListError>,
) -> T {
    listed.unwrap_or_else(|refusal| {
        let is_absent = matches!(refusal, ListError::NotInstalled) && kind.may_be_absent();
        if !is_absent && gaps.iter().all(|gap| gap.kind != kind) {
            gaps.push(Gap {
                kind,
                forbidden: matches!(refusal, ListError::Forbidden(_)),
                why: refusal.to_string(),
            });
        }
        T::default()
    })
}
