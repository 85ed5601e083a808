//! What was read, at one time: the engine's own view of the cluster, and what people want to know beside it. Filled from the API
//! server or from a dump, and asked by the commands; no reading is done here.

mod inventory;
mod kind;
mod leader;
mod pod;
mod startup;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::condition::CriticalComponentClass;
use crate::engine::View;
use crate::guard::Limits;
use crate::object::{ObjectKey, RuleObject};
pub use inventory::{Agent, Inventory, Pool, Program};
pub use kind::{Binding, EventAbout, Filter, ResourceKind, name};
pub use leader::{Leader, LeaderHealth};
pub use pod::{Controller, PodDiagnosis, PodEvent, Specimen};
pub use startup::{NodeOrigin, Recorded};

/// What is told where nobody knows the critical component classes.
pub const ASSUMED: &str = "the controller's configuration could not be read: its critical component classes are taken to be the \
    default ones; --config FILE names others";

/// What was read.
#[derive(Debug)]
pub struct Snapshot {
    /// When.
    pub at: Timestamp,
    /// The controller's own view of it.
    pub view: View,
    /// The rules as they are written.
    pub rules: Vec<RuleObject>,
    /// Where the critical component classes are from.
    pub classes_from: ClassesFrom,
    /// The controller's limits, where they were asked for and its Deployment tells them.
    pub limits: Option<Limits>,
    /// Who leads, as far as the Lease tells.
    pub leader: Option<Leader>,
    /// The controller's instances, where they were asked for.
    pub controllers: Vec<Controller>,
    /// The pods that are not Ready.
    pub unready: BTreeMap<ObjectKey, PodDiagnosis>,
    /// How nodes started, by their names, where that was wanted.
    pub records: BTreeMap<String, Vec<Recorded>>,
    /// How nodes came to be, where that was wanted and Karpenter has made them.
    pub origins: Vec<NodeOrigin>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
    /// Objects that cannot be understood, in words.
    pub unreadable: Vec<String>,
}

/// Where the critical component classes are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassesFrom {
    /// They were named: by the file of `--config`, say.
    Named,
    /// The `ConfigMap` beside the controller, or the default ones where there is none.
    Cluster,
    /// Nobody knows: they are taken to be the default ones.
    Assumed,
}

/// A list that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub kind: ResourceKind,
    /// Whether it is forbidden; otherwise it failed.
    pub forbidden: bool,
    pub why: String,
}

/// What a command wants read. Everything that decides about a node is always read; the less of the rest, the fewer requests.
#[derive(Debug, Clone, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each part is wanted or not, whatever becomes of the others"
)]
pub struct Wanted {
    /// Of all nodes only this one, with the pods on it.
    pub node: Option<String>,
    /// Nothing but what says which objects matter: rules, Lease, configuration, and the `DaemonSet`s that rules name.
    pub outline: bool,
    pub controllers: bool,
    pub limits: bool,
    pub startups: bool,
    /// What rules wait for that are not in the cluster.
    pub rules: Vec<RuleObject>,
}

impl Wanted {
    pub fn of_node(name: &str) -> Self {
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

    /// What could not be read of this kind, if anything.
    pub(crate) fn gap(&self, kind: ResourceKind) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.kind == kind)
    }

    /// What an answer has to say besides: what it goes without, in words.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.gaps.iter().map(ToString::to_string).collect();
        if self.classes_from == ClassesFrom::Assumed {
            notes.push(ASSUMED.into());
        }
        notes.extend(self.unreadable.iter().cloned());
        notes
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, goes_without) = (self.kind.name(), self.kind.tells());
        if self.forbidden {
            write!(f, "not allowed to list {name}: {goes_without}")
        } else {
            write!(f, "cannot list {name} ({}): {goes_without}", self.why)
        }
    }
}
