//! The `bench-hollow` command: from a readiness probe to a lifted taint, with hollow kubelets.

use anyhow::Result;
use clap::Parser;

/// Measure the way from a kubelet's readiness probe to a lifted taint, with hollow kubelets on a real control plane.
#[derive(Parser)]
struct Cli {
    /// How many kubelets.
    #[arg(long, default_value_t = 50)]
    nodes: usize,
    /// How often all of them are opened.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    nodegate_bench::hollow::run(cli.nodes, cli.rounds).await
}
