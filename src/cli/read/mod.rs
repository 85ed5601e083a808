//! Reads the input of commands from the API server (once or watched), or from memory, which a dump, YAML files or a simulation
//! fill. `source` lists, `builder` fills a snapshot from lists, and `live` keeps a snapshot current.

#![allow(clippy::disallowed_methods, reason = "it deals with the cluster now")]

mod builder;
mod controller;
mod files;
mod kept_out;
mod live;
mod no_pod;
mod source;
mod standing;

use futures::{FutureExt, TryStreamExt};
use kube::core::{DynamicObject, PartialObjectMeta};

use super::failure::CliError;
use super::snapshot::{PendingPod, Snapshot, Wanted};
use nodegate_cluster::ResourceKind;
use nodegate_core::condition::CriticalComponentClass;
use nodegate_core::object::ObjectKey;
use nodegate_core::selector::Filter;

pub(super) use builder::{Configured, snapshot, with_rules};
#[cfg(test)]
pub(super) use files::put;
pub(super) use files::{ABOUT, AboutDump, FORM, dump_in, manifests};
pub(super) use live::Live;
pub use source::Lists;
pub(crate) use source::{ObjectSource, record_gap};

/// A snapshot from objects in memory, for simulations. Fails if a required list is missing.
pub fn snapshot_of(
    lists: Lists,
    classes: Vec<CriticalComponentClass>,
    passing_taints: Vec<String>,
) -> Result<Snapshot, CliError> {
    let (source, wanted) = (ObjectSource::Memory(lists), Wanted::default());
    let read = snapshot(&source, Some((classes, passing_taints)), &wanted);
    let read = read.now_or_never();
    read.expect("nothing is awaited, since everything is in memory")
}

/// A pod with its warning events; `None` if it does not exist.
pub(super) async fn pod(
    source: &ObjectSource,
    namespace: &str,
    name: &str,
) -> Result<Option<PendingPod>, CliError> {
    let objects = source.list(ResourceKind::Pods, &Filter::one(namespace, name));
    let objects: Vec<String> = objects.try_collect().await?;
    let mut found = objects.iter().find_map(|json| PendingPod::read(json));
    if let Some(pod) = &mut found {
        // Events are optional.
        let events = builder::events(source, "Pod", &ObjectKey::new(namespace, name)).await;
        pod.unready.events = events.unwrap_or_default();
    }
    Ok(found)
}

/// Names of the pods in a namespace, or of all objects of another kind; empty if they may not be read.
pub(super) async fn names(
    source: &ObjectSource,
    kind: ResourceKind,
    namespace: Option<&str>,
) -> Vec<String> {
    let filter = Filter::default().within(namespace);
    let objects = source.all::<PartialObjectMeta<DynamicObject>>(kind, &filter);
    let objects = objects.await.unwrap_or_default().into_iter();
    objects.filter_map(|it| it.metadata.name).collect()
}

/// The error for an object that does not exist, with similar names.
pub(super) async fn unknown(
    source: &ObjectSource,
    kind: ResourceKind,
    namespace: Option<&str>,
    name: &str,
) -> CliError {
    let names = names(source, kind, namespace).await;
    let offer = match near_names(name, &names).join(", ").as_str() {
        "" => String::new(),
        near => format!("; did you mean {near}?"),
    };
    let namespace = namespace.map_or_else(String::new, |it| format!("{it}/"));
    let kind = kind.singular();
    CliError::Input(format!("there is no {kind} {namespace}{name}{offer}"))
}

/// The most similar names, best first: those that contain the name or are contained in it, and those within a few edits.
fn near_names<'a>(name: &str, names: &'a [String]) -> Vec<&'a str> {
    const SHOWN: usize = 3;
    let near = names.iter().filter_map(|other| {
        let changes = strsim::levenshtein(name, other);
        let is_part = name.len() >= 3 && (other.contains(name) || name.contains(other.as_str()));
        let is_near = changes <= name.len() / 3 + 1;
        let changes = if is_part { changes.min(1) } else { changes };
        (is_part || is_near).then_some((changes, other.as_str()))
    });
    let mut near: Vec<(usize, &str)> = near.collect();
    near.sort_unstable();
    near.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}
