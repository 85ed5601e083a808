//! What the processes share: the cluster, the Lease, and what goes wrong.

use crate::sim::cluster::Cluster;
use crate::sim::election::{Lease, Life};
use crate::sim::fault::{Fault, Trouble};
use crate::sim::settings::Settings;
use crate::sim::time::Time;

/// What the processes share.
#[derive(Debug)]
pub struct World<'a> {
    /// The cluster.
    pub cluster: Cluster,
    /// The Lease.
    pub lease: Lease,
    /// What goes wrong.
    pub faults: &'a [Fault],
    /// What the instances are set to.
    pub settings: &'a Settings,
    /// How many instances there are. Where there is one, there is no election.
    pub instances: usize,
    /// When the last fault that has come about ends.
    pub troubled_until: Time,
    /// What has become of the processes.
    pub notes: Vec<(Time, String)>,
    /// Whether all that they are told and do is noted too.
    pub trace: bool,
}

impl World<'_> {
    /// What the API server answers to nearly everything now.
    pub(super) fn storm(&self) -> Option<Trouble> {
        let mut storms = self.storms();
        storms.find(|trouble| *trouble != Trouble::EventRateLimit)
    }

    /// Whether the API server refuses every Event now.
    pub(super) fn refuses_events(&self) -> bool {
        let mut storms = self.storms();
        storms.any(|trouble| trouble == Trouble::EventRateLimit)
    }

    fn storms(&self) -> impl Iterator<Item = Trouble> {
        let now = self.cluster.now();
        self.faults.iter().filter_map(move |fault| match fault {
            Fault::Storm { trouble, at, lasts } => {
                (*at <= now && now < *at + *lasts).then_some(*trouble)
            }
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
