//! This repository's CRD and RBAC, put into a cluster by `kubectl`, as a user does.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use crate::binaries::{Binaries, Component};
use crate::cluster::Cluster;
use crate::tool;

/// The namespace that Nodegate is installed in.
pub const NAMESPACE: &str = "nrr-system";

/// The service account that the controller runs as.
pub const SERVICE_ACCOUNT: &str = "nrr-controller-manager";

/// The user that this makes the controller.
pub const CONTROLLER: &str = "system:serviceaccount:nrr-system:nrr-controller-manager";

const CRD: &str = "nodereadinessrules.readiness.node.x-k8s.io";

impl Cluster {
    /// Installs CRD and RBAC, once; later calls find it done.
    ///
    /// # Errors
    ///
    /// When `kubectl` fails, or the CRD is not established in time.
    pub async fn install(&self) -> Result<()> {
        self.installed
            .get_or_try_init(async || {
                self.install_crd().await?;
                self.install_rbac().await
            })
            .await
            .copied()
    }

    /// Installs the RBAC alone, and has [`Self::install`] leave it at that: for a test that brings a CRD of its own, or
    /// none.
    ///
    /// # Errors
    ///
    /// When `kubectl` fails.
    pub async fn install_without_crd(&self) -> Result<()> {
        self.installed
            .get_or_try_init(async || self.install_rbac().await)
            .await
            .copied()
    }

    /// Installs `config/crd` and waits until it is established.
    ///
    /// # Errors
    ///
    /// See [`Self::install`].
    pub async fn install_crd(&self) -> Result<()> {
        let folder = config("crd");
        self.kubectl(&["apply", "--server-side", "-k", &folder.to_string_lossy()])
            .await
            .context("installing the CRD")?;
        let crd = format!("crd/{CRD}");
        self.kubectl(&["wait", "--for=condition=Established", "--timeout=30s", &crd])
            .await
            .context("waiting for the CRD")?;
        Ok(())
    }

    /// Installs `config/rbac` into its namespace.
    ///
    /// # Errors
    ///
    /// See [`Self::install`].
    pub async fn install_rbac(&self) -> Result<()> {
        let namespace =
            format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}");
        self.apply(&namespace).await?;
        let folder = config("rbac");
        self.kubectl(&["apply", "-k", &folder.to_string_lossy()])
            .await
            .context("installing the RBAC")?;
        Ok(())
    }
}

/// A folder of this repository's `examples/`.
#[must_use]
pub fn example(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples")
        .join(folder)
}

/// A folder of this repository's `config/`.
#[must_use]
pub fn config(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../config")
        .join(folder)
}

/// What `kubectl kustomize` makes of a folder.
///
/// # Errors
///
/// When `kubectl` has not been built or fails; the message is its standard error.
pub async fn kustomize(folder: &Path) -> Result<String> {
    let mut kubectl = Command::new(Binaries::locate()?.path(Component::Kubectl)?);
    kubectl.arg("kustomize").arg(folder);
    tool::run(kubectl, "").await
}

/// Writes a kustomization with these resources and components into this folder, as a user does; they are named by their
/// folders in `config/`.
///
/// # Errors
///
/// When it cannot be written.
pub fn write_kustomization(folder: &Path, resources: &[&str], components: &[&str]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    // Kustomize takes no absolute paths.
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
