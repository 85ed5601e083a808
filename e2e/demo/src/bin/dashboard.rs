//! The `dashboard` command: draws what the Grafana dashboard shows.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// Draws the panels of config/prometheus/dashboard.json as dashboard.svg: what its own queries yield in a real Prometheus, which
/// scrapes two instances of the controller on a Kubernetes control plane of their own.
#[derive(Parser)]
struct Cli {
    /// The folder that this is written to.
    folder: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    nodegate_demo::dashboard::draw(&Cli::parse().folder).await
}
