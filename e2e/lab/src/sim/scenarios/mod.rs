//! The scenarios: small ones, each about one thing, with checks for how it ends without faults. `world` generates another one
//! from each seed.

mod conditions;
mod critical;
mod ends;
mod evaluations;
mod guard;
mod interference;
mod kubelets;
mod named;
mod nodes;
mod objects;
mod registration;
mod repair;
mod rules;
#[cfg(test)]
mod tests;
mod world;

use super::actors::{DaemonSets, Garbage, Kubelets, Lifecycle, Scheduler, Workload, machines};
use super::time::{Time, s};
use super::{Actor, Cluster, Rng, Scenario, Settings};
use ends::Checked;
pub use world::WORLD;

/// A scenario, and the check for its end without faults.
#[derive(Debug, Clone, Copy)]
pub struct Base {
    /// The scenario.
    pub scenario: Scenario,
    /// Returns what is wrong with the cluster at the end.
    pub ends: fn(&Cluster) -> Checked,
}

type Actors = Vec<Box<dyn Actor>>;

/// All scenarios.
#[must_use]
pub fn all() -> Vec<Scenario> {
    bases().iter().map(|base| base.scenario).collect()
}

/// All scenarios with their checks.
#[must_use]
pub fn bases() -> Vec<Base> {
    [
        conditions::ALL,
        rules::ALL,
        registration::ALL,
        critical::ALL,
        named::ALL,
        nodes::ALL,
        kubelets::ALL,
        guard::ALL,
        repair::ALL,
        interference::ALL,
        evaluations::ALL,
    ]
    .concat()
}

impl Base {
    /// A scenario of this length with one instance and the product's default settings.
    const fn new(
        name: &'static str,
        about: &'static str,
        lasts: Time,
        build: fn(&mut Cluster, &mut Rng) -> Actors,
        ends: fn(&Cluster) -> Checked,
    ) -> Self {
        Self {
            scenario: Scenario {
                name,
                about,
                instances: 1,
                settings: Settings::default,
                brake: None,
                lasts,
                settles: s(60),
                build,
            },
            ends,
        }
    }

    const fn instances(mut self, instances: usize) -> Self {
        self.scenario.instances = instances;
        self
    }

    const fn settings(mut self, settings: fn() -> Settings) -> Self {
        self.scenario.settings = settings;
        self
    }

    /// Suspends all rules between these times.
    const fn braked(mut self, on: Time, off: Time) -> Self {
        self.scenario.brake = Some((on, off));
        self
    }

    const fn settles(mut self, settles: Time) -> Self {
        self.scenario.settles = settles;
        self
    }
}

/// Everything that Kubernetes does itself, with these kubelets.
fn kubernetes(kubelets: Kubelets) -> Actors {
    vec![
        Box::new(kubelets),
        Box::new(DaemonSets::default()),
        Box::new(Lifecycle::default()),
        Box::new(Garbage::default()),
    ]
}

/// Everything that Kubernetes does itself, with these kubelets, and further actors.
fn with<const N: usize>(kubelets: Kubelets, others: [Box<dyn Actor>; N]) -> Actors {
    let mut actors = kubernetes(kubelets);
    actors.extend(others);
    actors
}

/// A workload of this many pods, and a scheduler.
fn workload(pods: u64) -> [Box<dyn Actor>; 2] {
    [
        Box::new(Scheduler::default()),
        Box::new(Workload::new(pods, s(4), s(1))),
    ]
}

/// The kubelets of this many machines: the first boots after 5 seconds, the others one after the other.
fn joining(count: usize) -> Kubelets {
    Kubelets::new(booting(count, s(5), s(1)))
}

/// This many machines: the first boots at this time, the others one after the other.
fn booting(count: usize, first: Time, every: Time) -> Vec<super::actors::Machine> {
    let mut at = first;
    let boots = machines(count).into_iter().map(|machine| {
        let machine = machine.boots(at);
        at += every;
        machine
    });
    boots.collect()
}
