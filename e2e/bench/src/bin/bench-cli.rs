//! The `bench-cli` command: what the commands of `kubectl nodegate` cost, on a real control plane.

use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result};
use clap::Parser;
use nodegate_bench::{ask, costs};
use tokio::signal::unix::{SignalKind, signal};

/// Measures the time, the memory and the requests of each command of kubectl nodegate, on a Kubernetes control plane of its own
/// whose nodes have three critical pods each.
#[derive(Parser)]
struct Cli {
    /// How many nodes there are
    #[arg(long, value_name = "NUMBER", default_value = "5000", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    nodes: u32,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    // A signal only ends the wait below, so that the cluster shuts down in order.
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let tell = |text: &str| eprintln!("{} nodes: {text}", cli.nodes);
    let all = tokio::select! {
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        all = ask(usize::try_from(cli.nodes)?, tell) => Some(all?),
    };
    let Some(all) = all else {
        eprintln!("interrupted; the cluster is gone");
        return Ok(ExitCode::from(130));
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{} nodes, everything together on {cores} cores\n",
        cli.nodes
    );
    println!("{}", costs(&all));
    Ok(ExitCode::SUCCESS)
}
