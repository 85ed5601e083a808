//! A node's labels: those that it has and, where they are recalled, those that it had until a moment ago.

use super::absence::Recall;
use crate::object::{DaemonSet, Node, NodeAffinityTerm};
use crate::selector::{Requirement, Selector};

/// The labels of a node that count.
#[derive(Debug, Clone, Copy)]
pub struct NodeLabels<'f, 'a> {
    node: &'a Node,
    recall: Option<&'f Recall<'a>>,
}

impl<'f, 'a> NodeLabels<'f, 'a> {
    pub(crate) fn new(node: &'a Node, recall: Option<&'f Recall<'a>>) -> Self {
        Self { node, recall }
    }

    /// The labels that the node has.
    pub fn of(node: &'a Node) -> Self {
        Self::new(node, None)
    }

    pub(crate) fn get(self, key: &str) -> Option<&'a str> {
        self.fitting(key, |it| it.is_some()).flatten()
    }

    pub(crate) fn matches(self, selector: &Selector) -> bool {
        self.meet(selector.requirements())
    }

    /// Whether the node is one of the `DaemonSet`'s by name, whatever its labels are or will be.
    pub(super) fn may_be_selected_by(self, daemon_set: &DaemonSet) -> bool {
        let mut affinity = daemon_set.node_affinity.iter();
        (daemon_set.node_name.is_empty() || *daemon_set.node_name == *self.node.name)
            && affinity.all(|it| it.iter().any(|term| self.is_named_by(term)))
    }

    /// Whether the node is one of the `DaemonSet`'s by name and labels, whatever its taints.
    pub(super) fn selected_by(self, daemon_set: &DaemonSet) -> bool {
        let fits = |(key, value): (&String, &String)| {
            let value = Some(value.as_str());
            self.fitting(key, |it| it == value).is_some()
        };
        let is_of = |term: &NodeAffinityTerm| self.is_named_by(term) && self.meet(&term.labels);
        let mut affinity = daemon_set.node_affinity.iter();
        self.may_be_selected_by(daemon_set)
            && daemon_set.node_selector.iter().all(fits)
            && affinity.all(|terms| terms.iter().any(is_of))
    }

    fn is_named_by(self, term: &NodeAffinityTerm) -> bool {
        let fits = |(name, must_be): &(String, bool)| (**name == *self.node.name) == *must_be;
        term.names.iter().all(fits)
    }

    fn meet(self, requirements: &[Requirement]) -> bool {
        let mut each = requirements.iter();
        each.all(|it| {
            self.fitting(&it.key, |value| it.operator.accepts(value))
                .is_some()
        })
    }

    /// The value of this label that fits, where no label is `None`.
    #[expect(clippy::option_option, reason = "that there is no label may fit, too")]
    fn fitting(self, key: &str, fits: impl Fn(Option<&str>) -> bool) -> Option<Option<&'a str>> {
        let value = self.node.labels.get(key).map(String::as_str);
        let former = || self.recall?.label(key, &fits);
        fits(value).then_some(value).or_else(former)
    }
}
