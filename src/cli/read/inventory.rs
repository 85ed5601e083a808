//! Reads objects as written: from the API server, a dump, or a folder of YAML.

use std::path::{Path, PathBuf};

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::controller::{self, leader};
use super::list::ListError;
use super::source::{ObjectSource, or_note};
use crate::api::names::CONFIG_MAP;
use crate::cli::failure::CliError;
use crate::cli::snapshot::{ASSUMED, ClassesFrom, Filter, Gap, Inventory, ResourceKind, Snapshot};
use crate::condition::{CriticalComponentClass, Source};
use crate::config::Config;
use crate::object::{CsiNodeObject, NodeObject};

/// The kinds that are read, with their names in YAML.
pub(crate) const KINDS: [(ResourceKind, &str); 4] = [
    (ResourceKind::Rules, "NodeReadinessRule"),
    (ResourceKind::DaemonSets, "DaemonSet"),
    (ResourceKind::NodePools, "NodePool"),
    (ResourceKind::Deployments, "Deployment"),
];

/// The inventory of a cluster or a dump, with its nodes if wanted.
pub(crate) async fn inventory(
    source: &ObjectSource,
    config: Option<&Path>,
    with_nodes: bool,
) -> Result<Inventory, CliError> {
    let mut gaps = Vec::new();
    let mut inventory = objects(source, &mut gaps).await;
    if with_nodes {
        of_nodes(source, &mut inventory, &mut gaps).await;
    }
    let (config, from) = if let Some(path) = config {
        (Config::read(path)?, ClassesFrom::Named)
    } else {
        let leader = or_note(&mut gaps, ResourceKind::Leases, leader(source).await);
        controller::config(source, leader.as_ref()).await?
    };
    Ok(with_classes(inventory, config.classes()?, from, &gaps))
}

/// The same, with the controller's configuration from a snapshot.
pub(crate) async fn inventory_beside(source: &ObjectSource, snapshot: &Snapshot) -> Inventory {
    let mut gaps = Vec::new();
    let mut inventory = objects(source, &mut gaps).await;
    inventory.nodes = snapshot.view.nodes().cloned().collect();
    if names_csi_driver(&inventory) && snapshot.gap(ResourceKind::CsiNodes).is_none() {
        let drivers = snapshot.view.csi_drivers().map(str::to_owned);
        inventory.csi_drivers = Some(drivers.collect());
    }
    let classes = snapshot.classes().to_vec();
    with_classes(inventory, classes, snapshot.classes_from, &gaps)
}

fn with_classes(
    mut inventory: Inventory,
    classes: Vec<CriticalComponentClass>,
    from: ClassesFrom,
    gaps: &[Gap],
) -> Inventory {
    inventory.classes = classes;
    if from == ClassesFrom::Assumed {
        inventory.notes.push(ASSUMED.into());
    }
    inventory.notes.extend(gaps.iter().map(ToString::to_string));
    inventory
}

/// Reads the nodes, and their CSI drivers if any rule names one.
async fn of_nodes(source: &ObjectSource, inventory: &mut Inventory, gaps: &mut Vec<Gap>) {
    let all = Filter::default();
    let nodes = source.all::<NodeObject>(ResourceKind::Nodes, &all).await;
    let nodes = or_note(gaps, ResourceKind::Nodes, nodes).into_iter();
    inventory.nodes = nodes.filter_map(|node| node.read().ok()).collect();
    if names_csi_driver(inventory) {
        let listed = source
            .all::<CsiNodeObject>(ResourceKind::CsiNodes, &all)
            .await;
        let is_known = listed.is_ok();
        let csi_nodes = or_note(gaps, ResourceKind::CsiNodes, listed).into_iter();
        let drivers = csi_nodes
            .filter_map(|it| it.read().ok())
            .flat_map(|it| it.drivers);
        let drivers = drivers.map(|driver| driver.name).collect();
        inventory.csi_drivers = is_known.then_some(drivers);
    }
}

fn names_csi_driver(inventory: &Inventory) -> bool {
    let specs = inventory.rules.iter().flat_map(|rule| &rule.spec);
    let mut kinds = specs.flat_map(|spec| &spec.conditions).map(|it| &it.type_);
    kinds.any(|kind| matches!(Source::of(kind, &[]), Source::CsiDriver(_)))
}

async fn objects(source: &ObjectSource, gaps: &mut Vec<Gap>) -> Inventory {
    let mut inventory = Inventory::default();
    for (kind, name) in KINDS {
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
                "the cluster has no NodeReadinessRules: their CustomResourceDefinition is not installed".into(),
            );
        }
        or_note(gaps, kind, listed);
    }
    inventory
}

/// The inventory of a file, or of a folder of YAML and JSON files with its subfolders.
pub(crate) fn inventory_of_files(
    path: &Path,
    config: Option<&Path>,
) -> Result<Inventory, CliError> {
    let mut inventory = Inventory {
        is_of_files: true,
        ..Inventory::default()
    };
    let mut configured = None;
    for file in files(path)? {
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
