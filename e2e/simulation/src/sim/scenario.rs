//! Scenarios: what happens in a cluster without faults, as a value.

use serde_json::Value;

use super::actor::Actor;
use super::actors::{DaemonSets, Garbage, Kubelets, Lifecycle, Scheduler, Workload};
use super::cluster::{Cluster, Who};
use super::rng::Rng;
use super::settings::Settings;
use super::time::{Time, s};
use crate::{Key, Request};

#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name, for scripts and the command line, and what happens: `name: what happens`.
    pub title: &'static str,
    /// The number of instances of Nodegate, at least one.
    pub instances: usize,
    pub settings: fn() -> Settings,
    /// When the suspension of all rules starts and ends, if there is one.
    pub brake: Option<(Time, Time)>,
    /// How long the scenario takes. Faults begin in this time.
    pub lasts: Time,
    /// How long the cluster may take to settle after the scenario and the last fault. Actors such as heartbeats go on.
    pub settles: Time,
    /// Adds the objects that exist at time zero, and the actors.
    pub build: for<'a> fn(Scene<'a>) -> Scene<'a>,
}

impl Scenario {
    pub fn name(&self) -> &'static str {
        self.title.split(':').next().unwrap_or_default()
    }

    /// Whether all rules are suspended at this time.
    pub fn suspends_all(&self, at: Time) -> bool {
        self.brake.is_some_and(|(on, off)| (on..off).contains(&at))
    }

    /// Creates the objects that exist at time zero, and returns the actors.
    pub(super) fn begin(&self, cluster: &mut Cluster, rng: &mut Rng) -> Vec<Box<dyn Actor>> {
        let actors = Vec::new();
        let scene = Scene {
            cluster,
            rng,
            actors,
        };
        (self.build)(scene).actors
    }
}

/// The cluster before a scenario begins. The order of the objects decides their UIDs, that of the actors their random numbers.
pub struct Scene<'a> {
    pub(super) cluster: &'a mut Cluster,
    pub(super) rng: &'a mut Rng,
    actors: Vec<Box<dyn Actor>>,
}

impl Scene<'_> {
    /// Adds an object that exists from the beginning.
    pub(super) fn has(self, object: impl Into<(Key, Value)>) -> Self {
        let (key, object) = object.into();
        let create = Request::Create { key, object };
        let answer = self.cluster.request(Who::Actor("setup"), &create);
        answer.expect("nothing is there before a scenario begins");
        self
    }

    pub(super) fn acts(mut self, actor: impl Actor + 'static) -> Self {
        self.actors.push(Box::new(actor));
        self
    }

    /// Adds these kubelets, and everything that Kubernetes does itself.
    pub(super) fn nodes(self, kubelets: Kubelets) -> Self {
        self.nodes_under(kubelets, Lifecycle::default())
    }

    /// Like [`Self::nodes`], with this lifecycle controller.
    pub(super) fn nodes_under(self, kubelets: Kubelets, lifecycle: Lifecycle) -> Self {
        self.acts(kubelets)
            .acts(DaemonSets::default())
            .acts(lifecycle)
            .acts(Garbage::default())
    }

    /// Adds a workload of this many pods, and a scheduler.
    pub(super) fn workload(self, pods: u64) -> Self {
        self.acts(Scheduler::default())
            .acts(Workload::new(pods, s(4), s(1)))
    }
}
