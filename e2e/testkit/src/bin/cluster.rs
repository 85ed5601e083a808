//! The `cluster` command: builds the control plane, and runs one by hand.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand, ValueEnum};
use testkit::kubernetes::binaries::{Binaries, Component};
use testkit::kubernetes::go_module::{self, GoModule};
use testkit::kubernetes::process::unless_interrupted;
use testkit::kubernetes::{Cluster, Options, helm};

/// A real Kubernetes control plane for tests, benchmarks and experiments: etcd, API server, controller manager,
/// scheduler, and kwok as the kubelet of every node annotated `kwok.x-k8s.io/node=fake`.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// Build programs from their Go modules, one after the other, unless they are in the cache already.
    Build {
        #[arg(value_enum, default_value = "control-plane")]
        programs: Vec<Program>,
    },
    /// Run kubectl as it was built.
    Kubectl {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run Helm as it was built.
    Helm {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a cluster until Ctrl-C.
    ///
    /// Pods of `DaemonSets` and bare pods run on kwok's nodes. The annotation `testkit/ready-after` on a node or pod
    /// says how long it takes to get Ready: `5s`, or `never`.
    Up {
        /// Apply this kustomization or these manifests, as `kubectl apply` does; may be given again.
        #[arg(long, value_name = "PATH")]
        apply: Vec<PathBuf>,
        /// Copy the admin's kubeconfig to this file.
        #[arg(long, value_name = "PATH")]
        kubeconfig_out: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Program {
    /// etcd, the Kubernetes components and kwok.
    ControlPlane,
    CertManager,
    Helm,
    Karpenter,
    /// Prometheus and promtool.
    Prometheus,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match Cli::parse().job {
        Job::Build { programs } => programs.into_iter().try_for_each(build),
        Job::Kubectl { arguments } => {
            become_tool(&Binaries::locate()?.path(Component::Kubectl)?, &arguments)
        }
        Job::Helm { arguments } => become_tool(&helm::binary()?, &arguments),
        Job::Up {
            apply,
            kubeconfig_out,
        } => up(&apply, kubeconfig_out).await,
    }
}

fn build(program: Program) -> Result<()> {
    let module = match program {
        // A complete KUBEBUILDER_ASSETS spares the build, and so Go.
        Program::ControlPlane
            if Binaries::locate().is_ok_and(|binaries| binaries.are_complete()) =>
        {
            return Ok(());
        }
        Program::ControlPlane => GoModule::control_plane(),
        Program::CertManager => GoModule::read(&go_module::CERT_MANAGER),
        Program::Helm => GoModule::read(&go_module::HELM),
        Program::Karpenter => GoModule::read(&go_module::KARPENTER),
        Program::Prometheus => GoModule::read(&go_module::PROMETHEUS),
    };
    module?.build().map(drop)
}

/// Replaces this process with the tool; returns only if that fails.
fn become_tool(tool: &Path, arguments: &[String]) -> Result<()> {
    let error = Command::new(tool).args(arguments).exec();
    Err(error).with_context(|| format!("running {}", tool.display()))
}

async fn up(apply: &[PathBuf], kubeconfig_out: Option<PathBuf>) -> Result<()> {
    let options = Options {
        reuse: false,
        ..Options::full()
    };
    let running = async {
        let started = Instant::now();
        let cluster = Cluster::start(options).await?;
        for path in apply {
            cluster.apply_path(path).await?;
        }
        let kubeconfig = match kubeconfig_out {
            Some(path) => {
                fs::copy(cluster.kubeconfig(), &path)
                    .with_context(|| format!("writing {}", path.display()))?;
                path
            }
            None => cluster.kubeconfig(),
        };
        eprintln!(
            "up after {:.1} s, logs in {}",
            started.elapsed().as_secs_f32(),
            cluster.folder().display()
        );
        println!("export KUBECONFIG={}", kubeconfig.display());
        eprintln!("Ctrl-C ends it");
        std::future::pending::<Result<()>>().await
    };
    let ended = unless_interrupted(Box::pin(running)).await?;
    ended.unwrap_or(Ok(()))
}
