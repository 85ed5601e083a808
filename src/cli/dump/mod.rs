//! `dump`: writes what the other commands need into a folder, for `--from`.

#![allow(clippy::disallowed_methods, reason = "it deals with the cluster now")]

mod fields;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use futures::TryStreamExt;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::failure::CliError;
use super::page::{Block, Page, Render};
use super::read::{ABOUT, AboutDump, FORM, ObjectSource};
use super::snapshot::Snapshot;
use fields::{kept, redact};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::api::names::{CONFIG_MAP, LEASE, NAMESPACE};
use nodegate_core::condition::Watch;
use nodegate_core::object::ObjectKey;
use nodegate_core::selector::Filter;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Dumped {
    pub folder: String,
    pub objects: BTreeMap<&'static str, usize>,
    pub redacted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Gap>,
}

pub(super) async fn dump(
    source: &ObjectSource,
    snapshot: &Snapshot,
    folder: &Path,
    redact: bool,
) -> Result<Dumped, CliError> {
    private_folder(folder).map_err(|error| CliError::file(folder, error))?;
    let mut there = fs::read_dir(folder).map_err(|error| CliError::file(folder, error))?;
    if there.next().is_some() {
        let why = "the folder is not empty, and nothing in it is overwritten; name another one";
        return Err(CliError::file(folder, why));
    }
    let (mut objects, mut missing) = (BTreeMap::new(), Vec::new());
    for kind in ResourceKind::ALL.iter().copied() {
        let items = match read(source, kind, snapshot, redact).await {
            Ok(items) => items,
            Err(refusal) if refusal.absent => continue,
            Err(refusal) => {
                missing.push(refusal);
                continue;
            }
        };
        objects.insert(kind.name(), items.len());
        let path = folder.join(kind.file());
        write_list(&path, &items).map_err(|error| CliError::file(&path, error))?;
    }
    let about = AboutDump {
        form: FORM,
        nodegate: env!("CARGO_PKG_VERSION").into(),
        at: Timestamp::now(),
        cluster: source.cluster().to_owned(),
        missing: missing.clone(),
    };
    let path = folder.join(ABOUT);
    let written = private_file(&path).and_then(|it| Ok(serde_json::to_writer_pretty(it, &about)?));
    written.map_err(|error| CliError::file(&path, error))?;
    Ok(Dumped {
        folder: folder.display().to_string(),
        objects,
        redacted: redact,
        missing,
    })
}

/// Creates a folder that only its owner can read: a dump reveals much. On Windows, it and its files have its parent's rights.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut options = DirBuilder::new();
    #[cfg(unix)]
    options.mode(0o700);
    options.recursive(true).create(path)
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options.write(true).create_new(true).open(path)
}

fn write_list(path: &Path, items: &[String]) -> io::Result<()> {
    let mut file = BufWriter::new(private_file(path)?);
    file.write_all(b"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")?;
    for (index, item) in items.iter().enumerate() {
        file.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        file.write_all(item.as_bytes())?;
    }
    file.write_all(b"\n]}\n")?;
    file.flush()
}

/// Every object of a kind that any command reads, each once, as JSON text, which takes a tenth of the memory of values.
async fn read(
    source: &ObjectSource,
    kind: ResourceKind,
    snapshot: &Snapshot,
    redacts: bool,
) -> Result<Vec<String>, Gap> {
    let classes = snapshot.view.cluster().classes.iter();
    let prefixes: Vec<&str> = classes.map(|it| &*it.csi_annotation_prefix).collect();
    let mut all: BTreeMap<ObjectKey, String> = BTreeMap::new();
    for filter in filters(kind, snapshot) {
        let mut objects = source.list(kind, &filter);
        while let Some(json) = objects.try_next().await? {
            let Ok(object) = serde_json::from_str::<Value>(&json) else {
                continue;
            };
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let key = ObjectKey::new(text("namespace"), text("name"));
            let mut kept = kept(kind, object, &prefixes);
            if redacts {
                redact(&mut kept);
            }
            all.insert(key, kept.to_string());
        }
    }
    Ok(all.into_values().collect())
}

/// The filters by which commands read a kind.
fn filters(kind: ResourceKind, snapshot: &Snapshot) -> Vec<Filter> {
    let all = Filter::default();
    let leaders = snapshot.leader.as_ref().map(|it| it.namespace.as_str());
    match kind {
        ResourceKind::Deployments => vec![Filter::of_controllers(leaders.or(Some(NAMESPACE)))],
        ResourceKind::Leases => vec![Filter::named(LEASE)],
        ResourceKind::ConfigMaps => vec![Filter::named(CONFIG_MAP.0).within(leaders)],
        ResourceKind::Events => vec![
            all.clone().warnings("Pod"),
            all.clone().warnings("DaemonSet"),
            all.is("involvedObject.kind", "Node"),
        ],
        ResourceKind::Pods => {
            let of_classes = snapshot.view.cluster().classes.iter().map(|class| {
                Filter::labelled(class.selector.clone()).within(class.namespaces.single())
            });
            let watched = snapshot.view.components();
            let pods = watched.filter(|(watch, _)| matches!(watch, Watch::Pods(_)));
            // Also those that are not bound or have ended, which can be explained.
            let of_named = pods.map(|(_, scope)| Filter {
                fields: None,
                ..scope.clone()
            });
            of_classes
                .chain(of_named)
                .chain([Filter::of_controllers(leaders), all.is("spec.nodeName", "")])
                .collect()
        }
        _ => vec![all],
    }
}

impl Render for Dumped {
    const KIND: &'static str = "Dump";

    fn blocks(&self, _: &Page) -> Vec<Block> {
        let objects = self.objects.iter().filter(|(_, count)| **count > 0);
        let objects = objects.map(|(kind, count)| format!("{count} {kind}"));
        let objects: Vec<_> = objects.collect();
        let wrote = format!("wrote {} into {}", objects.join(", "), self.folder);
        let missing = self.missing.iter();
        let missing =
            missing.map(|it| format!("note: {} could not be read: {}", it.kind.name(), it.why));
        let note = "note: it contains messages of events, conditions and containers; --redact leaves them out";
        let note = (!self.redacted).then(|| note.to_owned());
        let next = "next: use it: kubectl nodegate status --from ".to_owned() + &self.folder;
        let lines = [wrote].into_iter().chain(missing).chain(note);
        lines.chain([next]).map(Into::into).collect()
    }
}
