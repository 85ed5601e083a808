//! What checks ask of the cluster, such as the `DaemonSet`s that each rule waits for.

use crate::cli::snapshot::{Agent, Snapshot};
use crate::cluster::ResourceKind;
use crate::condition::can_share_a_node;
use crate::object::Node;
use crate::rule::{CompiledSpec, Rule};

impl Snapshot {
    /// Whether all objects of this kind were read: otherwise nothing may be said to be missing.
    pub(super) fn has_read(&self, kind: ResourceKind) -> bool {
        self.gap(kind).is_none()
    }

    pub(crate) fn selected(&self, spec: &CompiledSpec) -> impl Iterator<Item = &Node> {
        let nodes = self.view.nodes();
        nodes.filter(|node| spec.selector.matches(&node.labels))
    }

    /// The valid rules that are not being deleted, by precedence.
    pub(crate) fn usable(&self) -> impl Iterator<Item = (&Rule, &CompiledSpec)> {
        let rules = self.view.rules().rules().iter();
        let rules = rules.filter(|rule| !rule.deleting);
        rules.filter_map(|rule| Some((&**rule, rule.spec.as_ref().ok()?)))
    }

    /// The `DaemonSet`s that a rule waits for on some of its nodes, whether or not they tolerate its taint.
    pub(super) fn waited_for(&self, spec: &CompiledSpec) -> Vec<&Agent> {
        let waited_for = self.manifests.daemon_sets.iter().filter(|agent| {
            waits_for(spec, agent, self) && can_share_a_node(&agent.daemon_set, &spec.selector)
        });
        waited_for.collect()
    }
}

/// Whether a rule waits for a `DaemonSet`, by its name or by a class.
pub(crate) fn waits_for(spec: &CompiledSpec, agent: &Agent, snapshot: &Snapshot) -> bool {
    let daemon_set = &agent.daemon_set;
    let mut classes = snapshot.classes().iter().enumerate();
    spec.daemon_sets().any(|key| *key == daemon_set.key)
        || classes.any(|(index, class)| {
            spec.waits_for_class(index)
                && class.selector.matches(&agent.labels)
                && class.has(daemon_set)
        })
}
