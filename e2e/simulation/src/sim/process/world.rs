//! What the processes share: the cluster, the Lease and the faults.

use crate::sim::cluster::Cluster;
use crate::sim::election::{Lease, Life};
use crate::sim::fault::{Fault, Incident, Trouble};
use crate::sim::settings::Settings;
use crate::sim::time::Time;

#[derive(Debug)]
pub(crate) struct World<'a> {
    pub cluster: Cluster,
    pub lease: Lease,
    pub faults: &'a [Fault],
    pub settings: &'a Settings,
    /// How many instances there are. A single one holds no election.
    pub instances: usize,
    /// When the last fault so far ends.
    pub troubled_until: Time,
    /// Notes about the processes for the trace.
    pub notes: Vec<(Time, String)>,
    /// Whether to note all inputs and effects of the engine, too.
    pub trace: bool,
}

impl World<'_> {
    /// The API server's trouble with nearly every request, if any.
    pub(super) fn storm(&self) -> Option<Trouble> {
        let mut storms = self.storms();
        storms.find(|trouble| *trouble != Trouble::EventRateLimit)
    }

    /// Whether the API server currently refuses every Event.
    pub(super) fn refuses_events(&self) -> bool {
        let mut storms = self.storms();
        storms.any(|trouble| trouble == Trouble::EventRateLimit)
    }

    fn storms(&self) -> impl Iterator<Item = Trouble> {
        let now = self.cluster.now();
        let timed = self.faults.iter().filter_map(Fault::timed);
        timed.filter_map(move |(what, at, lasts)| match what {
            Incident::Storm(trouble) => (at..at + lasts).contains(&now).then_some(trouble),
            _ => None,
        })
    }

    pub(super) fn note(&mut self, life: Life, what: impl FnOnce() -> String) {
        let (instance, life) = life;
        let note = format!("instance {instance}, life {life}: {}", what());
        self.notes.push((self.cluster.now(), note));
    }

    pub(super) fn trouble_until(&mut self, until: Time) {
        self.troubled_until = self.troubled_until.max(until);
    }
}
