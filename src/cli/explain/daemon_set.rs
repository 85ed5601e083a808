//! Explains a `DaemonSet`: which rules wait for it, by its name or a class, and which nodes are held because of it.

use std::sync::Arc;

use serde::Serialize;

use super::finding::Cause;
use super::told;
use crate::page::{Block, Branch, Line, NextStep, Page, Render};
use crate::rows::{RuleOnNode, rows_of};
use crate::snapshot::Snapshot;
use nodegate_core::condition::ComponentGroup;
use nodegate_core::object::ObjectKey;
use nodegate_core::rule::{CompiledSpec, Rule};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DaemonSetExplanation {
    pub namespace: Arc<str>,
    pub daemon_set: Arc<str>,
    pub rules: Vec<Arc<str>>,
    /// The nodes that are held because of it, longest first.
    pub nodes: Vec<RuleOnNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

pub(crate) fn explain_daemon_set(snapshot: &Snapshot, key: &ObjectKey) -> DaemonSetExplanation {
    let view = &snapshot.view;
    let rules = view.cached_rules().values().map(|cached| &*cached.rule);
    let cluster = view.cluster();
    let waits = |spec: &CompiledSpec| {
        let mut classes = cluster.classes.iter().enumerate();
        let is_named = spec.daemon_sets().any(|it| it == key);
        is_named
            || classes.any(|(index, class)| {
                let known = cluster.daemon_sets(ComponentGroup::Class(index)).get(key);
                spec.waits_for_class(index) && known.is_some_and(|it| class.has(it))
            })
    };
    let is_among = |it: &&Rule| {
        it.spec
            .as_ref()
            .is_ok_and(|it| waits(it) && !it.leaves_out(key))
    };
    let rules = rules.filter(is_among).map(|rule| rule.name.clone());
    let mut rules: Vec<Arc<str>> = rules.collect();
    rules.sort();
    let object = format!("daemonset/{}", key.name);
    let is_it = |cause: &Cause| cause.object == object && *cause.namespace == *key.namespace;
    let waits_for_it = |row: &RuleOnNode| {
        let mut causes = row.conditions.iter().flat_map(|it| &it.causes);
        row.holds() && causes.any(is_it)
    };
    let nodes = view.nodes();
    let rows = nodes.filter_map(|node| rows_of(snapshot, &node.name));
    let mut nodes: Vec<RuleOnNode> = rows.flatten().filter(waits_for_it).collect();
    nodes.sort_by_key(|it| (it.since.is_none(), it.since, it.node.clone()));
    let next = nodes.first().map(|first| NextStep::see_node(&first.node));
    DaemonSetExplanation {
        namespace: key.namespace.clone(),
        daemon_set: key.name.clone(),
        rules,
        nodes,
        next,
        notes: snapshot.notes(),
    }
}

impl Render for DaemonSetExplanation {
    const KIND: &'static str = "DaemonSetExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let head = Line::new().strong(format!("daemonset/{}", self.daemon_set));
        let head = head.faint(format!(" -n {}", self.namespace));
        let rules = self.rules.iter();
        let rules = rules.map(|rule| format!("rule/{rule} waits for it"));
        let none = || Line::mark(true).plain("no node is held because of it");
        let tree = Branch::from(head)
            .over(rules)
            .over(self.nodes.is_empty().then(none))
            .over(page.some(&self.nodes, |row| row.of_node(page, true)));
        told(tree, self.next.as_ref(), &self.notes)
    }
}
