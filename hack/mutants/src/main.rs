//! Changes the code that decides in small ways, and tells which unit tests notice: `make mutants`.
//!
//! A copy of the tree ([`tree`]) gets a switch for each mutant ([`sites`]) and is built once. Each test then runs alone, which tells
//! the switches that it passes, and each mutant in random order with the tests that pass its switch ([`run`]). What came of it is a
//! line of `target/mutants/matrix.jsonl`, and all lines are the [`matrix`]. Whoever runs this again goes on where it ended, until a
//! file of the tree changes.

mod matrix;
mod run;
mod sites;
mod tree;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::mem;
use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use serde::{Deserialize, Serialize};

use matrix::{Report, Trial};
use run::{Program, Test};
use sites::Mutant;
use tree::Tree;

/// Changes the code that decides in small ways, one at a time, and tells which unit tests notice
#[derive(Debug, Parser)]
struct Args {
    /// For how long mutants are tried; those of earlier runs count too
    #[arg(long, default_value_t = 420)]
    seconds: u64,

    /// The seed of the order in which they are tried
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Only the first so many of that order
    #[arg(long)]
    number: Option<usize>,

    /// Only those in files whose path starts like this, such as src/plan/taint.rs
    #[arg(long = "in", value_name = "PATH", default_value = "")]
    path: String,

    /// How many are tried at the same time; as many as there are processors unless it is given
    #[arg(long)]
    jobs: Option<NonZero<usize>>,

    /// Fails when fewer of them are noticed, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    at_least: usize,
}

/// What is found out before the first mutant is tried.
#[derive(Serialize, Deserialize)]
struct Prepared {
    /// Of all files.
    hash: u64,
    mutants: Vec<Mutant>,
    tests: Vec<Test>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    let folder = root.join("target/mutants");
    fs::create_dir_all(&folder)?;
    let jobs = args.jobs.or(thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZero::get);
    let Prepared {
        mut mutants, tests, ..
    } = prepare(&root, &folder, jobs)?;
    mutants.retain(|it| it.file.starts_with(&args.path));
    mutants.sort_by_cached_key(|it| hash(&(args.seed, it.to_string())));
    mutants.truncate(args.number.unwrap_or(mutants.len()));
    let until = Instant::now() + Duration::from_secs(args.seconds);
    try_until(until, &mutants, &tests, &folder, jobs)?;

    let chosen: BTreeSet<u32> = mutants.iter().map(|it| it.id).collect();
    let mut trials = matrix::read(&folder);
    trials.retain(|it| chosen.contains(&it.mutant.id));
    let report = Report {
        root: &root,
        mutants: &mutants,
        trials: &trials,
        tests: &tests,
    };
    print!("{report}");
    let rate = report.rate();
    if rate < args.at_least {
        eprintln!(
            "Tests notice {rate} % of the mutants, fewer than {} %",
            args.at_least
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the program and runs each test alone, unless that was done with the same files.
fn prepare(root: &Path, folder: &Path, jobs: usize) -> Result<Prepared> {
    let program = Program::new(folder);
    let tree = Tree::new(root, &program.copy)?;
    let hash = tree.hash()?;
    let file = folder.join("prepared.json");
    let earlier = fs::read(&file).unwrap_or_default();
    if let Ok(earlier) = serde_json::from_slice::<Prepared>(&earlier)
        && earlier.hash == hash
    {
        return Ok(earlier);
    }
    matrix::clear(folder)?;
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let (built, mutants) = tree.build(&root.join(target))?;
    fs::copy(built, &program.path)?;
    let names = program.tests()?;
    let tests = Mutex::new(Vec::new());
    in_parallel(names.iter(), jobs, folder, |name, folder| {
        match program.measure(name, folder)? {
            None => eprintln!("left out, it fails without a mutant: {name}"),
            Some(test) => locked(&tests).push(test),
        }
        Ok(())
    })?;
    let tests = mem::take(&mut *locked(&tests));
    let prepared = Prepared {
        hash,
        mutants,
        tests,
    };
    fs::write(file, serde_json::to_vec(&prepared)?)?;
    Ok(prepared)
}

/// Tries in turn the mutants that have not been tried yet, and writes at once what comes of each.
fn try_until(
    until: Instant,
    mutants: &[Mutant],
    tests: &[Test],
    folder: &Path,
    jobs: usize,
) -> Result<()> {
    let program = Program::new(folder);
    let tried = matrix::read(folder);
    let tried: BTreeSet<u32> = tried.iter().map(|trial| trial.mutant.id).collect();
    let left = mutants.iter().filter(|it| !tried.contains(&it.id));
    let left = left.take_while(|_| Instant::now() < until);
    let matrix = Mutex::new(matrix::open(folder)?);
    in_parallel(left, jobs, folder, |mutant, scratch| {
        let tests = tests.iter().filter(|it| it.passes.contains(&mutant.id));
        let (slow, quick): (Vec<_>, Vec<_>) = tests.partition(|it| it.is_slow());
        let mut outcome = program.try_mutant(mutant.id, &quick, scratch)?;
        if outcome.failed.is_empty() {
            outcome = program.try_mutant(mutant.id, &slow, scratch)?;
        }
        if outcome.failed.is_empty() {
            eprintln!("no test notices {mutant}");
        }
        let trial = Trial {
            mutant: mutant.clone(),
            tests: quick.len() + slow.len(),
            noticed: outcome.failed,
            hangs: outcome.hangs,
        };
        let line = serde_json::to_string(&trial)? + "\n";
        Ok(locked(&matrix).write_all(line.as_bytes())?)
    })
}

/// Does something with each item, several at a time. Each worker has a folder of its own in `folder`.
fn in_parallel<T>(
    items: impl Iterator<Item = T> + Send,
    jobs: usize,
    folder: &Path,
    work: impl Fn(T, &Path) -> Result<()> + Sync,
) -> Result<()> {
    let items = Mutex::new(items);
    let next = || locked(&items).next();
    let worker = |number: usize| -> Result<()> {
        let folder = folder.join(number.to_string());
        fs::create_dir_all(&folder)?;
        while let Some(item) = next() {
            work(item, &folder)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let worker = &worker;
        let workers = (0..jobs).map(|number| scope.spawn(move || worker(number)));
        let workers: Vec<_> = workers.collect();
        let mut results = workers
            .into_iter()
            .map(|it| it.join().expect("no worker panics"));
        results.find(Result::is_err).unwrap_or(Ok(()))
    })
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hash(it: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    it.hash(&mut hasher);
    hasher.finish()
}
