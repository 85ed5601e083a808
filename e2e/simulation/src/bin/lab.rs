//! Runs the simulation: `lab --help`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use nodegate_simulation::sim::defect::quiet_panics;
use nodegate_simulation::sim::explore::{Explorer, Tally, new_seed, pace};
use nodegate_simulation::sim::scenario::Scenario;
use nodegate_simulation::sim::scenarios;
use nodegate_simulation::sim::script::Script;
use nodegate_simulation::sim::trace::Trace;

/// Runs Nodegate's engine in simulated clusters in which things go wrong, and tells which laws that breaks.
///
/// First every scenario runs with nothing going wrong, then with several faults by chance until the time is up.
#[derive(Debug, Parser)]
struct Args {
    /// For how long schedules are tried
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// The seed of all chance; another one each time unless it is given
    #[arg(long)]
    seed: Option<u64>,

    /// Only the scenario of this name, or else those whose names contain this
    #[arg(long, default_value = "")]
    scenario: String,

    /// Stops as soon as this law is broken
    #[arg(long, value_name = "LAW")]
    until_broken: Option<String>,

    /// Tries every single fault of every scenario first, however long it takes
    #[arg(long)]
    exhaustive: bool,

    /// Lists the scenarios
    #[arg(long)]
    list: bool,

    /// Runs one schedule, as a finding is printed, and tells what happens in it
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = ["exhaustive", "list"])]
    replay: Option<Script>,

    /// Tells of a schedule that is replayed also what the instances are told and do
    #[arg(long, requires = "replay")]
    trace: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    quiet_panics();
    if let Some(script) = &args.replay {
        return replay(script, args.trace);
    }
    let seed = args.seed.unwrap_or_else(new_seed);
    let mut chosen = scenarios::all();
    let is_name = chosen.iter().any(|it| it.name() == args.scenario);
    chosen
        .retain(|it| it.name() == args.scenario || !is_name && it.name().contains(&args.scenario));
    if chosen.is_empty() {
        eprintln!("no scenario's name contains {:?}", args.scenario);
        return ExitCode::FAILURE;
    }
    if args.list {
        for scenario in chosen {
            println!("{}", scenario.title);
        }
        return ExitCode::SUCCESS;
    }
    explore(&args, chosen, seed)
}

fn explore(args: &Args, chosen: Vec<Scenario>, seed: u64) -> ExitCode {
    println!("seed {seed}");
    let began = Instant::now();
    let shows_progress = std::io::stderr().is_terminal();
    let mut told = began;
    let progress = |tally: &Tally, findings: usize, in_it: &Scenario| {
        if shows_progress && told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            let pace = pace(tally.schedules(), began.elapsed());
            eprint!("\r{pace}, {findings} findings, in {:40}", in_it.name());
            let _ = std::io::stderr().flush();
        }
    };
    let until = (!args.exhaustive).then(|| began + Duration::from_secs(args.seconds));
    let mut explorer = Explorer::new(chosen, until, progress);
    explorer.last.clone_from(&args.until_broken);
    explorer.quiet(seed);
    if args.exhaustive {
        explorer.singles(seed);
        explorer.until = Some(Instant::now() + Duration::from_secs(args.seconds));
    }
    explorer.chance(seed);
    let tally = &explorer.tally;
    println!("\n{tally}\n{}", pace(tally.schedules(), began.elapsed()));
    let mut is_good = true;
    for finding in explorer.findings() {
        is_good = false;
        println!("\n{finding}");
    }
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn replay(script: &Script, trace: bool) -> ExitCode {
    let outcome = script.run(trace);
    print!("{}", Trace(&outcome));
    match outcome.violation {
        Some(violation) => {
            println!(
                "{}, after {:?}: {}",
                violation.law, violation.at, violation.what
            );
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}
