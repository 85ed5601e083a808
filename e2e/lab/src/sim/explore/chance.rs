//! Random faults.

use crate::sim::fault::{Fault, Side, Trouble, Watch};
use crate::sim::rng::Rng;
use crate::sim::run::Outcome;
use crate::sim::scenario::Scenario;
use crate::sim::time::{Time, ms, s};

/// The most faults in a schedule.
const MOST: usize = 5;
/// Usual lengths of lasting faults, close to the product's own timeouts.
const LENGTHS: [Time; 7] = [s(1), s(4), s(9), s(14), s(19), s(30), s(70)];

/// One to five faults of a scenario. `quiet` is its outcome without faults.
#[must_use]
pub(super) fn faults(scenario: &Scenario, quiet: &Outcome, rng: &mut Rng) -> Vec<Fault> {
    let count = 1 + rng.below(MOST);
    let mut faults = Vec::new();
    while faults.len() < count {
        faults.extend(fault(scenario, quiet, rng));
    }
    faults
}

fn fault(scenario: &Scenario, quiet: &Outcome, rng: &mut Rng) -> Option<Fault> {
    let watches: Vec<Watch> = quiet
        .events
        .keys()
        .filter(|(instance, _)| *instance == 0)
        .map(|(_, watch)| *watch)
        .collect();
    let instance = rng.below(scenario.instances);
    let at = rng.between(ms(0), scenario.lasts);
    let length = *rng.pick(&LENGTHS);
    let lasts = rng.between(length / 2, length * 3 / 2);
    let watch = *rng.pick(&watches);
    let writes: usize = quiet.writes.iter().sum();
    let write = rng.below(writes + writes / 4 + 1);
    Some(match rng.below(17) {
        0 | 1 => Fault::Kill {
            instance,
            write,
            side: *rng.pick(&[Side::Before, Side::After]),
            down: *rng.pick(&[s(1), s(5), s(20)]),
        },
        2 => Fault::Stop {
            instance,
            at,
            down: s(2),
        },
        3 | 4 => Fault::Unobserved {
            instance,
            watch,
            event: rng.below(quiet.events.get(&(instance, watch)).copied().unwrap_or(0) + 1),
        },
        5 => Fault::Stale { watch, at, lasts },
        6 if scenario.instances > 1 => Fault::StaleStart { watch, at, lasts },
        7 => Fault::AnswerLost {
            instance,
            write,
            done: rng.chance(50),
        },
        8 => Fault::ClockStep {
            instance,
            at,
            by: *rng.pick(&[-86_400, -3600, -60, -10, 10, 60, 3600, 86_400]),
        },
        9 => Fault::Suspend {
            instance,
            at,
            lasts,
        },
        10 => Fault::Freeze {
            instance,
            at,
            lasts,
        },
        11 if scenario.instances > 1 => Fault::TwoLeaders { at, lasts },
        12 => Fault::Partition {
            instance,
            at,
            lasts,
        },
        13 => Fault::Storm {
            trouble: *rng.pick(&Trouble::ALL),
            at,
            lasts,
        },
        14 => Fault::WatchDelay {
            watch,
            at,
            lasts,
            by: rng.between(ms(500), s(10)),
        },
        16 => Fault::Lagging { watch, at, lasts },
        15 if rng.chance(50) => Fault::Expired { watch, at },
        15 => Fault::SilentDeath { watch, at },
        _ => return None,
    })
}
