//! What nodes wait for, by critical component class or by name, each a group of objects that are listed and watched together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::words;
use crate::object::{DaemonSet, ObjectKey};
use crate::selector::Selector;

/// A class of critical components, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalComponentClass {
    pub name: String,
    pub selector: Selector,
    pub namespaces: Namespaces,
    pub condition_prefix: String,
    pub csi_annotation_prefix: String,
    pub require_csi_allocatable: bool,
}

impl CriticalComponentClass {
    /// Whether this `DaemonSet`, whose own labels match the selector, is in the class's namespaces, and [`Self::labels`] holds.
    pub fn has(&self, daemon_set: &DaemonSet) -> bool {
        self.namespaces.contains(&daemon_set.key.namespace) && self.labels(daemon_set)
    }

    /// Whether this `DaemonSet`, whose own labels match, counts in any namespace: its pod template has the labels too.
    pub fn labels(&self, daemon_set: &DaemonSet) -> bool {
        self.selector.matches(&daemon_set.template_labels)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    All,
    Only(BTreeSet<String>),
}

impl Namespaces {
    /// The only namespace that the class covers, if there is just one.
    pub fn single(&self) -> Option<&str> {
        match self {
            Self::Only(names) if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        }
    }

    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

words! {
    /// A question about a class on a node. With the class's prefix, its word is a condition type.
    pub enum Question {
        /// Does every `DaemonSet` that runs on the node have a pod there?
        DaemonSetsScheduled = "CriticalDaemonSetsScheduled",
        PodsReady = "CriticalPodsReady",
        /// Are the CSI drivers that the pods wait for registered?
        CsiDriversRegistered = "CSIDriversRegistered",
        ComponentsReady = "CriticalComponentsReady",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentGroup {
    /// The components of the critical component class with this index in the configuration.
    Class(usize),
    /// What rules wait for by name ([`Component`]). The number is never reused in this process.
    Named(usize),
}

impl ComponentGroup {
    pub fn class(self) -> Option<usize> {
        match self {
            Self::Class(index) => Some(index),
            Self::Named(_) => None,
        }
    }
}

/// What a rule waits for by name. It is watched from when the first rule names it until the last one does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    DaemonSet(ObjectKey),
    AllDaemonSets,
    /// The pods of a check: their namespace, and the value of their label [`CHECK_LABEL`].
    Check(ObjectKey),
    Devices(Arc<str>),
}

/// A pod with this label is a run of the check that its value names.
pub const CHECK_LABEL: &str = "nodegate.dev/check";

/// A component that rules wait for by name, as far as it is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedComponent {
    pub component: Component,
    pub group: ComponentGroup,
    /// Whether everything of it has been seen. Nothing may be decided by it before.
    pub is_seen: bool,
    /// Whether the cluster has its kind of object, as far as is known.
    pub is_served: bool,
}

pub type ByGroup<T> = BTreeMap<ComponentGroup, T>;
