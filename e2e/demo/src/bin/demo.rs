//! The `demo` command: Nodegate at work in a real control plane, as a story on the screen.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use nodegate_demo::rollout;
use nodegate_demo::stage::{Play, perform};
use nodegate_testbed::{ControllerManager, Options};

/// The interval of the kubelets' heartbeats. The node lifecycle controller runs, with a grace period of 40 s.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Shows what Nodegate does, in about 40 seconds, on a Kubernetes control plane of its own.
///
/// etcd, API server, controller manager and scheduler are real; kwok plays the kubelets. Nodes join with a taint, critical
/// components (a CNI, a CSI driver) roll out, and a workload waits. You see each node released once its critical components
/// are there, and the workload land on released nodes only. Then a CNI pod breaks, and its node is gated and released again.
///
/// The demo asserts what it shows: it ends with exit code 0 when all of it really happened, and with 1 when not.
#[derive(Parser)]
#[command(
    after_help = "In a terminal it draws a table (no colours where NO_COLOR is set); elsewhere it writes a \
line for each change.\nCtrl-C ends it and takes the cluster down."
)]
struct Cli {
    /// Leave control plane and controller running at the end, and say how to reach and how to end them.
    #[arg(long)]
    keep: bool,

    /// How many nodes join.
    #[arg(long, value_name = "NUMBER", default_value_t = 6, value_parser = clap::value_parser!(u8).range(2..=15))]
    nodes: u8,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let play = Play {
        opening: "A Kubernetes control plane starts: etcd, API server, controller manager and scheduler are real, kwok plays \
                  the kubelets.",
        cluster: Options {
            controller_manager: ControllerManager::Complete,
            kwok: Some(HEARTBEAT),
            reuse: false,
            ..Options::full()
        },
        keep: cli.keep,
        look: "kubectl get nodereadinessrules,nodes,pods -A -o wide",
        point_on: "To try it on a cluster of yours: README.md. Rules for your case: examples/.",
    };
    let nodes = cli.nodes.into();
    perform(play, async |show, cluster, controller| {
        rollout::tell(show, cluster, controller, nodes).await
    })
    .await
}
