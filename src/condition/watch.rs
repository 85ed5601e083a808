//! The watches that decisions depend on: which objects each shows.

use std::sync::Arc;

use super::groups::{ComponentGroup, CriticalComponentClass};
use crate::object::{ObjectKey, ResourceKind};
use crate::selector::Selector;

/// The API server leaves out pods that are not bound.
const BOUND: &str = "spec.nodeName!=";
/// It also leaves out those that have ended.
const BOUND_AND_NOT_ENDED: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/// Identifies a watch. There are some for each component group: of a class, or of what a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Watch {
    Nodes,
    CsiNodes,
    Pods(ComponentGroup),
    DaemonSets(ComponentGroup),
    ResourceSlices(ComponentGroup),
    Rules,
    /// Only repair waits for them.
    NodeClaims,
    NodePools,
}

impl Watch {
    /// One watch of each kind.
    pub const KINDS: [Self; 8] = [
        Self::Nodes,
        Self::CsiNodes,
        Self::Pods(ComponentGroup::Class(0)),
        Self::DaemonSets(ComponentGroup::Class(0)),
        Self::ResourceSlices(ComponentGroup::Class(0)),
        Self::Rules,
        Self::NodeClaims,
        Self::NodePools,
    ];

    /// The kind of the watched objects.
    pub const fn resource(self) -> ResourceKind {
        match self {
            Self::Nodes => ResourceKind::Nodes,
            Self::CsiNodes => ResourceKind::CsiNodes,
            Self::Pods(_) => ResourceKind::Pods,
            Self::DaemonSets(_) => ResourceKind::DaemonSets,
            Self::ResourceSlices(_) => ResourceKind::ResourceSlices,
            Self::Rules => ResourceKind::Rules,
            Self::NodeClaims => ResourceKind::NodeClaims,
            Self::NodePools => ResourceKind::NodePools,
        }
    }

    /// The kind's name in manifests.
    pub fn kind(self) -> &'static str {
        self.resource().kind()
    }

    /// The resource's name with its group, for logs and metrics of watches.
    pub fn name(self) -> &'static str {
        self.resource().full_name()
    }

    /// What metrics of objects call the resource.
    pub(crate) fn short_name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            watch => watch.resource().name(),
        }
    }

    /// Whether a cluster may lack this resource.
    pub fn is_optional(self) -> bool {
        self != Self::Rules && self.resource().may_be_absent()
    }

    /// The component group of the watched objects, if they belong to one.
    pub fn group(self) -> Option<ComponentGroup> {
        match self {
            Self::Pods(group) | Self::DaemonSets(group) | Self::ResourceSlices(group) => {
                Some(group)
            }
            _ => None,
        }
    }
}

/// The objects that a watch selects, for watches that start while the engine runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Only in this namespace.
    pub namespace: Option<Arc<str>>,
    /// Only those with labels that match.
    pub labels: Option<Selector>,
    /// Only the one with this name.
    pub name: Option<Arc<str>>,
    /// Only the `ResourceSlice`s of this driver.
    pub driver: Option<Arc<str>>,
    /// Also pods that have ended.
    pub with_ended: bool,
}

impl CriticalComponentClass {
    /// The scope of a watch of the class. `DaemonSet`s are watched in all namespaces: a labelled one outside the class's
    /// namespaces is reported.
    pub fn scope(&self, watch: Watch) -> Scope {
        let namespace = match watch {
            Watch::Pods(_) => self.namespaces.single(),
            _ => None,
        };
        Scope {
            namespace: namespace.map(Arc::from),
            labels: Some(self.selector.clone()),
            ..Scope::default()
        }
    }
}

impl Scope {
    /// The object of this name.
    pub fn of_one(key: &ObjectKey) -> Self {
        Self {
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            ..Self::default()
        }
    }

    /// The field selector of a watch of these objects. Pods that are not bound, and those that have ended, say nothing about a
    /// node, but for the pods of checks.
    pub fn fields(&self, watch: Watch) -> Option<String> {
        let name = self.name.as_ref();
        let name = name.map(|name| format!("metadata.name={name}"));
        let driver = self.driver.as_ref();
        let driver = driver.map(|driver| format!("spec.driver={driver}"));
        let bound = match (watch, self.with_ended) {
            (Watch::Pods(_), true) => Some(BOUND),
            (Watch::Pods(_), false) => Some(BOUND_AND_NOT_ENDED),
            _ => None,
        };
        let fields: Vec<String> = name
            .into_iter()
            .chain(driver)
            .chain(bound.map(str::to_owned))
            .collect();
        (!fields.is_empty()).then(|| fields.join(","))
    }

    /// The label selector, as the API takes it.
    pub fn labels(&self) -> Option<String> {
        self.labels.as_ref().map(ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_asks_only_for_what_its_scope_covers() {
        let group = ComponentGroup::Named(0);
        let all = Scope::default;
        let of_one = || Scope::of_one(&ObjectKey::new("ns", "a"));
        let with_ended = || Scope {
            with_ended: true,
            ..all()
        };
        let of_driver = || Scope {
            driver: Some("d".into()),
            ..all()
        };
        for (scope, watch, fields) in [
            (all(), Watch::Nodes, None),
            (all(), Watch::Pods(group), Some(BOUND_AND_NOT_ENDED)),
            (with_ended(), Watch::Pods(group), Some(BOUND)),
            (of_one(), Watch::DaemonSets(group), Some("metadata.name=a")),
            (
                of_driver(),
                Watch::ResourceSlices(group),
                Some("spec.driver=d"),
            ),
        ] {
            assert_eq!(scope.fields(watch).as_deref(), fields, "{watch:?}");
        }
    }
}
