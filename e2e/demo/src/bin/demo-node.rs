//! The `demo-node` command: Nodegate and one real node, as a story on the screen.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kube_realnode::{inside, node};
use nodegate_demo::machine;
use nodegate_demo::stage::{Play, perform};

/// Shows what Nodegate does for one real node, in about a minute: a kubelet with containerd, runc, a CNI and a CSI driver, in
/// namespaces of their own, beside a real control plane.
///
/// The node registers closed and opens once its network and its driver are there. Its network dies, and it closes; it
/// reboots, and is closed until its pods are back. You see what the kubelet says about it all.
///
/// The demo asserts what it shows: it ends with exit code 0 when all of it really happened, and with 1 when not.
#[derive(Parser)]
#[command(
    after_help = "In a terminal it draws a table (no colours where NO_COLOR is set); elsewhere it writes a \
line for each change.\nCtrl-C ends it and everything with it."
)]
struct Cli {}

fn main() -> Result<ExitCode> {
    let Cli {} = Cli::parse();
    if !inside::is_inside() {
        let this = env::current_exe().context("asking for this executable's path")?;
        let error = inside::command(&[&this.to_string_lossy()])?.exec();
        return Err(error).context("entering namespaces");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let play = Play {
        opening: "In namespaces of its own, a Kubernetes control plane starts. The node will be real, too: a kubelet, containerd, \
                  runc.",
        cluster: node::options(),
        keep: false,
        look: "kubectl get nodes",
        point_on: "Many nodes, simulated: make demo. The tests on a real node: make test-node.",
    };
    runtime
        .context("starting a runtime")?
        .block_on(perform(play, async |show, cluster, controller| {
            Box::pin(machine::tell(show, cluster, controller)).await
        }))
}
