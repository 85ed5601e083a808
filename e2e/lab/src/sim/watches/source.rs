//! The scope of each watch, and its objects in the engine's types.

use nodegate::condition::ComponentGroup;
use nodegate::engine::io::Object;
use nodegate::engine::kind::{Scope, Watch};
use serde_json::Value;

use crate::sim::cluster::Change;
use crate::sim::settings::Settings;
use crate::sim::transport::decoded;
use crate::{Event, Key, Kind, Selector};

/// The pods that matter to a node.
const BOUND: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/// The scope of a watch.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) selector: Selector,
}

impl Source {
    /// The permanent watches of a process with these settings.
    pub(super) fn all(settings: &Settings) -> Vec<(Watch, Self)> {
        let source = |kind| Self {
            kind,
            namespace: None,
            selector: Selector::default(),
        };
        let mut watches = vec![
            (Watch::Nodes, source(Kind::Node)),
            (Watch::CsiNodes, source(Kind::CsiNode)),
            (Watch::Rules, source(Kind::NodeReadinessRule)),
        ];
        for (index, class) in settings.classes.iter().enumerate() {
            let labels = Selector::default().labels(&class.selector.to_string());
            let labels = labels.expect("a class's selector is one of the API server's");
            let pods = labels.clone().fields(BOUND);
            let pods = Self {
                kind: Kind::Pod,
                namespace: class.namespaces.single().map(str::to_owned),
                selector: pods.expect("pods are selected by these fields"),
            };
            let daemon_sets = Self {
                selector: labels,
                ..source(Kind::DaemonSet)
            };
            let group = ComponentGroup::Class(index);
            watches.push((Watch::Pods(group), pods));
            watches.push((Watch::DaemonSets(group), daemon_sets));
        }
        if settings.enable_karpenter {
            watches.push((Watch::NodeClaims, source(Kind::NodeClaim)));
            watches.push((Watch::NodePools, source(Kind::NodePool)));
        }
        watches
    }

    /// The scope of a watch that the engine starts while it runs.
    pub(super) fn of(scope: &Scope) -> Self {
        let (kind, namespace, labels, fields) = match scope {
            Scope::DaemonSet(key) => {
                let this = format!("metadata.name={}", key.name);
                (Kind::DaemonSet, &key.namespace, String::new(), this)
            }
            Scope::Pods(namespace, selector) => {
                (Kind::Pod, namespace, selector.to_string(), BOUND.to_owned())
            }
        };
        let selector = Selector::default().labels(&labels);
        let selector = selector.and_then(|selector| selector.fields(&fields));
        Self {
            kind,
            namespace: Some(namespace.to_string()),
            selector: selector.expect("the engine's selectors are the API server's"),
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

pub(super) fn revision(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

/// An object in the engine's types.
pub(super) fn wrapped(watch: Watch, object: &Value) -> Option<Object> {
    Some(match watch {
        Watch::Nodes => Object::Node(decoded(object).ok()?),
        Watch::CsiNodes => Object::CsiNode(decoded(object).ok()?),
        Watch::Pods(group) => Object::Pod(group, decoded(object).ok()?),
        Watch::DaemonSets(group) => Object::DaemonSet(group, decoded(object).ok()?),
        Watch::Rules => Object::Rule(decoded(object).ok()?),
        Watch::NodeClaims => Object::NodeClaim(decoded(object).ok()?),
        Watch::NodePools => Object::NodePool(decoded(object).ok()?),
    })
}
