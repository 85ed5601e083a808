//! Which kinds of evidence may not be so any more. What could hurt waits until a last look at the objects themselves has
//! been had.

use crate::condition::{Question, Source};
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
    /// A bit for each class, whose pods or `DaemonSet`s are meant.
    classes: u64,
}

impl Doubts {
    /// Every kind.
    pub const ALL: Self = Self {
        nodes: true,
        csi_nodes: true,
        rules: true,
        classes: u64::MAX,
    };

    /// Adds the pods and `DaemonSet`s of the class with this index.
    pub fn add_class(&mut self, class: usize) {
        self.classes |= bit(class);
    }

    /// Whether the pods and `DaemonSet`s of the class with this index are in the set.
    #[must_use]
    pub fn has_class(self, class: usize) -> bool {
        self.classes & bit(class) != 0
    }

    /// Whether there is anything in the set that is not of a single node.
    #[must_use]
    pub fn is_of_the_cluster(self) -> bool {
        self.rules || self.classes != 0
    }

    /// Whether any of it is about each node on its own. A class has pods there.
    #[must_use]
    pub fn is_of_the_node(self) -> bool {
        self.nodes || self.csi_nodes || self.classes != 0
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
            classes: self.classes | other.classes,
        }
    }

    /// What is not in the other set.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            nodes: self.nodes && !other.nodes,
            csi_nodes: self.csi_nodes && !other.csi_nodes,
            rules: self.rules && !other.rules,
            classes: self.classes & !other.classes,
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

    /// What of it a rule with this spec goes by.
    #[must_use]
    pub fn about(self, spec: &CompiledSpec) -> Self {
        let mut about = self.common();
        for requirement in &spec.conditions {
            match &requirement.source {
                Source::Node | Source::Resource(_) | Source::Nobody => {}
                Source::CsiDriver(_) => about.csi_nodes |= self.csi_nodes,
                Source::Class { class, question } => {
                    about.classes |= self.classes & bit(*class);
                    about.csi_nodes |= self.csi_nodes && question.asks_csi_node();
                }
            }
        }
        about
    }
}

/// Classes beyond the last bit share it: what is said of one is then said of all of them.
fn bit(class: usize) -> u64 {
    1 << class.min(63)
}

impl Question {
    /// Whether the answer depends on the node's `CSINode`.
    fn asks_csi_node(self) -> bool {
        matches!(self, Self::CsiDriversRegistered | Self::ComponentsReady)
    }
}
