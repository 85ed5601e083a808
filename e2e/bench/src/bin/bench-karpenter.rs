//! The `bench-karpenter` command: what a real Karpenter launches for a burst of pods while readiness taints are on its nodes.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use nodegate_bench::karpenter::{Burst, Outcome, Setup, plot, run, table};

/// Lets a burst of pods meet a real Karpenter, once for each way in which its nodes can get a rule's taint, each time in a
/// cluster of its own.
///
/// Karpenter, control plane, scheduler and Nodegate are real; kwok plays the kubelets, and a critical component that gets
/// Ready some seconds after its node.
#[derive(Parser)]
struct Cli {
    /// How many pods come at once
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pods: u16,

    /// How often each is measured
    #[arg(long, default_value_t = 3)]
    runs: usize,

    /// Which set-ups; all of them if not given
    #[arg(long, value_delimiter = ',')]
    setups: Vec<Setup>,

    /// Folder for results.json and the plot; without it the table goes to standard output alone
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Measure nothing: make table and plot from this results.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pods", "runs", "setups"])]
    from: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let outcome = match &cli.from {
        Some(file) => {
            let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
            serde_json::from_slice(&text)
                .with_context(|| format!("understanding {}", file.display()))?
        }
        None => measure(&cli).await?,
    };
    println!("{}", table(&outcome));
    if let Some(folder) = &cli.out {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let json = serde_json::to_string(&outcome).context("forming results.json")? + "\n";
        for (name, content) in [("results.json", json), ("burst.svg", plot(&outcome))] {
            let path = folder.join(name);
            fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        }
        eprintln!("written to {}", folder.display());
    }
    Ok(())
}

async fn measure(cli: &Cli) -> Result<Outcome> {
    let burst = Burst::of(cli.pods.into());
    let mut setups = cli.setups.clone();
    if setups.is_empty() {
        setups = Setup::ALL.to_vec();
    }
    let started = Instant::now();
    let mut runs = Vec::new();
    for setup in setups {
        for number in 1..=cli.runs {
            let run = run(&burst, setup).await?;
            let seconds = started.elapsed().as_secs();
            eprintln!(
                "[{:3}:{:02}] {}, run {number}: {} NodeClaims, last pod after {:.0} s, {} too early",
                seconds / 60,
                seconds % 60,
                setup.name(),
                run.launched,
                run.last,
                run.early
            );
            runs.push(run);
        }
    }
    Ok(Outcome { burst, runs })
}
