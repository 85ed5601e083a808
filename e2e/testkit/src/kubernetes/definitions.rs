//! The resource definitions of other projects, read from their Go modules, so that a cluster validates these kinds as one that
//! runs the project does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::runtime::wait::Condition;
use kube::runtime::wait::conditions::is_crd_established;

use crate::kubernetes::cluster::Cluster;
use crate::kubernetes::wait::eventually;

const ESTABLISHED: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Definitions {
    /// The project's name in messages.
    name: &'static str,
    /// The folder beside this crate's sources whose `go.mod` pins the version.
    source: &'static str,
    module: &'static str,
    folder: &'static str,
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

/// `Issuer`s, `Certificate`s, and the kinds that cert-manager derives from them.
pub const CERT_MANAGER: Definitions = Definitions {
    name: "cert-manager",
    source: "tools",
    module: "github.com/cert-manager/cert-manager",
    folder: "deploy/crds",
    files: &[
        "cert-manager.io_certificaterequests.yaml",
        "cert-manager.io_certificates.yaml",
        "cert-manager.io_clusterissuers.yaml",
        "cert-manager.io_issuers.yaml",
    ],
};

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

/// `MachineHealthCheck`s.
pub const CLUSTER_API: Definitions = Definitions {
    name: "Cluster API",
    source: "cluster-api",
    module: "sigs.k8s.io/cluster-api",
    folder: "core/config/crd/bases",
    files: &["cluster.x-k8s.io_machinehealthchecks.yaml"],
};

/// The node class of Karpenter's kwok provider.
pub const KARPENTER_NODE_CLASS: Definitions = Definitions {
    folder: "kwok/apis/crds",
    files: &["karpenter.kwok.sh_kwoknodeclasses.yaml"],
    ..KARPENTER
};

impl Definitions {
    /// The files in Go's module cache. Downloads the module if needed.
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
    /// Installs a project's resource definitions unchanged, and waits until they are established.
    pub async fn install_definitions(&self, of: &'static Definitions) -> Result<()> {
        let files = tokio::task::spawn_blocking(|| of.read())
            .await
            .context("looking for resource definitions")?
            .with_context(|| format!("the resource definitions of {}", of.name))?;
        for file in files {
            let file = file.to_string_lossy();
            let definition = self
                .kubectl(&["apply", "--server-side", "-o", "name", "-f", &file])
                .await
                .with_context(|| format!("installing {file}"))?;
            let (_, name) = definition.trim().split_once('/').context("no name")?;
            self.until_established(name).await?;
        }
        Ok(())
    }

    /// Waits until the API server serves the resource of this definition, such as `nodeclaims.karpenter.sh`.
    pub async fn until_established(&self, definition: &str) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client().await?);
        let what = format!("{definition} is established");
        eventually(&what, ESTABLISHED, async || {
            let definition = definitions.get(definition).await?;
            Ok(is_crd_established().matches_object(Some(&definition)))
        })
        .await
    }
}
