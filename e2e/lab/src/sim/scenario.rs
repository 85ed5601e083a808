//! Scenarios: what happens in a cluster without faults, as a value.

use super::actor::Actor;
use super::cluster::Cluster;
use super::rng::Rng;
use super::settings::Settings;
use super::time::Time;

/// A scenario.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name, for scripts and the command line.
    pub name: &'static str,
    /// One sentence about what happens.
    pub about: &'static str,
    /// The number of instances of Nodegate, at least one.
    pub instances: usize,
    /// Their settings.
    pub settings: fn() -> Settings,
    /// When the suspension of all rules starts and ends, if there is one.
    pub brake: Option<(Time, Time)>,
    /// How long the scenario takes. Faults begin in this time.
    pub lasts: Time,
    /// How long the cluster may take to settle after the scenario and the last fault. Actors such as heartbeats go on.
    pub settles: Time,
    /// Creates the objects that exist at time zero, and returns the actors.
    pub build: fn(&mut Cluster, &mut Rng) -> Vec<Box<dyn Actor>>,
}

impl Scenario {
    /// Whether all rules are suspended at this time.
    #[must_use]
    pub fn suspends_all(&self, at: Time) -> bool {
        self.brake.is_some_and(|(on, off)| (on..off).contains(&at))
    }
}
