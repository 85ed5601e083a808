//! Fills memory from files: a dump, which has a file for each kind and one that describes it; or YAML and JSON manifests.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::Node;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::source::Lists;
use crate::failure::CliError;
use nodegate_cluster::{Gap, ResourceKind, objects};
use nodegate_core::api::misplaced;

pub(crate) const ABOUT: &str = "dump.json";
/// The version of the dump format. It increases when older binaries could no longer read it.
pub(crate) const FORM: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AboutDump {
    pub form: u32,
    /// The version of the binary that wrote it.
    pub nodegate: String,
    pub at: Timestamp,
    #[serde(default)]
    pub cluster: String,
    #[serde(default)]
    pub missing: Vec<Gap>,
}

pub(crate) fn dump_in(folder: &Path) -> Result<Lists, CliError> {
    let file = folder.join(ABOUT);
    let unusable = |why: String| CliError::file(&file, why);
    let hint = "(`kubectl nodegate dump DIR` writes a dump)";
    let text = std::fs::read_to_string(&file);
    let text = text.map_err(|error| unusable(format!("{error} {hint}")))?;
    let about: AboutDump = serde_json::from_str(&text)
        .map_err(|error| unusable(format!("this is no dump: {error}")))?;
    if about.form != FORM {
        return Err(unusable(format!(
            "the dump has form {}, and this is nodegate {}, which reads form {FORM}; use nodegate {}, which has written it",
            about.form,
            env!("CARGO_PKG_VERSION"),
            about.nodegate
        )));
    }
    let mut lists = Lists::of(about.at, BTreeMap::new());
    lists.cluster = about.cluster;
    lists.missing = about.missing;
    for kind in ResourceKind::ALL.iter().copied() {
        if lists.missing.iter().any(|it| it.kind == kind) {
            continue;
        }
        let file = folder.join(kind.file());
        let text = std::fs::read_to_string(&file);
        match text.and_then(|text| Ok(objects(serde_json::from_str(&text)?))) {
            Ok(objects) => drop(lists.objects.insert(kind, objects)),
            Err(error) => lists.missing.push(match error.kind() {
                ErrorKind::NotFound => Gap::absent(kind),
                _ => Gap::failed(kind, format!("{}: {error}", file.display())),
            }),
        }
    }
    Ok(lists)
}

/// The manifests in these files, and in the YAML and JSON files of these folders with their subfolders.
pub(crate) fn manifests(paths: &[PathBuf]) -> Result<Lists, CliError> {
    let mut lists = Lists::of(Timestamp::now(), BTreeMap::new());
    lists.are_files = true;
    let all: Result<Vec<_>, _> = paths.iter().map(|path| files(path)).collect();
    for file in all?.into_iter().flatten() {
        let text = std::fs::read_to_string(&file).map_err(|error| CliError::file(&file, error))?;
        for (line, document) in documents(&text) {
            let place = format!("{}:{line}", file.display());
            let why = match serde_saphyr::from_str::<Value>(&document) {
                Ok(object) => {
                    put(&mut lists, object, &place);
                    continue;
                }
                Err(_) if document.contains("{{") => {
                    "there is templating left in it: render it first, as `helm template` does"
                        .into()
                }
                Err(error) => {
                    let why = error.to_string();
                    why.lines().next().unwrap_or_default().to_owned()
                }
            };
            lists.unreadable.push((place, why));
        }
    }
    Ok(lists)
}

/// Adds an object, or the objects of a list. Other kinds than those that are read are ignored.
pub(crate) fn put(lists: &mut Lists, mut object: Value, place: &str) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    if kind.ends_with("List")
        && let Some(items) = object.get("items").and_then(Value::as_array)
    {
        for item in items {
            put(lists, item.clone(), place);
        }
        return;
    }
    let Some(kind) = ResourceKind::of_manifest(&kind) else {
        return;
    };
    // The API server would set them.
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let uid = meta.get("name").cloned().unwrap_or_else(|| json!("none"));
        meta.entry("uid").or_insert(uid);
        if matches!(kind, ResourceKind::DaemonSets | ResourceKind::Deployments) {
            meta.entry("namespace").or_insert_with(|| json!("default"));
        }
    }
    if kind == ResourceKind::Rules
        && let misplaced = misplaced(&object["spec"])
        && !misplaced.is_empty()
    {
        lists.unreadable.push((place.into(), misplaced.join("; ")));
    }
    // Why it has not the form that the API allows.
    let complaint = match kind {
        ResourceKind::DaemonSets => DaemonSet::deserialize(&object).err(),
        ResourceKind::Deployments => Deployment::deserialize(&object).err(),
        ResourceKind::Nodes => Node::deserialize(&object).err(),
        _ => None,
    };
    if let Some(why) = complaint {
        lists.unreadable.push((place.into(), why.to_string()));
    } else {
        let all = lists.objects.entry(kind).or_default();
        all.push(object.to_string());
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

/// The YAML and JSON files of a folder, sorted. A link to a folder is not followed: it may lead back.
fn files(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let entries = std::fs::read_dir(path).and_then(|it| it.map(|it| Ok(it?.path())).collect());
    let mut entries: Vec<PathBuf> = entries.map_err(|error| CliError::file(path, error))?;
    entries.sort();
    let mut all = Vec::new();
    for entry in entries {
        let ending = entry.extension().and_then(|ending| ending.to_str());
        if entry.is_dir() {
            if !entry.is_symlink() {
                all.extend(files(&entry)?);
            }
        } else if matches!(ending, Some("yaml" | "yml" | "json")) {
            all.push(entry);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_is_not_followed() {
        use std::fs;
        use std::os::unix::fs::symlink;

        let folder = std::env::temp_dir().join(format!("nodegate-links-{}", std::process::id()));
        let (inner, file) = (folder.join("rules"), folder.join("rules/rule.yaml"));
        fs::create_dir_all(&inner).unwrap();
        fs::write(&file, "kind: Node").unwrap();
        symlink(&folder, inner.join("back")).unwrap();
        symlink(&file, folder.join("linked.yaml")).unwrap();
        let found = super::files(&folder);
        fs::remove_dir_all(&folder).unwrap();
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, Ok(vec![folder.join("linked.yaml"), file]));
    }
}
