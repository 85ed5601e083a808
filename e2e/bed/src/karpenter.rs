//! Karpenter's own resource definitions in a cluster, read from its Go module (`karpenter/`), and Karpenter itself with its kwok
//! provider.
//!
//! That provider creates a Node object for each `NodeClaim`, annotated so that kwok plays its kubelet. All else is Karpenter
//! as it is shipped: what it launches, which taints it knows, what it consolidates, replaces and drains.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cluster::Cluster;
use crate::fetch::get;
use crate::go_module::GoModule;
use crate::ports;
use crate::process::Process;
use crate::wait::eventually;

const MODULE: &str = "sigs.k8s.io/karpenter";

/// What is needed of it where it does not run, by file in the module.
const API: [&str; 2] = [
    "karpenter.sh_nodeclaims.yaml",
    "karpenter.sh_nodepools.yaml",
];

/// The class of nodes that its kwok provider knows.
const NODE_CLASS: &str = "../../../kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml";

/// How long it may take to come up: it fills its caches first.
const STARTUP: Duration = Duration::from_secs(60);

/// A running Karpenter. Killed when dropped.
#[derive(Debug)]
pub struct Karpenter {
    process: Process,
}

impl Karpenter {
    /// Starts it as the cluster's admin, whose resource definitions it brings, and waits until it is ready. What is in
    /// `environment` is set beside what it needs to run; `FEATURE_GATES` is an example.
    ///
    /// # Errors
    ///
    /// When it has not been built, or does not get ready.
    pub async fn start(cluster: &Cluster, environment: &[(&str, &str)]) -> Result<Self> {
        let files: Vec<&str> = API.into_iter().chain([NODE_CLASS]).collect();
        cluster.install_from_karpenter(&files).await?;
        let probes = ports::free()?;
        let mut command = Command::new(binary()?);
        command
            .current_dir(cluster.folder())
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("SYSTEM_NAMESPACE", "kube-system")
            .env("DISABLE_LEADER_ELECTION", "true")
            .env("METRICS_PORT", ports::free()?.to_string())
            .env("HEALTH_PROBE_PORT", probes.to_string())
            .envs(environment.iter().copied());
        let log = cluster.folder().join(format!("karpenter-{probes}.log"));
        let process = Process::start("karpenter", command, log, cluster.lifetime())?;
        let mut karpenter = Self { process };
        let address = (std::net::Ipv4Addr::LOCALHOST, probes).into();
        eventually("Karpenter is ready", STARTUP, async || {
            karpenter.process.ensure_running()?;
            Ok(get(address, "/readyz")
                .await
                .is_ok_and(|(status, _)| status == 200))
        })
        .await?;
        Ok(karpenter)
    }

    /// What it has printed so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }
}

fn binary() -> Result<PathBuf> {
    let module = GoModule::karpenter()?;
    let folder = module
        .built()
        .context("Karpenter has not been built yet; type: make karpenter")?;
    Ok(folder.join("karpenter"))
}

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
        self.install_from_karpenter(&API).await
    }

    async fn install_from_karpenter(&self, files: &[&str]) -> Result<()> {
        let folder = tokio::task::spawn_blocking(crds)
            .await
            .context("looking for Karpenter's resource definitions")??;
        for file in files {
            let file = folder.join(file);
            let file = file.to_string_lossy();
            self.kubectl(&["apply", "--server-side", "-f", &file])
                .await
                .context("installing Karpenter's resource definitions")?;
            let established = "--for=condition=Established";
            self.kubectl(&["wait", established, "--timeout=30s", "-f", &file])
                .await
                .context("waiting for Karpenter's resource definitions")?;
        }
        Ok(())
    }
}
