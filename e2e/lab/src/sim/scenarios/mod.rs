//! The scenarios: small ones, each about one thing, with how it ends where nothing goes wrong.
//!
//! ```text
//! conditions   conditions that reporters write
//! rules        rules come, change and go
//! registration taints that nodes register with
//! critical     critical components and CSI drivers
//! named        DaemonSets by their names
//! nodes        nodes reboot, come back, go, and are labelled anew
//! kubelets     what real kubelets do: plugins, freezes, blinks
//! guard        many nodes turn bad at once
//! repair       nodes that never get ready
//! interference others write taints and annotations
//! ```
//!
//! `world` is one of chance, which is another one with each seed.
//!
//! `objects` makes what they consist of, and `ends` says how they end.

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
#[cfg(test)]
mod tests;
mod world;

use super::actors::{DaemonSets, Garbage, Kubelets, Lifecycle, Scheduler, Workload, machines};
use super::time::{Time, s};
use super::{Actor, Cluster, Rng, Scenario, Settings};
use ends::Checked;
pub use world::WORLD;

/// A scenario, and how it ends where nothing goes wrong.
#[derive(Debug, Clone, Copy)]
pub struct Base {
    /// The scenario.
    pub scenario: Scenario,
    /// Judges the cluster at the end: what is not as it should be.
    pub ends: fn(&Cluster) -> Checked,
}

/// Those who act.
type Actors = Vec<Box<dyn Actor>>;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    bases().iter().map(|base| base.scenario).collect()
}

/// All of them, with how they end.
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
    ]
    .concat()
}

impl Base {
    /// A scenario of this length with one instance that is set as the product is.
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

    /// With so many instances.
    const fn instances(mut self, instances: usize) -> Self {
        self.scenario.instances = instances;
        self
    }

    /// With these settings.
    const fn settings(mut self, settings: fn() -> Settings) -> Self {
        self.scenario.settings = settings;
        self
    }

    /// With all rules suspended from one time to another.
    const fn braked(mut self, on: Time, off: Time) -> Self {
        self.scenario.brake = Some((on, off));
        self
    }

    /// With so much time to settle.
    const fn settles(mut self, settles: Time) -> Self {
        self.scenario.settles = settles;
        self
    }
}

/// What Kubernetes itself does, with these kubelets.
fn kubernetes(kubelets: Kubelets) -> Actors {
    vec![
        Box::new(kubelets),
        Box::new(DaemonSets::default()),
        Box::new(Lifecycle::default()),
        Box::new(Garbage::default()),
    ]
}

/// The same, with others.
fn with<const N: usize>(kubelets: Kubelets, others: [Box<dyn Actor>; N]) -> Actors {
    let mut actors = kubernetes(kubelets);
    actors.extend(others);
    actors
}

/// Somebody's workload of so many pods, and who binds it.
fn workload(pods: u64) -> [Box<dyn Actor>; 2] {
    [
        Box::new(Scheduler::default()),
        Box::new(Workload::new(pods, s(4), s(1))),
    ]
}

/// The kubelets of so many machines, of which the first boots after 5 seconds and the others one after the other.
fn joining(count: usize) -> Kubelets {
    Kubelets::new(booting(count, s(5), s(1)))
}

/// So many machines, of which the first boots at this time and the others one after the other.
fn booting(count: usize, first: Time, every: Time) -> Vec<super::actors::Machine> {
    let mut at = first;
    let boots = machines(count).into_iter().map(|machine| {
        let machine = machine.boots(at);
        at += every;
        machine
    });
    boots.collect()
}
