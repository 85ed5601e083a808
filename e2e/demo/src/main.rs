//! The `demo` command: a story about Nodegate in a terminal, on its own real control plane. It asserts what it shows.
//!
//! ```text
//! story     the steps
//! screen    what is said, and `kubectl nodegate` beside it
//! history   what watches saw meanwhile
//! checks    whether it happened
//! manifests rules, DaemonSets and workloads
//! ```

mod checks;
mod history;
mod manifests;
mod screen;
mod story;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use testkit::nodegate::process::unless_interrupted;
use testkit::nodegate::{Cluster, Controller, Options, has_failed, note_failure};

/// The interval of the kubelets' heartbeats. The node lifecycle controller runs, with a grace period of 40 s.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Shows what Nodegate does, in about a minute, on a Kubernetes control plane of its own.
///
/// etcd, API server, controller manager and scheduler are real; kwok plays the kubelets. Nodes join with a taint, critical
/// components (a CNI, a CSI driver) roll out, and a workload waits. `kubectl nodegate status --watch` shows each node released
/// once its critical components are there. Then a CNI pod breaks, and its node is gated and released again.
///
/// The demo asserts what it shows: it ends with exit code 0 when all of it really happened, and with 1 when not.
#[derive(Parser)]
#[command(after_help = "Without a terminal it writes a line for each change.\n\
                        Ctrl-C ends it and takes the cluster down.")]
struct Cli {
    /// Leave control plane and controller running at the end, and say how to reach and how to end them.
    #[arg(long)]
    keep: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    Ok(match unless_interrupted(Box::pin(run(&cli))).await? {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("\nThe demo failed: {error:#}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("\ninterrupted; the cluster is gone");
            ExitCode::from(130)
        }
    })
}

async fn run(cli: &Cli) -> Result<()> {
    println!(
        "A Kubernetes control plane starts: etcd, API server, controller manager and scheduler are real,\n\
         kwok plays the kubelets. The story takes about a minute."
    );
    let cluster = Cluster::start(Options {
        kwok: Some(HEARTBEAT),
        detachable: cli.keep,
        reuse: false,
        ..Options::complete()
    })
    .await?;
    // Declared after the cluster, so it drops first.
    let controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    let told = story::tell(&cluster).await;
    if told.is_ok() {
        println!("\nTo try it on a cluster of yours: README.md. Rules for your case: examples/.");
    } else if !has_failed() {
        note_failure();
    }
    if cli.keep {
        let controller = controller.leave_running();
        println!(
            "\nControl plane and controller are left running:\n\n{}# and the controller: kill -9 {controller}",
            cluster.leave_running()?
        );
    }
    told
}
