//! Every single fault that a scenario can meet: at each write, at each event, and timed faults at several times.

use crate::sim::fault::{Fault, Side, Trouble, Watch};
use crate::sim::run::Outcome;
use crate::sim::scenario::Scenario;
use crate::sim::time::{Time, ms, s};

/// How long a killed process stays down.
pub const DOWN: Time = s(2);
/// How many times of each scenario are tried for timed faults.
const TIMES: u32 = 8;

/// Every single fault of a scenario. `quiet` is its outcome without faults.
#[must_use]
pub fn all(scenario: &Scenario, quiet: &Outcome) -> Vec<Fault> {
    let mut faults: Vec<_> = at_writes(quiet).collect();
    faults.extend(at_events(quiet));
    for at in times(scenario) {
        faults.extend(of_watches(quiet, at));
        for instance in 0..scenario.instances {
            faults.extend(of_instance(instance, at));
        }
        faults.extend(Trouble::ALL.map(|trouble| Fault::Storm {
            trouble,
            at,
            lasts: s(8),
        }));
        if scenario.instances > 1 {
            let lasts = s(6);
            faults.push(Fault::TwoLeaders { at, lasts });
        }
    }
    faults
}

/// One fault of each kind.
#[cfg(test)]
#[must_use]
pub fn examples() -> Vec<Fault> {
    use nodegate::condition::ComponentGroup;

    let mut faults: Vec<_> = at_write(1, 23).collect();
    for watch in Watch::KINDS {
        faults.extend(of_watch(watch, ms(1234)));
    }
    faults.extend(of_instance(1, ms(1500)));
    faults.extend(Trouble::ALL.map(|trouble| Fault::Storm {
        trouble,
        at: s(1),
        lasts: s(8),
    }));
    faults.push(Fault::TwoLeaders {
        at: s(1),
        lasts: s(2),
    });
    faults.push(Fault::Unobserved {
        instance: 1,
        watch: Watch::Pods(ComponentGroup::Named(1)),
        event: 7,
    });
    faults
}

fn times(scenario: &Scenario) -> impl Iterator<Item = Time> + use<> {
    let step = scenario.lasts / TIMES;
    // The offset avoids whole seconds, at which other things happen.
    (0..TIMES).map(move |index| step * index + ms(1700))
}

fn at_writes(quiet: &Outcome) -> impl Iterator<Item = Fault> + '_ {
    let writes = quiet.writes.iter().enumerate();
    writes
        .flat_map(|(instance, count)| (0..*count).flat_map(move |write| at_write(instance, write)))
}

fn at_write(instance: usize, write: usize) -> impl Iterator<Item = Fault> {
    let kill = move |side| Fault::Kill {
        instance,
        write,
        side,
        down: DOWN,
    };
    let lost = move |done| Fault::AnswerLost {
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
    .into_iter()
}

fn at_events(quiet: &Outcome) -> impl Iterator<Item = Fault> + '_ {
    quiet.events.iter().flat_map(|(&(instance, watch), count)| {
        (0..*count).map(move |event| Fault::Unobserved {
            instance,
            watch,
            event,
        })
    })
}

fn of_watches(quiet: &Outcome, at: Time) -> impl Iterator<Item = Fault> + '_ {
    let watches = quiet.events.keys().filter(|(instance, _)| *instance == 0);
    watches.flat_map(move |(_, watch)| of_watch(*watch, at))
}

fn of_watch(watch: Watch, at: Time) -> Vec<Fault> {
    let mut faults = vec![
        Fault::Expired { watch, at },
        Fault::SilentDeath { watch, at },
        Fault::WatchDelay {
            watch,
            at,
            lasts: s(10),
            by: s(4),
        },
    ];
    for lasts in [s(5), s(18), s(45)] {
        faults.push(Fault::Stale { watch, at, lasts });
        faults.push(Fault::Lagging { watch, at, lasts });
        faults.push(Fault::StaleStart { watch, at, lasts });
    }
    faults
}

fn of_instance(instance: usize, at: Time) -> Vec<Fault> {
    let mut faults = vec![Fault::Stop {
        instance,
        at,
        down: DOWN,
    }];
    for by in [-3600, -30, 30, 3600] {
        faults.push(Fault::ClockStep { instance, at, by });
    }
    for lasts in [s(3), s(12), s(60)] {
        faults.extend([
            Fault::Suspend {
                instance,
                at,
                lasts,
            },
            Fault::Freeze {
                instance,
                at,
                lasts,
            },
            Fault::Partition {
                instance,
                at,
                lasts,
            },
        ]);
    }
    faults
}
