//! Snapshots for tests, from builders and JSON.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;

use super::snapshot::{Manifests, Snapshot};
use crate::config::Config;
use crate::engine::View;
use crate::engine::io::{Now, Object};
use crate::engine::kind::Watch;
use crate::object::RuleObject;
use crate::testing::{NodeBuilder, RuleBuilder};

/// Builds the snapshot of these objects, with the default configuration.
#[derive(Debug, Default)]
pub(super) struct Scene {
    nodes: Vec<NodeBuilder>,
    rules: Vec<RuleObject>,
}

impl Scene {
    pub(super) fn node(mut self, node: NodeBuilder) -> Self {
        self.nodes.push(node);
        self
    }

    pub(super) fn rule(self, rule: &RuleBuilder) -> Self {
        self.object(rule.object())
    }

    /// Adds a rule as it stands in the cluster.
    pub(super) fn object(mut self, rule: RuleObject) -> Self {
        self.rules.push(rule);
        self
    }

    pub(super) fn read(self, at: Timestamp) -> Snapshot {
        let classes = Config::default().classes().unwrap();
        let now = Now {
            wall: at,
            monotonic: Instant::now(),
        };
        let mut view = View::new(classes, Vec::new(), true, now);
        for watch in Watch::KINDS {
            view.listing(watch);
            let objects: Vec<Object> = match watch {
                Watch::Rules => self
                    .rules
                    .iter()
                    .map(|it| Object::Rule(it.clone().into()))
                    .collect(),
                Watch::Nodes => self
                    .nodes
                    .iter()
                    .map(|it| Object::Node(it.object()))
                    .collect(),
                _ => Vec::new(),
            };
            for object in objects {
                view.put(object);
            }
            view.listed(watch);
        }
        // The `DaemonSet`s that rules name: there are none.
        for (watch, _) in view.wanted() {
            view.listing(watch);
            view.listed(watch);
        }
        view.settle();
        Snapshot {
            at,
            rules: self.rules,
            view,
            limits: None,
            leader: None,
            controllers: Vec::new(),
            unready: BTreeMap::new(),
            manifests: Manifests::default(),
            gaps: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}
