//! The `bench` command: what a controller takes from cause to effect, and what it costs, on a real control plane.

use std::process::ExitCode;
use std::thread;

use anyhow::Result;
use clap::Parser;
use nodegate_bench::{Phase, Plan, Recipe, Results, Run, markdown, run};
use testkit::nodegate::process::unless_interrupted;
use tokio::time::Instant;

/// Measures a controller from outside, on a Kubernetes control plane of its own for each number of nodes.
///
/// etcd and API server are real; this client plays kubelets, reporters and workload controllers, and measures by what
/// watches show. Before the controller starts, the client makes the controller's writes itself: that is the limit which
/// the phases are compared with, so that figures of different machines can be.
#[derive(Parser)]
struct Cli {
    /// How many nodes there are: one run for each number
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "300,1000",
          value_parser = clap::value_parser!(u32).range(1..=50_000))]
    nodes: Vec<u32>,

    /// What is measured, in this order; all of it if not given
    #[arg(long, value_name = "PHASES", value_delimiter = ',')]
    phases: Vec<Phase>,

    /// How often everything is measured: tables then give medians and ranges
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// Fewer flips, shorter waits: to see that everything works
    #[arg(long)]
    quick: bool,

    /// Shell command of another controller, which finds the cluster by $KUBECONFIG and may do everything there
    #[arg(long, value_name = "COMMAND")]
    controller: Option<String>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let recipe = Recipe::new(cli.controller.clone())?;
    let mut results = Results {
        controller: recipe.name(),
        machine: machine(),
        runs: Vec::new(),
    };
    let measuring = Box::pin(measure(&cli, &recipe, &mut results.runs));
    let ended = unless_interrupted(measuring).await?;
    results.runs.sort_by_key(|run| run.nodes);
    // Also what was measured before an error.
    if !results.runs.is_empty() {
        println!("{}", markdown(&results));
    }
    let Some(ended) = ended else {
        eprintln!("\ninterrupted; the cluster is gone");
        return Ok(ExitCode::from(130));
    };
    ended?;
    let wrong = results.runs.iter().flat_map(|run| &run.outcomes);
    let wrong = wrong.filter(|outcome| outcome.missed > 0 || !outcome.faults.is_empty());
    Ok(match wrong.count() {
        0 => ExitCode::SUCCESS,
        count => {
            eprintln!("{count} phases did not end as they should have");
            ExitCode::FAILURE
        }
    })
}

/// Adds a run for each round and number of nodes.
async fn measure(cli: &Cli, recipe: &Recipe, runs: &mut Vec<Run>) -> Result<()> {
    let mut phases = cli.phases.clone();
    if phases.is_empty() {
        phases = Phase::all();
    }
    phases.sort_unstable();
    phases.dedup();
    let plan = if cli.quick {
        Plan::quick(phases)
    } else {
        Plan::full(phases)
    };
    let mut sizes = cli.nodes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let started = Instant::now();
    // Round by round, so that a slow period of the machine does not slow a single size.
    for round in 1..=cli.runs {
        for nodes in &sizes {
            let tell = |text: &str| {
                let seconds = started.elapsed().as_secs();
                let round = if cli.runs > 1 {
                    format!("run {round} of {}, ", cli.runs)
                } else {
                    String::new()
                };
                eprintln!(
                    "[{:3}:{:02}] {round}{nodes} nodes, {text}",
                    seconds / 60,
                    seconds % 60
                );
            };
            runs.push(run(&plan, recipe, (*nodes).try_into()?, tell).await?);
        }
    }
    Ok(())
}

/// A description of the machine.
fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!("with control plane, controller and client together on {cores} cores")
}
