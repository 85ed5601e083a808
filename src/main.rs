//! The `nodegate` command line.

use std::io::Write;

use clap::{Parser, Subcommand};

/// Keeps pods off Kubernetes nodes until everything the node needs is really there.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the custom resource definition of rules as YAML, for kubectl.
    Crd,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Crd => std::io::stdout().write_all(nodegate::api::crd_yaml()?.as_bytes())?,
    }
    Ok(())
}
