//! The resource definitions of other projects in a cluster, read from their Go modules: what is made of their kinds is
//! validated as in a cluster that runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cluster::Cluster;

/// Where a project's resource definitions are.
#[derive(Debug)]
pub struct Definitions {
    /// What it is called in messages.
    name: &'static str,
    /// The folder beside this crate's sources whose `go.mod` names the module's version.
    source: &'static str,
    /// Its Go module.
    module: &'static str,
    /// The folder in the module.
    folder: &'static str,
    /// The files there that are needed.
    files: &'static [&'static str],
}

/// `ServiceMonitor`s and `PrometheusRule`s.
pub const PROMETHEUS_OPERATOR: Definitions = Definitions {
    name: "Prometheus Operator",
    source: "prometheus-operator",
    module: "github.com/prometheus-operator/prometheus-operator",
    folder: "example/prometheus-operator-crd",
    files: &[
        "monitoring.coreos.com_prometheusrules.yaml",
        "monitoring.coreos.com_servicemonitors.yaml",
    ],
};

/// `Issuer`s, `Certificate`s, and what cert-manager makes of them.
pub const CERT_MANAGER: Definitions = Definitions {
    name: "cert-manager",
    source: "cert-manager",
    module: "github.com/cert-manager/cert-manager",
    folder: "deploy/crds",
    files: &[
        "cert-manager.io_certificaterequests.yaml",
        "cert-manager.io_certificates.yaml",
        "cert-manager.io_clusterissuers.yaml",
        "cert-manager.io_issuers.yaml",
    ],
};

/// `NodeClaim`s and `NodePool`s.
pub const KARPENTER: Definitions = Definitions {
    name: "Karpenter",
    source: "karpenter",
    module: "sigs.k8s.io/karpenter",
    folder: "pkg/apis/crds",
    files: &[
        "karpenter.sh_nodeclaims.yaml",
        "karpenter.sh_nodepools.yaml",
    ],
};

/// The class of nodes that Karpenter's kwok provider knows.
pub const KARPENTER_NODE_CLASS: Definitions = Definitions {
    folder: "kwok/apis/crds",
    files: &["karpenter.kwok.sh_kwoknodeclasses.yaml"],
    ..KARPENTER
};

impl Definitions {
    /// The files, where Go keeps the module; it is downloaded unless Go has it already.
    fn read(&self) -> Result<Vec<PathBuf>> {
        self.go(&["mod", "download", self.module])?;
        let module = self.go(&["list", "-m", "-f", "{{.Dir}}", self.module])?;
        let folder = Path::new(module.trim()).join(self.folder);
        let files: Vec<_> = self.files.iter().map(|file| folder.join(file)).collect();
        for file in &files {
            ensure!(file.is_file(), "there is no {}", file.display());
        }
        Ok(files)
    }

    fn go(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("go")
            .args(arguments)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(self.source))
            .output()
            .with_context(|| {
                format!(
                    "no `go` on the PATH: the resource definitions of {} come in a Go module (https://go.dev/dl)",
                    self.name
                )
            })?;
        ensure!(
            output.status.success(),
            "go {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Cluster {
    /// Installs the resource definitions of a project as it has them, and waits until they are established.
    ///
    /// # Errors
    ///
    /// When its module cannot be had, or `kubectl` fails.
    pub async fn install_definitions(&self, of: &'static Definitions) -> Result<()> {
        let files = tokio::task::spawn_blocking(|| of.read())
            .await
            .context("looking for resource definitions")?
            .with_context(|| format!("the resource definitions of {}", of.name))?;
        for file in files {
            let file = file.to_string_lossy();
            self.kubectl(&["apply", "--server-side", "-f", &file])
                .await
                .with_context(|| format!("installing {file}"))?;
            let established = "--for=condition=Established";
            self.kubectl(&["wait", established, "--timeout=30s", "-f", &file])
                .await
                .with_context(|| format!("waiting for {file}"))?;
        }
        Ok(())
    }
}
