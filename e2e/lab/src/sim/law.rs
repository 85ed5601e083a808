//! What must never happen, and what must come to be.

use std::collections::BTreeMap;

use super::cluster::{Change, Cluster};
use super::fault::Fault;
use super::scenario::Scenario;
use super::settings::Settings;
use super::time::Time;
use crate::Key;

/// A law has been broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The law's name.
    pub law: &'static str,
    /// When it was noticed.
    pub at: Time,
    /// What has happened, with the names of the objects.
    pub what: String,
}

/// What is known of one instance of Nodegate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Since when its process runs, unless it is dead.
    pub runs_since: Option<Time>,
    /// Since when its process thinks that it leads.
    pub leads_since: Option<Time>,
    /// Since when its watches have shown everything once.
    pub synced_since: Option<Time>,
    /// Since when a process that leads and whose watches have shown everything once has known a node, by its UID.
    pub nodes_seen: BTreeMap<String, Time>,
    /// Writes that were sent while another one to the same object was under way.
    pub doubled: Vec<(Time, Key)>,
    /// Writes that were sent by one that did not lead or had lost its lease, or had been told to stop.
    pub unasked: Vec<(Time, Key)>,
}

/// What laws judge: the cluster after something has happened.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The cluster as it is and was.
    pub cluster: &'a Cluster,
    /// What happens in it.
    pub scenario: &'a Scenario,
    /// What the instances are set to.
    pub settings: &'a Settings,
    /// What goes wrong in it.
    pub faults: &'a [Fault],
    /// The instances, by their numbers.
    pub instances: &'a [Report],
    /// How many of the cluster's changes had been judged before.
    pub judged_changes: usize,
    /// How many of its writes had been judged before.
    pub judged_writes: usize,
    /// When the scenario's part and the last fault had ended: from then on things settle. Later than now as long as they
    /// have not.
    pub calm_since: Time,
}

impl<'a> Moment<'a> {
    /// The changes that have not been judged.
    #[must_use]
    pub fn new_changes(&self) -> &'a [Change] {
        &self.cluster.changes()[self.judged_changes..]
    }

    /// The writes that have not been judged.
    #[must_use]
    pub fn new_writes(&self) -> &'a [super::Write] {
        &self.cluster.writes()[self.judged_writes..]
    }
}

/// Something that must never happen, or that must come to be. One value judges one schedule, and may remember.
pub trait Law {
    /// Its name: a sentence about behaviour, in short.
    fn name(&self) -> &'static str;

    /// Judges the cluster after every moment at which something has changed, been written or been done.
    ///
    /// # Errors
    /// When the law is broken: what has happened.
    fn check(&mut self, _moment: &Moment<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Judges the cluster at the end, after everything has had its time to settle.
    ///
    /// # Errors
    /// When the law is broken: what is not as it should be.
    fn finally(&mut self, _moment: &Moment<'_>) -> Result<(), String> {
        Ok(())
    }
}
