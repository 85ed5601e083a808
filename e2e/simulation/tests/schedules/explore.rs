//! A minute of the simulation: every scenario without faults, then several random faults, different each time. `LAB_SEED` fixes
//! the seed and the number of schedules; `make lab` runs for longer.

use std::time::{Duration, Instant};

use nodegate_simulation::sim::defect::quiet_panics;
use nodegate_simulation::sim::explore::{Explorer, new_seed};
use nodegate_simulation::sim::scenarios;

/// How long new schedules are tried.
const LASTS: Duration = Duration::from_secs(60);
/// How many schedules of a given seed are tried.
const SCHEDULES: usize = 1000;
/// The variable that fixes the seed.
const SEED: &str = "LAB_SEED";

#[test]
fn no_law_is_broken_whatever_goes_wrong() {
    quiet_panics();
    let given = std::env::var(SEED).ok();
    let given = given.map(|seed| seed.parse().expect("LAB_SEED is a number"));
    let seed = given.unwrap_or_else(new_seed);
    println!("seed {seed}");
    let until = given.is_none().then(|| Instant::now() + LASTS);
    let mut explorer = Explorer::new(scenarios::all(), until, |_, _, _| {});
    explorer.quiet(seed);
    if given.is_some() {
        explorer.most = SCHEDULES;
    }
    explorer.chance(seed);
    let findings: Vec<_> = explorer.findings().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "seed {seed}\n{}", findings.join("\n"));
}
