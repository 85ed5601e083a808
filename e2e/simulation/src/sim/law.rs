//! What laws have in common. A law says what must never happen, or what must hold in the end.

use std::collections::BTreeMap;

use super::cluster::{Change, Cluster, Write};
use super::fault::Fault;
use super::laws::ledger::Ledger;
use super::scenario::Scenario;
use super::settings::Settings;
use super::time::Time;
use crate::Key;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub law: &'static str,
    pub at: Time,
    /// What happened, with the names of the objects.
    pub what: String,
}

/// The state of one instance of Nodegate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Since when its process has run; `None` while it is dead.
    pub runs_since: Option<Time>,
    /// Since when its process believes that it leads.
    pub leads_since: Option<Time>,
    /// Until when its last renewal of the Lease lets it write.
    pub leads_until: Option<Time>,
    /// Since when its watches have synced.
    pub synced_since: Option<Time>,
    /// When the leading and synced process first observed each node, by UID.
    pub nodes_seen: BTreeMap<String, Time>,
    /// Writes sent while another write to the same object was under way.
    pub doubled: Vec<(Time, Key)>,
    /// Writes sent by a process that did not lead, had lost its lease, or had been told to stop.
    pub unasked: Vec<(Time, Key)>,
}

/// The input of laws: the cluster after something has happened.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// What all laws look up about the cluster.
    pub(super) ledger: &'a Ledger,
    pub cluster: &'a Cluster,
    pub scenario: &'a Scenario,
    pub settings: &'a Settings,
    pub faults: &'a [Fault],
    /// The instances, by number.
    pub instances: &'a [Report],
    /// The changes that have not been judged.
    pub new_changes: &'a [Change],
    /// The requests that have not been judged.
    pub new_writes: &'a [Write],
    /// The end of the scenario and its last fault, from which things settle. Later than now until then.
    pub calm_since: Time,
}

/// Something that must never happen, or must hold in the end. Each value judges one schedule, and may keep state.
pub trait Law {
    /// Judges the cluster whenever something has changed.
    ///
    /// # Errors
    /// What happened, when the law is broken.
    fn check(&mut self, _moment: &Moment<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Judges the cluster at the end, when everything has had time to settle.
    ///
    /// # Errors
    /// What is wrong, when the law is broken.
    fn finally(&mut self, _moment: &Moment<'_>) -> Result<(), String> {
        Ok(())
    }
}
