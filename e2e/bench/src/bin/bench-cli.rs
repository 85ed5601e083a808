//! The `bench-cli` command: what the commands of `kubectl nodegate` cost, on a real control plane.

use std::process::ExitCode;
use std::thread;

use anyhow::Result;
use clap::Parser;
use nodegate_bench::{ask, costs};
use testkit::nodegate::process::unless_interrupted;

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
    let tell = |text: &str| eprintln!("{} nodes: {text}", cli.nodes);
    let asked = Box::pin(ask(usize::try_from(cli.nodes)?, tell));
    let Some(all) = unless_interrupted(asked).await? else {
        eprintln!("interrupted; the cluster is gone");
        return Ok(ExitCode::from(130));
    };
    let all = all?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{} nodes, everything together on {cores} cores\n",
        cli.nodes
    );
    println!("{}", costs(&all));
    Ok(ExitCode::SUCCESS)
}
