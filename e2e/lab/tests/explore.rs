//! A minute of the laboratory: every scenario with nothing going wrong, then several faults by chance, others each time.
//! `LAB_SEED` tries the same ones again; `make lab` goes on for longer.

use std::time::{Duration, Instant};

use nodegate_lab::sim::defect::quiet_panics;
use nodegate_lab::sim::explore::{Explorer, new_seed, pace};
use nodegate_lab::sim::machine::engine;
use nodegate_lab::sim::scenarios;

const LASTS: Duration = Duration::from_secs(60);
/// Names the seed of all chance.
const SEED: &str = "LAB_SEED";

#[test]
fn no_law_is_broken_whatever_goes_wrong() {
    quiet_panics();
    let seed = std::env::var(SEED).map_or_else(
        |_| new_seed(),
        |seed| seed.parse().expect("LAB_SEED is a number"),
    );
    println!("{SEED}={seed}");
    let began = Instant::now();
    let mut explorer = Explorer::new(scenarios::all(), &engine, Some(began + LASTS), |_, _, _| {});
    explorer.quiet(seed);
    explorer.chance(seed);
    let tally = explorer.tally();
    println!("{tally}\n{}", pace(tally.schedules(), began.elapsed()));
    let findings: Vec<_> = explorer.findings().map(ToString::to_string).collect();
    assert!(
        findings.is_empty(),
        "{SEED}={seed}\n{}",
        findings.join("\n")
    );
}
