//! Reads objects as written: from the API server, a dump, or a folder of YAML.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::controller::{self, leader};
use super::list::ListError;
use super::source::{ObjectSource, or_note};
use crate::api::names::CONFIG_MAP;
use crate::cli::failure::CliError;
use crate::cli::snapshot::{Filter, Inventory, ResourceKind, Snapshot};
use crate::condition::{CriticalComponentClass, Source};
use crate::config::Config;
use crate::object::{CsiNode, Watched};

/// A kind that is read, with its name in YAML.
type Written = (ResourceKind, &'static str);

/// The kinds that `check` reads.
pub(crate) const KINDS: [Written; 5] = [
    SUGGESTED_FROM[0],
    SUGGESTED_FROM[1],
    NODES,
    (ResourceKind::NodePools, "NodePool"),
    (ResourceKind::Deployments, "Deployment"),
];
const RULES: Written = (ResourceKind::Rules, "NodeReadinessRule");
const NODES: Written = (ResourceKind::Nodes, "Node");
/// What `check` reads where a rule names a CSI driver.
const CSI_DRIVERS: Written = (ResourceKind::CsiDrivers, "CSIDriver");
/// The kinds that `suggest` reads.
pub(crate) const SUGGESTED_FROM: [Written; 2] = [RULES, (ResourceKind::DaemonSets, "DaemonSet")];

/// The inventory of a cluster or a dump: its objects of these kinds.
pub(crate) async fn inventory(
    source: &ObjectSource,
    config: Option<&Path>,
    kinds: &[Written],
) -> Result<Inventory, CliError> {
    let mut inventory = objects(source, kinds).await;
    if kinds.contains(&NODES) && names_csi_driver(&inventory) {
        inventory.csi_drivers = csi_drivers(source, &mut inventory).await;
        take_all(source, &mut inventory, CSI_DRIVERS).await;
    }
    let gaps = &mut inventory.gaps;
    let config = if let Some(path) = config {
        Config::read(path)?
    } else {
        let leader = or_note(gaps, ResourceKind::Leases, leader(source).await);
        controller::config(source, leader.as_ref(), gaps).await?
    };
    Ok(with_classes(inventory, config.classes()?))
}

/// The same, with the controller's configuration from a snapshot.
pub(crate) async fn inventory_beside(source: &ObjectSource, snapshot: &Snapshot) -> Inventory {
    let of_rest = KINDS.into_iter().filter(|kind| *kind != NODES);
    let mut inventory = objects(source, &of_rest.collect::<Vec<_>>()).await;
    inventory.nodes = snapshot.view.nodes().cloned().collect();
    if names_csi_driver(&inventory) {
        let drivers = snapshot.view.csi_drivers().map(str::to_owned);
        let is_known = snapshot.gap(ResourceKind::CsiNodes).is_none();
        inventory.csi_drivers = is_known.then(|| drivers.collect());
        take_all(source, &mut inventory, CSI_DRIVERS).await;
    }
    let of_config = [ResourceKind::Leases, ResourceKind::ConfigMaps];
    let gaps = of_config.iter().filter_map(|kind| snapshot.gap(*kind));
    inventory.gaps.extend(gaps.cloned());
    with_classes(inventory, snapshot.classes().to_vec())
}

fn with_classes(mut inventory: Inventory, classes: Vec<CriticalComponentClass>) -> Inventory {
    inventory.classes = classes;
    let gaps = inventory.gaps.iter().map(ToString::to_string);
    inventory.notes.extend(gaps);
    inventory
}

/// The CSI drivers that are registered on any node, if they may be read.
async fn csi_drivers(source: &ObjectSource, inventory: &mut Inventory) -> Option<BTreeSet<String>> {
    let (kind, all) = (ResourceKind::CsiNodes, Filter::default());
    let listed = source.all::<Watched<CsiNode>>(kind, &all).await;
    let is_known = listed.is_ok();
    let csi_nodes = or_note(&mut inventory.gaps, kind, listed).into_iter();
    let drivers = csi_nodes
        .filter_map(|it| it.read().ok())
        .flat_map(|it| it.drivers);
    let drivers = drivers.map(|driver| driver.name).collect();
    is_known.then_some(drivers)
}

fn names_csi_driver(inventory: &Inventory) -> bool {
    let specs = inventory.rules.iter().flat_map(|rule| &rule.spec);
    let mut kinds = specs.flat_map(|spec| &spec.conditions).map(|it| &it.type_);
    kinds.any(|kind| matches!(Source::of(kind, &[]), Source::CsiDriver(_)))
}

async fn objects(source: &ObjectSource, kinds: &[Written]) -> Inventory {
    let mut inventory = Inventory::default();
    for kind in kinds {
        take_all(source, &mut inventory, *kind).await;
    }
    inventory
}

/// Adds all objects of a kind.
async fn take_all(source: &ObjectSource, inventory: &mut Inventory, (kind, name): Written) {
    let mut objects = source.list(kind, &Filter::default());
    let listed = loop {
        match objects.try_next().await {
            Ok(Some(json)) => {
                if let Ok(object) = serde_json::from_str(&json) {
                    inventory.take(name, object, name);
                }
            }
            end => break end.map(drop),
        }
    };
    if let (Err(ListError::NotInstalled), ResourceKind::Rules) = (&listed, kind) {
        inventory.notes.push(
            "the cluster has no NodeReadinessRules: their CustomResourceDefinition is not installed"
                .into(),
        );
    }
    or_note(&mut inventory.gaps, kind, listed);
}

/// The inventory of files, and of folders of YAML and JSON files with their subfolders.
pub(crate) fn inventory_of_files(
    paths: &[PathBuf],
    config: Option<&Path>,
) -> Result<Inventory, CliError> {
    let mut inventory = Inventory {
        is_of_files: true,
        ..Inventory::default()
    };
    let mut configured = None;
    let mut all = Vec::new();
    for path in paths {
        all.extend(files(path)?);
    }
    for file in all {
        let text = std::fs::read_to_string(&file).map_err(|error| unreadable(&file, &error))?;
        for (line, document) in documents(&text) {
            let place = format!("{}:{line}", file.display());
            match serde_saphyr::from_str::<Value>(&document) {
                Ok(object) => put(&mut inventory, &mut configured, object, &place),
                Err(_) if document.contains("{{") => {
                    let why =
                        "there is templating left in it: render it first, as `helm template` does";
                    inventory.unreadable.push((place, why.into()));
                }
                Err(error) => {
                    let why = error.to_string();
                    let why = why.lines().next().unwrap_or_default();
                    inventory.unreadable.push((place, why.into()));
                }
            }
        }
    }
    let config = match (config, configured) {
        (Some(path), _) => Config::read(path)?,
        (None, Some(text)) => Config::parse(&text, Path::new(CONFIG_MAP.0))?,
        (None, None) => Config::default(),
    };
    inventory.classes = config.classes()?;
    Ok(inventory)
}

fn put(inventory: &mut Inventory, configured: &mut Option<String>, object: Value, place: &str) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    if let Some(items) = object.get("items").and_then(Value::as_array)
        && kind.ends_with("List")
    {
        for item in items {
            put(inventory, configured, item.clone(), place);
        }
    } else if kind == "ConfigMap" {
        let map: Option<ConfigMap> = serde_json::from_value(object).ok();
        let (name, key) = CONFIG_MAP;
        let map = map.filter(|map| map.metadata.name.as_deref() == Some(name));
        let text = map.and_then(|map| map.data?.remove(key));
        *configured = text.or_else(|| configured.take());
    } else {
        inventory.take(&kind, object, place);
    }
}

/// The non-empty documents of a file, with their first lines.
fn documents(text: &str) -> Vec<(usize, String)> {
    let mut documents = vec![(1, String::new())];
    for (index, line) in text.lines().enumerate() {
        if line == "---" || line.starts_with("--- ") {
            documents.push((index + 2, String::new()));
        } else if let Some((_, document)) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let says = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    documents.retain(|(_, document)| document.lines().any(says));
    documents
}

/// The YAML and JSON files of a folder, sorted.
fn files(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| unreadable(path, &error))? {
        entries.push(entry.map_err(|error| unreadable(path, &error))?.path());
    }
    entries.sort();
    let mut all = Vec::new();
    for entry in entries {
        let ending = entry.extension().and_then(|ending| ending.to_str());
        if entry.is_dir() {
            all.extend(files(&entry)?);
        } else if matches!(ending, Some("yaml" | "yml" | "json")) {
            all.push(entry);
        }
    }
    Ok(all)
}

fn unreadable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::Input(format!("cannot read {}: {error}", path.display()))
}
