//! Which kinds of evidence may not be so any more. What could hurt waits until a last look at the objects themselves has
//! been had.

use crate::condition::{Cohort, NamedDaemonSet, Question, Source};
use crate::rule::CompiledSpec;

/// A set of kinds of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Doubts {
    /// The Node itself.
    pub nodes: bool,
    /// Its `CSINode`.
    pub csi_nodes: bool,
    /// The rules.
    pub rules: bool,
    /// A bit for each cohort, whose pods or `DaemonSet`s are meant.
    cohorts: u64,
}

impl Doubts {
    /// Every kind.
    pub const ALL: Self = Self {
        nodes: true,
        csi_nodes: true,
        rules: true,
        cohorts: u64::MAX,
    };

    /// Adds the pods and `DaemonSet`s of a cohort.
    pub fn add_cohort(&mut self, cohort: Cohort) {
        self.cohorts |= bit(cohort);
    }

    /// Whether the pods and `DaemonSet`s of a cohort are in the set.
    #[must_use]
    pub fn has_cohort(self, cohort: Cohort) -> bool {
        self.cohorts & bit(cohort) != 0
    }

    /// Whether there is anything in the set that is not of a single node.
    #[must_use]
    pub fn is_of_the_cluster(self) -> bool {
        self.rules || self.cohorts != 0
    }

    /// Whether any of it is about each node on its own. A cohort has pods there.
    #[must_use]
    pub fn is_of_the_node(self) -> bool {
        self.nodes || self.csi_nodes || self.cohorts != 0
    }

    /// Whether there is nothing in the set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// What is in either set.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            nodes: self.nodes || other.nodes,
            csi_nodes: self.csi_nodes || other.csi_nodes,
            rules: self.rules || other.rules,
            cohorts: self.cohorts | other.cohorts,
        }
    }

    /// What is not in the other set.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            nodes: self.nodes && !other.nodes,
            csi_nodes: self.csi_nodes && !other.csi_nodes,
            rules: self.rules && !other.rules,
            cohorts: self.cohorts & !other.cohorts,
        }
    }

    /// What of it everything goes by: the Node and the rules.
    #[must_use]
    pub fn common(self) -> Self {
        Self {
            nodes: self.nodes,
            rules: self.rules,
            ..Self::default()
        }
    }

    /// What of it a rule with this spec goes by, where these `DaemonSet`s are waited for by name.
    #[must_use]
    pub fn about(self, spec: &CompiledSpec, named: &[NamedDaemonSet]) -> Self {
        let mut about = self.common();
        for requirement in &spec.conditions {
            match &requirement.source {
                Source::Node | Source::Resource(_) | Source::Nobody => {}
                Source::CsiDriver(_) => about.csi_nodes |= self.csi_nodes,
                Source::DaemonSet(key) => {
                    let named = named.iter().find(|named| named.key == *key);
                    about.cohorts |= self.cohorts & named.map_or(0, |named| bit(named.cohort));
                }
                Source::Class { class, question } => {
                    about.cohorts |= self.cohorts & bit(*class);
                    about.csi_nodes |= self.csi_nodes && question.asks_csi_node();
                }
            }
        }
        about
    }
}

/// There are more cohorts than bits: what is said of one is said of all that share its bit.
fn bit(cohort: Cohort) -> u64 {
    1 << (cohort % 64)
}

impl Question {
    /// Whether the answer depends on the node's `CSINode`.
    fn asks_csi_node(self) -> bool {
        matches!(self, Self::CsiDriversRegistered | Self::ComponentsReady)
    }
}
