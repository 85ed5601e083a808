//! Digests.
use nodegate_lab::sim::defect::quiet_panics;
use nodegate_lab::sim::explore::{Explorer, faults::singles};
use nodegate_lab::sim::machine::engine;
use nodegate_lab::sim::run::run;
use nodegate_lab::sim::scenarios::{self, WORLD};

#[test]
fn golden() {
    quiet_panics();
    for scenario in scenarios::all() {
        let quiet = run(&scenario, 7, &[], &engine);
        println!("{} quiet {:x} {:?}", scenario.name, quiet.digest(), quiet.violation.is_some());
        let faults = singles(&scenario, &quiet);
        let step = (faults.len() / 6).max(1);
        for (index, fault) in faults.iter().enumerate().step_by(step) {
            let outcome = run(&scenario, 7, std::slice::from_ref(fault), &engine);
            println!("{} {index} {:x} {:?}", scenario.name, outcome.digest(), outcome.violation.map(|it| it.law));
        }
    }
    for seed in 0..30 {
        let outcome = run(&WORLD, seed, &[], &engine);
        println!("world {seed} {:x} {:?}", outcome.digest(), outcome.violation.map(|it| it.law));
    }
    let mut explorer = Explorer::new(scenarios::all(), &engine, None, |_, _, _| {});
    explorer.stop_after(250);
    explorer.chance(42);
    println!("{}", explorer.tally());
}
