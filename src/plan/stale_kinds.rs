//! Which kinds of evidence are stale. Harmful changes wait until they are current again.

use std::collections::BTreeSet;

use crate::condition::{ComponentGroup, NamedComponent, Question, Source};
use crate::rule::CompiledSpec;

/// A set of kinds of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StaleKinds {
    /// The Node itself.
    pub nodes: bool,
    /// Its `CSINode`.
    pub csi_nodes: bool,
    /// The rules.
    pub rules: bool,
    /// The component groups whose objects are included.
    groups: BTreeSet<ComponentGroup>,
}

impl StaleKinds {
    /// The empty set.
    pub const NONE: Self = Self {
        nodes: false,
        csi_nodes: false,
        rules: false,
        groups: BTreeSet::new(),
    };

    /// Only the rules.
    pub const RULES: Self = Self {
        nodes: false,
        csi_nodes: false,
        rules: true,
        groups: BTreeSet::new(),
    };

    /// Every kind that tests use.
    #[cfg(test)]
    pub fn all() -> Self {
        Self {
            nodes: true,
            csi_nodes: true,
            rules: true,
            groups: (0..8)
                .flat_map(|it| [ComponentGroup::Class(it), ComponentGroup::Named(it)])
                .collect(),
        }
    }

    /// Adds the objects of a component group.
    pub fn add_group(&mut self, group: ComponentGroup) {
        self.groups.insert(group);
    }

    /// Whether the objects of a component group are included.
    pub fn has_group(&self, group: ComponentGroup) -> bool {
        self.groups.contains(&group)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The union of both sets.
    pub fn and(mut self, other: Self) -> Self {
        self.groups.extend(other.groups);
        Self {
            nodes: self.nodes || other.nodes,
            csi_nodes: self.csi_nodes || other.csi_nodes,
            rules: self.rules || other.rules,
            groups: self.groups,
        }
    }

    /// The part that every rule depends on: the Node and the rules.
    pub fn common(&self) -> Self {
        Self {
            nodes: self.nodes,
            rules: self.rules,
            ..Self::default()
        }
    }

    /// The part that a rule with this spec depends on, given the components that rules name.
    pub fn about(&self, spec: &CompiledSpec, named: &[NamedComponent]) -> Self {
        let mut about = self.common();
        for requirement in &spec.conditions {
            match &requirement.source {
                Source::Node | Source::Resource(_) | Source::Nobody => {}
                Source::CsiDriver(_) => about.csi_nodes |= self.csi_nodes,
                Source::Component(component) => {
                    let named = named.iter().find(|named| named.component == *component);
                    let group = named.map(|named| named.group);
                    about.groups.extend(group.filter(|it| self.has_group(*it)));
                }
                Source::Class { class, question } => {
                    about.groups.extend(
                        Some(ComponentGroup::Class(*class)).filter(|it| self.has_group(*it)),
                    );
                    about.csi_nodes |= self.csi_nodes && question.asks_csi_node();
                }
            }
        }
        about
    }
}

impl Question {
    /// Whether the answer depends on the node's `CSINode`.
    fn asks_csi_node(self) -> bool {
        matches!(self, Self::CsiDriversRegistered | Self::ComponentsReady)
    }
}
