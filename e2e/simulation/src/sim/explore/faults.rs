//! The faults that a scenario can meet: every single one, and several by chance.

use crate::sim::fault::{Fault, Incident, Side, Trouble, Watch};
use crate::sim::rng::Rng;
use crate::sim::run::Outcome;
use crate::sim::scenario::Scenario;
use crate::sim::time::{Time, ms, s};

/// How long a killed process stays down.
const DOWN: Time = s(2);
/// How many times of each scenario are tried for timed faults.
const TIMES: u32 = 8;
/// The most faults in a schedule by chance.
const MOST: usize = 5;
/// Usual lengths of lasting faults, close to the product's own timeouts.
const LENGTHS: [Time; 7] = [s(1), s(4), s(9), s(14), s(19), s(30), s(70)];

/// Every single fault of a scenario: at each write, at each event, and timed faults at several times. `quiet` is its outcome
/// without faults.
pub fn singles(scenario: &Scenario, quiet: &Outcome) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (instance, count) in quiet.writes.iter().enumerate() {
        faults.extend((0..*count).flat_map(|write| at_write(instance, write)));
    }
    for (&(instance, watch), count) in &quiet.events {
        faults.extend((0..*count).map(|event| Fault::Unobserved {
            instance,
            watch,
            event,
        }));
    }
    for index in 0..TIMES {
        // The offset avoids whole seconds, at which other things happen.
        let at = scenario.lasts / TIMES * index + ms(1700);
        for watch in watches(quiet) {
            faults.extend(of_watch(watch, at));
        }
        for instance in 0..scenario.instances {
            faults.extend(of_instance(instance, at));
        }
        faults.extend(Trouble::ALL.map(|trouble| Incident::Storm(trouble).at(at, s(8))));
        if scenario.instances > 1 {
            faults.push(Incident::TwoLeaders.at(at, s(6)));
            faults.push(Incident::LeaseDeleted.at(at, s(0)));
        }
    }
    faults
}

/// The watches of the first instance.
fn watches(quiet: &Outcome) -> impl Iterator<Item = Watch> {
    let first = quiet.events.keys().filter(|(instance, _)| *instance == 0);
    first.map(|(_, watch)| *watch)
}

fn at_write(instance: usize, write: usize) -> [Fault; 4] {
    let kill = |side| Fault::Kill {
        instance,
        write,
        side,
        down: DOWN,
    };
    let lost = |done| Fault::AnswerLost {
        instance,
        write,
        done,
    };
    [
        kill(Side::Before),
        kill(Side::After),
        lost(true),
        lost(false),
    ]
}

fn of_watch(watch: Watch, at: Time) -> Vec<Fault> {
    let mut faults = vec![
        Incident::Expired(watch).at(at, s(0)),
        Incident::SilentDeath(watch).at(at, s(0)),
        Incident::WatchDelay(watch, s(4)).at(at, s(10)),
    ];
    for lasts in [s(5), s(18), s(45)] {
        faults.push(Incident::Stale(watch).at(at, lasts));
        faults.push(Incident::Lagging(watch).at(at, lasts));
        faults.push(Incident::StaleStart(watch).at(at, lasts));
    }
    faults
}

fn of_instance(instance: usize, at: Time) -> Vec<Fault> {
    let mut faults = vec![Incident::Stop(instance).at(at, DOWN)];
    for by in [-3600, -30, 30, 3600] {
        faults.push(Incident::ClockStep(instance, by).at(at, s(0)));
    }
    for lasts in [s(3), s(12), s(60)] {
        faults.push(Incident::Suspend(instance).at(at, lasts));
        faults.push(Incident::Freeze(instance).at(at, lasts));
        faults.push(Incident::Partition(instance).at(at, lasts));
    }
    faults
}

/// One to five faults of a scenario by chance. `quiet` is its outcome without faults.
pub(super) fn by_chance(scenario: &Scenario, quiet: &Outcome, rng: &mut Rng) -> Vec<Fault> {
    let count = 1 + rng.below(MOST);
    let mut faults = Vec::new();
    while faults.len() < count {
        faults.extend(any(scenario, quiet, rng));
    }
    faults
}

fn any(scenario: &Scenario, quiet: &Outcome, rng: &mut Rng) -> Option<Fault> {
    let watches: Vec<Watch> = watches(quiet).collect();
    let instance = rng.below(scenario.instances);
    let at = rng.between(ms(0), scenario.lasts);
    let length = *rng.pick(&LENGTHS);
    let lasts = rng.between(length / 2, length * 3 / 2);
    let watch = *rng.pick(&watches);
    let writes: usize = quiet.writes.iter().sum();
    let write = rng.below(writes + writes / 4 + 1);
    Some(match rng.below(18) {
        0 | 1 => Fault::Kill {
            instance,
            write,
            side: *rng.pick(&[Side::Before, Side::After]),
            down: *rng.pick(&[s(1), s(5), s(20)]),
        },
        2 => Incident::Stop(instance).at(at, DOWN),
        3 | 4 => Fault::Unobserved {
            instance,
            watch,
            event: rng.below(quiet.events.get(&(instance, watch)).copied().unwrap_or(0) + 1),
        },
        5 => Incident::Stale(watch).at(at, lasts),
        6 if scenario.instances > 1 => Incident::StaleStart(watch).at(at, lasts),
        7 => Fault::AnswerLost {
            instance,
            write,
            done: rng.chance(50),
        },
        8 => {
            let by = *rng.pick(&[-86_400, -3600, -60, -10, 10, 60, 3600, 86_400]);
            Incident::ClockStep(instance, by).at(at, s(0))
        }
        9 => Incident::Suspend(instance).at(at, lasts),
        10 => Incident::Freeze(instance).at(at, lasts),
        11 if scenario.instances > 1 => Incident::TwoLeaders.at(at, lasts),
        12 => Incident::Partition(instance).at(at, lasts),
        13 => Incident::Storm(*rng.pick(&Trouble::ALL)).at(at, lasts),
        14 => Incident::WatchDelay(watch, rng.between(ms(500), s(10))).at(at, lasts),
        15 if rng.chance(50) => Incident::Expired(watch).at(at, s(0)),
        15 => Incident::SilentDeath(watch).at(at, s(0)),
        16 => Incident::Lagging(watch).at(at, lasts),
        17 if scenario.instances > 1 => Incident::LeaseDeleted.at(at, s(0)),
        _ => return None,
    })
}
