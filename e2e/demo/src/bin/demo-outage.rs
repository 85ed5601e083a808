//! The `demo-outage` command: an incident in a real control plane, with and without a disruption limit.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use nodegate_demo::outage;
use nodegate_demo::stage::{Play, perform};
use nodegate_testbed::Options;

/// Shows what a disruption limit is good for, in about a minute, on a real etcd and API server.
///
/// Nodes in three zones are watched by two rules that differ in spec.disruption alone. What reports on the nodes breaks:
/// for one node, for a zone, for all zones; then it is mended. You see what either rule closes, what is held back, and why.
///
/// The demo asserts what it shows: it ends with exit code 0 when all of it really happened, and with 1 when not.
#[derive(Parser)]
#[command(
    after_help = "In a terminal it draws a table (no colours where NO_COLOR is set); elsewhere it writes a \
line for each node that the limited rule closes.\nCtrl-C ends it and takes the cluster down."
)]
struct Cli {
    /// Leave control plane and controller running at the end, and say how to reach and how to end them.
    #[arg(long)]
    keep: bool,

    /// How many nodes each of the three zones has.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u8).range(8..=50))]
    nodes_per_zone: u8,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let play = Play {
        opening: "A Kubernetes control plane starts: etcd and API server are real, the nodes are simulated.",
        cluster: Options::api_only(),
        keep: cli.keep,
        look: "kubectl describe nodereadinessrules",
        point_on: "How it works: docs/disruption.md. A rule to start from: examples/disruption/.",
    };
    let nodes_per_zone = cli.nodes_per_zone.into();
    perform(play, async |show, cluster, controller| {
        outage::tell(show, cluster, controller, nodes_per_zone).await
    })
    .await
}
