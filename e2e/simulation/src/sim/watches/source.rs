//! The scope of each watch.

use nodegate_core::condition::Watch;
use nodegate_core::selector::Filter;
use serde_json::Value;

use crate::sim::cluster::Change;
use crate::{Event, Key, Kind, Selector};

#[derive(Debug)]
pub(super) struct Source {
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) selector: Selector,
}

impl Source {
    /// The source of a watch with this scope.
    pub(super) fn of(watch: Watch, scope: &Filter) -> Self {
        let labels = scope.labels.as_ref().map(ToString::to_string);
        let fields = scope.fields.as_deref().unwrap_or_default();
        Self {
            kind: kind(watch),
            namespace: scope.namespace.clone(),
            selector: Selector::of(&labels.unwrap_or_default(), fields),
        }
    }

    pub(super) fn covers(&self, key: &Key) -> bool {
        let namespace = self.namespace.as_ref();
        namespace.is_none_or(|it| *it == key.namespace)
    }

    pub(super) fn event(&self, change: &Change) -> Option<Event> {
        if !self.covers(&change.key) {
            return None;
        }
        let change = crate::watch::Change {
            revision: change.revision,
            key: change.key.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
        };
        change.seen_through(&self.selector)
    }

    pub(super) fn key(&self, object: &Value) -> Key {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Key::namespaced(self.kind, text("namespace"), text("name"))
    }
}

fn kind(watch: Watch) -> Kind {
    match watch {
        Watch::Nodes => Kind::Node,
        Watch::CsiNodes => Kind::CsiNode,
        Watch::Pods(_) => Kind::Pod,
        Watch::DaemonSets(_) => Kind::DaemonSet,
        Watch::ResourceSlices(_) => Kind::ResourceSlice,
        Watch::Rules => Kind::NodeReadinessRule,
        Watch::NodeClaims => Kind::NodeClaim,
        Watch::NodePools => Kind::NodePool,
    }
}

pub(super) fn revision(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}
