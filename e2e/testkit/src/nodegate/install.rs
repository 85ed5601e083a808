//! What users install from this repository: its folders, its names, and the rendered manifests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use crate::kubernetes::binaries::{Binaries, Component};
use crate::kubernetes::tool;

pub const NAMESPACE: &str = "nrr-system";

pub const SERVICE_ACCOUNT: &str = "nrr-controller-manager";

/// The name of the rules' resource definition.
pub const CRD: &str = "nodereadinessrules.readiness.node.x-k8s.io";

pub const CONTROLLER: &str = "system:serviceaccount:nrr-system:nrr-controller-manager";

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program that Cargo built beside this test.
pub fn program(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe().context("asking for this executable's path")?;
    let folders = this.ancestors().skip(1).take(2);
    let built = folders
        .map(|folder| folder.join(name))
        .find(|it| it.is_file());
    built.with_context(|| {
        format!(
            "no {name} beside {}; type: cargo build --workspace (or: make test)",
            this.display()
        )
    })
}

/// A folder of this repository's `examples/`.
pub fn example(folder: &str) -> PathBuf {
    repository().join("examples").join(folder)
}

/// A folder of this repository's `config/`.
pub fn config(folder: &str) -> PathBuf {
    repository().join("config").join(folder)
}

/// The folder of this repository's chart.
pub fn chart() -> PathBuf {
    repository().join("charts/nodegate")
}

/// The manifests that the chart and `config/` share.
pub fn manifests(folder: &str) -> PathBuf {
    chart().join("files").join(folder)
}

/// Renders a folder with `kubectl kustomize`.
pub async fn kustomize(folder: &Path) -> Result<String> {
    let mut kubectl = Command::new(Binaries::locate()?.path(Component::Kubectl)?);
    kubectl.arg("kustomize").arg(folder);
    tool::run(kubectl, "").await
}

/// Writes a kustomization into this folder, as a user does. Resources and components are named by their folders in `config/`.
pub fn write_kustomization(folder: &Path, resources: &[&str], components: &[&str]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    // Kustomize accepts no absolute paths.
    let root: PathBuf = folder
        .canonicalize()?
        .iter()
        .skip(1)
        .map(|_| "..")
        .collect();
    let path = |name: &&str| {
        let target = config(name).canonicalize()?;
        anyhow::Ok(root.join(target.strip_prefix("/")?))
    };
    let paths = |names: &[&str]| names.iter().map(path).collect::<Result<Vec<_>>>();
    let content = json!({"resources": paths(resources)?, "components": paths(components)?});
    let file = folder.join("kustomization.yaml");
    std::fs::write(&file, content.to_string())
        .with_context(|| format!("writing {}", file.display()))
}
