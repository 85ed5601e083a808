//! What happens in a cluster where nothing goes wrong, as a value.

use super::actor::Actor;
use super::cluster::Cluster;
use super::rng::Rng;
use super::settings::Settings;
use super::time::Time;

/// A scenario.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name, as scripts and the command line have it.
    pub name: &'static str,
    /// What happens, in one sentence.
    pub about: &'static str,
    /// How many instances of Nodegate there are, at least one.
    pub instances: usize,
    /// What they are set to.
    pub settings: fn() -> Settings,
    /// From when until when all rules are suspended at once, if they ever are.
    pub brake: Option<(Time, Time)>,
    /// How long what it is about takes. Faults come in this time.
    pub lasts: Time,
    /// How long things take to settle after it and after the last fault, until everything has to be as it should be. The
    /// actors that go on for ever (heartbeats) go on.
    pub settles: Time,
    /// Fills the cluster with what is there before anything begins, at time zero, and gives those who act in it.
    pub build: fn(&mut Cluster, &mut Rng) -> Vec<Box<dyn Actor>>,
}

impl Scenario {
    /// Whether all rules are suspended at this time.
    #[must_use]
    pub fn suspends_all(&self, at: Time) -> bool {
        self.brake.is_some_and(|(on, off)| (on..off).contains(&at))
    }
}
