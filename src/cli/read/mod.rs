//! Reads the input of commands from the API server (once or watched), a dump, YAML files, or objects in memory. `source` lists,
//! `builder` fills a snapshot from lists, and `live` keeps a snapshot current.

mod builder;
mod certificate;
mod cluster;
mod controller;
mod folder;
mod inventory;
mod list;
mod live;
mod source;
mod watches;

use futures::{FutureExt, TryStreamExt};

use super::failure::{CliError, near_names};
use super::snapshot::{self, Filter, ResourceKind, Snapshot, Specimen, Wanted};
use crate::condition::CriticalComponentClass;

pub(super) use builder::{Configured, snapshot, with_rules};
pub(super) use certificate::last_end;
pub(super) use cluster::{Cluster, DryRunAnswer};
pub(super) use controller::{instances, leader};
pub(super) use folder::{ABOUT, AboutDump, FORM, Folder, Missing};
pub(super) use inventory::{
    KINDS, SUGGESTED_FROM, inventory, inventory_beside, inventory_of_files,
};
pub(super) use list::ListError;
pub(super) use live::Live;
pub use source::Lists;
pub(crate) use source::ObjectSource;

/// A snapshot from objects in memory, for simulations.
///
/// # Errors
/// When a required list is missing.
pub fn snapshot_of(
    lists: Lists,
    classes: Vec<CriticalComponentClass>,
    passing_taints: Vec<String>,
) -> Result<Snapshot, CliError> {
    let (source, wanted) = (ObjectSource::Lists(lists), Wanted::default());
    let configured = Configured::AtHand(classes, passing_taints);
    let read = snapshot(&source, configured, &wanted);
    // Nothing is awaited, since everything is in memory.
    read.now_or_never().unwrap_or_else(|| {
        let why = "the objects at hand are waited for".to_owned();
        Err(CliError::Input(why))
    })
}

/// A pod with its warning events; `None` if it does not exist.
pub(super) async fn pod(
    source: &ObjectSource,
    namespace: &str,
    name: &str,
) -> Result<Option<Specimen>, CliError> {
    let objects = source.list(ResourceKind::Pods, &Filter::one(namespace, name));
    let objects: Result<Vec<String>, _> = objects.try_collect().await;
    let objects = objects.map_err(|refusal| refusal.of(ResourceKind::Pods))?;
    let mut found = objects.iter().find_map(|json| Specimen::read(json));
    if let Some(Specimen { diagnosis, .. }) = &mut found {
        // Events are optional.
        let events = builder::events(source, &diagnosis.key).await;
        diagnosis.events = events.unwrap_or_default();
    }
    Ok(found)
}

/// Names of the pods in a namespace, or of all objects of another kind; empty if they may not be read.
pub(super) async fn names(
    source: &ObjectSource,
    kind: ResourceKind,
    namespace: Option<&str>,
) -> Vec<String> {
    let filter = Filter {
        namespace: namespace.map(str::to_owned),
        ..Filter::default()
    };
    let names = source
        .list(kind, &filter)
        .map_ok(|json| snapshot::name(&json));
    let names: Vec<_> = names.try_collect().await.unwrap_or_default();
    names.into_iter().flatten().collect()
}

/// The error for an object that does not exist, with similar names.
pub(super) async fn unknown(
    source: &ObjectSource,
    kind: ResourceKind,
    namespace: Option<&str>,
    name: &str,
) -> CliError {
    let names = names(source, kind, namespace).await;
    let shown = namespace.map_or_else(|| name.to_owned(), |ns| format!("{ns}/{name}"));
    CliError::Unknown {
        kind: kind.singular(),
        name: shown,
        near: near_names(name, names.iter().map(String::as_str)),
    }
}
