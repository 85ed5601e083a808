//! How many instructions the decision for one node takes when nothing changes. Unlike time, that does not depend on the machine
//! or its load, so each case has a bound, and exceeding one fails the command.
//!
//! `make bench W=instructions` counts them with valgrind, which must be installed. The bounds apply to an unoptimized build,
//! which the tests need anyway; `cargo bench --bench instructions` shows an optimized one for comparison.

mod world;

use std::process::{Command, ExitCode};

use world::{Source, World};

/// A node and its rules.
struct Case {
    name: &'static str,
    rules: usize,
    source: Source,
    ready: bool,
    /// The most instructions of one decision in an unoptimized build: about a tenth above the measured count.
    bound: u64,
}

const CASES: [Case; 6] = [
    case("released, one rule", 1, Source::Reported, true, 47_000),
    case("held, one rule", 1, Source::Reported, false, 66_000),
    case("released, ten rules", 10, Source::Reported, true, 217_000),
    case("held, ten rules", 10, Source::Reported, false, 505_000),
    case(
        "released, three critical pods",
        1,
        Source::Critical,
        true,
        132_000,
    ),
    case(
        "held, three critical pods",
        1,
        Source::Critical,
        false,
        157_000,
    ),
];

/// Two numbers of decisions: their difference excludes startup and exit.
const DECISIONS: [u64; 2] = [10, 110];

const fn case(name: &'static str, rules: usize, source: Source, ready: bool, bound: u64) -> Case {
    Case {
        name,
        rules,
        source,
        ready,
        bound,
    }
}

fn main() -> ExitCode {
    // Valgrind runs this binary with a case and a number of decisions.
    let mut arguments = std::env::args().skip(1).filter_map(|it| it.parse().ok());
    if let (Some(case), Some(decisions)) = (arguments.next(), arguments.next()) {
        decide(&CASES[case], decisions);
        return ExitCode::SUCCESS;
    }
    let mut exceeded = false;
    for (index, case) in CASES.iter().enumerate() {
        let [few, many] = DECISIONS;
        let each = match (count(index, few), count(index, many)) {
            (Ok(before), Ok(after)) => (after - before) / (many - few),
            (Err(problem), _) | (_, Err(problem)) => {
                eprintln!("cannot count instructions: {problem}");
                return ExitCode::FAILURE;
            }
        };
        let bound = cfg!(debug_assertions).then_some(case.bound);
        let is_too_many = bound.is_some_and(|bound| each > bound);
        exceeded |= is_too_many;
        println!(
            "{:<28}{each:>9} instructions{}{}",
            case.name,
            bound.map_or_else(String::new, |bound| format!(", at most {bound}")),
            if is_too_many { "  TOO MANY" } else { "" }
        );
    }
    if exceeded {
        eprintln!(
            "a decision takes more than it did: mend it, or say in the commit why its bound rises"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn decide(case: &Case, decisions: usize) {
    let world = World::new(case.rules, case.source, case.ready, !case.ready);
    for _ in 0..decisions {
        std::hint::black_box(world.plan());
    }
}

/// Instructions of a whole process that makes this many decisions.
fn count(case: usize, decisions: u64) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args([case.to_string(), decisions.to_string()])
        .output()
        .map_err(|error| format!("{error} (install valgrind)"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    // The last line is "==PID== Collected : N".
    let collected = said
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1));
    let counted = collected.and_then(|count| count.trim().parse().ok());
    counted.ok_or_else(|| format!("valgrind said: {said}"))
}
