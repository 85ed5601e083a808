//! Karpenter's own resource definitions in a cluster, read from its Go module (`karpenter/`), without Karpenter.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cluster::Cluster;

const MODULE: &str = "sigs.k8s.io/karpenter";

/// The folder with Karpenter's resource definitions; the module is downloaded unless Go has it already.
///
/// # Errors
///
/// When there is no `go` on the `PATH`, or the module cannot be had.
pub fn crds() -> Result<PathBuf> {
    go(&["mod", "download", MODULE])?;
    let module = go(&["list", "-m", "-f", "{{.Dir}}", MODULE])?;
    let folder = Path::new(module.trim()).join("pkg/apis/crds");
    ensure!(folder.is_dir(), "{} is no folder", folder.display());
    Ok(folder)
}

fn go(arguments: &[&str]) -> Result<String> {
    let output = Command::new("go")
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("karpenter"))
        .output()
        .context("no `go` on the PATH: Karpenter's resource definitions come in a Go module (https://go.dev/dl)")?;
    ensure!(
        output.status.success(),
        "go {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Cluster {
    /// Installs `NodeClaim`s and `NodePool`s as Karpenter defines them, and waits until they are established.
    ///
    /// # Errors
    ///
    /// When the module cannot be had, or `kubectl` fails.
    pub async fn install_karpenter_crds(&self) -> Result<()> {
        let folder = tokio::task::spawn_blocking(crds)
            .await
            .context("looking for Karpenter's resource definitions")??;
        for plural in ["nodeclaims", "nodepools"] {
            let file = folder.join(format!("karpenter.sh_{plural}.yaml"));
            self.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()])
                .await
                .context("installing Karpenter's resource definitions")?;
            let crd = format!("crd/{plural}.karpenter.sh");
            self.kubectl(&["wait", "--for=condition=Established", "--timeout=30s", &crd])
                .await
                .context("waiting for Karpenter's resource definitions")?;
        }
        Ok(())
    }
}
