//! The `recording` command: makes the recording that opens the README.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// Records `kubectl nodegate` on a Kubernetes control plane of its own, as recording.cast (asciicast v2) and recording.svg.
#[derive(Parser)]
struct Cli {
    /// The folder that these are written to.
    folder: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    nodegate_demo::recording::record(&Cli::parse().folder).await
}
