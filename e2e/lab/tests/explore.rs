//! A part of the laboratory: every scenario with nothing going wrong, then several faults by chance. The same ones each time, or
//! those of another seed in `LAB_SEED`; `make lab` tries new ones.

use std::time::Instant;

use nodegate_lab::sim::defect::quiet_panics;
use nodegate_lab::sim::explore::{Explorer, pace};
use nodegate_lab::sim::machine::engine;
use nodegate_lab::sim::scenarios;

/// How many schedules are tried.
const SCHEDULES: usize = 1000;
/// Names the seed of all chance.
const SEED: &str = "LAB_SEED";

#[test]
fn no_law_is_broken_whatever_goes_wrong() {
    quiet_panics();
    let seed = std::env::var(SEED).map_or(7, |seed| seed.parse().expect("LAB_SEED is a number"));
    println!("{SEED}={seed}");
    let began = Instant::now();
    let mut explorer = Explorer::new(scenarios::all(), &engine, None, |_, _, _| {});
    explorer.quiet(seed);
    explorer.stop_after(SCHEDULES);
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
