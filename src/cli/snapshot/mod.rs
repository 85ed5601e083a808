//! The cluster at one time: the engine's view of it, and what people want to know besides. `read` fills it, and the commands
//! evaluate it.

mod gap;
mod inventory;
mod kind;
mod leader;
mod pod;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::condition::CriticalComponentClass;
use crate::engine::{RuleRemarks, View};
use crate::guard::Limits;
use crate::object::{ObjectKey, RuleObject};
use crate::rule::Rule;
pub(super) use gap::{Gap, unread_lists};
pub(super) use inventory::{Agent, Inventory, Pool, Program};
pub use kind::ResourceKind;
pub(crate) use kind::{Binding, EventAbout, Filter, name};
pub(super) use leader::{Leader, LeaderHealth};
pub(super) use pod::{Controller, PodDiagnosis, PodEvent, Specimen};

/// The cluster at one time.
#[derive(Debug)]
pub struct Snapshot {
    /// When it was read.
    pub at: Timestamp,
    /// The engine's view of the cluster.
    pub view: View,
    /// The rules as written.
    pub rules: Vec<RuleObject>,
    /// The controller's limits, if wanted and found in its Deployment.
    pub limits: Option<Limits>,
    /// The leader, according to the Lease.
    pub leader: Option<Leader>,
    /// The controller's instances, if wanted.
    pub controllers: Vec<Controller>,
    /// The pods that are not Ready.
    pub unready: BTreeMap<ObjectKey, PodDiagnosis>,
    /// The lists that could not be read, at all or to their end.
    pub gaps: Vec<Gap>,
    /// Objects that cannot be parsed, as sentences.
    pub unreadable: Vec<String>,
}

/// What a command wants read. Everything that decides about a node is always read; every other part costs requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Only this node, with its pods.
    pub node: Option<String>,
    /// Only what determines which objects matter: rules, Lease, configuration, and the `DaemonSet`s that rules name.
    pub outline: bool,
    pub controllers: bool,
    pub limits: bool,
    /// Rules that are not in the cluster, whose evidence is wanted too.
    pub rules: Vec<RuleObject>,
}

impl Wanted {
    pub(super) fn of_node(name: &str) -> Self {
        Self {
            node: Some(name.into()),
            ..Self::default()
        }
    }
}

impl Snapshot {
    pub(crate) fn classes(&self) -> &[CriticalComponentClass] {
        self.view.cluster().classes
    }

    /// The gap of this kind, if any.
    pub(crate) fn gap(&self, kind: ResourceKind) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.kind == kind)
    }

    /// What the author of a rule should know of what it waits for; `None` if that could not be read.
    pub(crate) fn remarks(&self, rule: &Rule) -> Option<RuleRemarks> {
        let needs = [ResourceKind::DaemonSets, ResourceKind::CsiNodes];
        let is_known = needs.iter().all(|kind| self.gap(*kind).is_none());
        is_known.then(|| self.view.remarks(rule))
    }

    /// Remarks on missing information that every answer adds.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.gaps.iter().map(ToString::to_string).collect();
        notes.extend(self.unreadable.iter().cloned());
        notes
    }
}
