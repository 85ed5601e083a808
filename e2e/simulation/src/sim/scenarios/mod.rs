//! The scenarios: small ones, each about one thing, with what must be so at the end without faults. `world` generates another
//! one from each seed.

mod absences;
mod conditions;
mod critical;
mod ends;
mod guard;
mod interference;
mod kubelets;
mod named;
mod nodes;
mod objects;
mod registration;
mod repair;
mod rules;
mod taints;
#[cfg(test)]
mod tests;
mod world;

use super::actors::{Kubelets, Machine, machines};
use super::cluster::Cluster;
use super::scenario::{Scenario, Scene};
use super::settings::{Settings, usual};
use super::time::{Time, s};
use ends::End;
pub use world::WORLD;

/// How long things take to settle where labels go: for five minutes that changes nothing.
const LABELS_SETTLE: Time = s(330);

/// A scenario, and what must be so at its end without faults.
#[derive(Debug, Clone, Copy)]
pub struct Base {
    pub scenario: Scenario,
    ends: &'static [End],
}

pub fn all() -> Vec<Scenario> {
    bases().iter().map(|base| base.scenario).collect()
}

pub fn bases() -> Vec<Base> {
    [
        conditions::ALL,
        rules::ALL,
        registration::ALL,
        taints::ALL,
        critical::ALL,
        named::ALL,
        absences::ALL,
        nodes::ALL,
        kubelets::ALL,
        guard::ALL,
        repair::ALL,
        interference::ALL,
    ]
    .concat()
}

impl Base {
    /// A scenario of this length with one instance and the product's default settings.
    const fn new(
        title: &'static str,
        lasts: Time,
        build: for<'a> fn(Scene<'a>) -> Scene<'a>,
        ends: &'static [End],
    ) -> Self {
        Self {
            scenario: Scenario {
                title,
                instances: 1,
                settings: usual,
                brake: None,
                lasts,
                settles: s(60),
                build,
            },
            ends,
        }
    }

    /// Checks the end of a run without faults.
    pub fn check(&self, end: &Cluster) -> Result<(), String> {
        let mut ends = self.ends.iter();
        ends.try_for_each(|it| it.check(end))
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

/// The kubelets of this many machines: the first boots after 5 seconds, the others one after the other.
fn joining(count: usize) -> Kubelets {
    Kubelets::new(booting(count, s(5), s(1)))
}

/// Like [`joining`], with these machines changed.
fn joining_as(count: usize, change: impl FnMut(Machine) -> Machine) -> Kubelets {
    let machines = booting(count, s(5), s(1)).into_iter().map(change);
    Kubelets::new(machines.collect())
}

/// This many machines: the first boots at this time, the others one after the other.
fn booting(count: usize, first: Time, every: Time) -> Vec<Machine> {
    let numbered = (0..).zip(machines(count));
    let boots = numbered.map(|(number, machine)| machine.boots(first + every * number));
    boots.collect()
}
