//! A thousand random worlds, with fixed seeds, break no law.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nodegate_simulation::sim::run::run;
use nodegate_simulation::sim::scenarios::WORLD;

/// The number of worlds, unless [`VARIABLE`] sets it.
const WORLDS: u64 = 1000;
const VARIABLE: &str = "LAB_WORLDS";

#[test]
fn a_thousand_worlds_break_no_law() {
    let worlds = std::env::var(VARIABLE).ok();
    let worlds = worlds.map_or(WORLDS, |it| it.parse().expect("LAB_WORLDS is a number"));
    let (next, broken) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let seed = next.fetch_add(1, Ordering::Relaxed)
            && seed < worlds
        {
            let outcome = run(&WORLD, seed, &[], false);
            if let Some(violation) = outcome.violation {
                let mut broken = broken.lock().unwrap_or_else(PoisonError::into_inner);
                broken.push(format!(
                    "seed {seed}: {}: {}",
                    violation.law, violation.what
                ));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(
        broken.is_empty(),
        "{} of {worlds}\n{}",
        broken.len(),
        broken.join("\n")
    );
}
