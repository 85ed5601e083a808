//! What was read, at one time: the engine's own view of the cluster, and what people want to know beside it. Filled from the API
//! server or from a dump, and asked by the commands; no reading is done here.
//!
//! | file | what it holds |
//! |---|---|
//! | `kind` | the kinds of objects that are read, and which of them |
//! | `inventory` | objects as they were written |
//! | `startup` | how nodes started, as it stands on record |
//! | `story` | what a pod's containers say of why it is not Ready |
//! | `placement` | where a pod that is not bound could run |
//! | `leader` | who leads, by the Lease |
//! | `controller` | the controller's instances |
//! | `gap` | what could not be read |
//! | `wanted` | what a command wants read |

mod controller;
mod gap;
mod inventory;
mod kind;
mod leader;
mod placement;
mod startup;
mod story;
mod wanted;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::condition::CriticalComponentClass;
use crate::engine::View;
use crate::guard::Limits;
use crate::object::{ObjectKey, RuleObject};
pub use controller::{Controller, Deployed, LABEL as CONTROLLER_LABEL};
pub use gap::Gap;
pub use inventory::{Agent, Inventory, Pool, Program};
pub use kind::{About, Binding, Facts, Filter, Kind};
pub use leader::{Health, Leader};
pub use placement::Specimen;
pub use startup::{Origin, Recorded};
pub use story::{Container, ContainerState, PodEvent, Story};
pub use wanted::Wanted;

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
    /// What pods have to say for themselves that are not Ready, or were asked about.
    pub stories: BTreeMap<ObjectKey, Story>,
    /// How nodes started, by their names, where that was wanted.
    pub records: BTreeMap<String, Vec<Recorded>>,
    /// How nodes came to be, where that was wanted and Karpenter has made them.
    pub origins: Vec<Origin>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
    /// Objects that cannot be understood, in words.
    pub unreadable: Vec<String>,
}

/// Where the critical component classes are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassesFrom {
    /// The file that `--config` names.
    File,
    /// The `ConfigMap` beside the controller.
    ConfigMap,
    /// There is no such `ConfigMap`: they are the default ones.
    Default,
    /// Nobody knows: they are taken to be the default ones.
    Assumed,
}

impl Snapshot {
    /// The critical component classes.
    #[must_use]
    pub fn classes(&self) -> &[CriticalComponentClass] {
        self.view.cluster().classes
    }

    /// What could not be read of this kind, if anything.
    #[must_use]
    pub fn gap(&self, kind: Kind) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.kind == kind)
    }

    /// What an answer has to say besides: what it goes without, in words.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.gaps.iter().map(ToString::to_string).collect();
        if self.classes_from == ClassesFrom::Assumed {
            notes.push(ASSUMED.into());
        }
        notes.extend(self.unreadable.iter().cloned());
        notes
    }
}
