//! Snapshots for tests, from builders and JSON.

#[path = "../core/testing/mod.rs"]
mod shared;

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;

use super::page::Page;
use super::snapshot::{Manifests, Snapshot};
use nodegate_core::condition::Watch;
use nodegate_core::config::Config;
use nodegate_core::object::RuleObject;
use nodegate_engine::Forecast;
use nodegate_engine::io::{Now, Object, Seen};

pub(crate) use shared::*;

impl Page {
    pub(super) fn plain(now: Timestamp) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }
}

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
        let mut view = Forecast::new(classes, Vec::new(), now);
        // The rules name no `DaemonSet` that exists.
        while let wanted @ [_, ..] = &*view.wanted() {
            for (watch, _) in wanted {
                view.listing(*watch);
                match watch {
                    Watch::Rules => {
                        for rule in &self.rules {
                            view.apply(Seen::Apply(Object::Rule(rule.clone().into())));
                        }
                    }
                    Watch::Nodes => {
                        for node in &self.nodes {
                            view.apply(Seen::Apply(Object::Node(node.object())));
                        }
                    }
                    _ => {}
                }
                view.apply(Seen::InitDone(*watch));
            }
        }
        view.prepare();
        Snapshot {
            at,
            view,
            listed: Vec::new(),
            unlisted: Vec::new(),
            leader: None,
            adds_tolerations: false,
            controllers: Vec::new(),
            unready: BTreeMap::new(),
            pods: BTreeMap::new(),
            node_events: BTreeMap::new(),
            manifests: Manifests::default(),
            standing: BTreeMap::new(),
            kept_out: BTreeMap::new(),
            no_pod: BTreeMap::new(),
            gaps: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}
