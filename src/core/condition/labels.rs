//! A node's labels: those that it has, and those that it had until a moment ago.

use jiff::Timestamp;

use super::absence::{Absence, Gone};
use super::observations::Observations;
use crate::object::{DaemonSet, Node, NodeAffinityTerm};
use crate::selector::{Requirement, Selector};

/// The labels of a node that count.
#[derive(Debug, Clone, Copy)]
pub struct NodeLabels<'a> {
    node: &'a Node,
    former: Option<(&'a Observations, Timestamp)>,
}

/// That labels match which are there.
const FOR_EVER: Absence<'static> = Absence {
    until: Timestamp::MAX,
    gone: Gone::Before,
};

/// The first to count as gone, if all of these match.
fn all<'a>(mut each: impl Iterator<Item = Option<Absence<'a>>>) -> Option<Absence<'a>> {
    each.try_fold(FOR_EVER, |first, it| Some(first.min(it?)))
}

/// Where labels match only with one that went, that is said with the match.
impl<'a> NodeLabels<'a> {
    /// The labels that the node has.
    pub fn of(node: &'a Node) -> Self {
        let former = None;
        Self { node, former }
    }

    /// The labels that the node has at this time, or had until a moment before.
    pub(crate) fn recalled(node: &'a Node, observations: &'a Observations, now: Timestamp) -> Self {
        let former = Some((observations, now));
        Self { node, former }
    }

    /// The value of this label.
    pub(crate) fn get(self, key: &str) -> Option<&'a str> {
        let value = self.node.labels.get(key).map(String::as_str);
        value.or_else(|| {
            let (observations, now) = self.former?;
            observations.former_label(key, |it| it.is_some(), now)?.1
        })
    }

    /// Whether there is a label of this key.
    pub(crate) fn has(self, key: &str) -> Option<Absence<'a>> {
        self.fit(key, |it| it.is_some())
    }

    /// Whether the selector of a rule matches.
    pub(crate) fn matches(self, selector: &Selector) -> Option<Absence<'a>> {
        self.meet(selector.requirements())
    }

    /// Whether the node is one of the `DaemonSet`'s by name, whatever its labels are or will be.
    pub(super) fn may_be_selected_by(self, daemon_set: &DaemonSet) -> bool {
        let mut affinity = daemon_set.node_affinity.iter();
        (daemon_set.node_name.is_empty() || *daemon_set.node_name == *self.node.name)
            && affinity.all(|it| it.iter().any(|term| self.is_named_by(term)))
    }

    /// Whether the node is one of the `DaemonSet`'s by name and labels, whatever its taints.
    pub(super) fn selected_by(self, daemon_set: &DaemonSet) -> Option<Absence<'a>> {
        if !self.may_be_selected_by(daemon_set) {
            return None;
        }
        let own = daemon_set.node_selector.iter();
        let own = own.map(|(key, value)| self.fit(key, |it| it == Some(value.as_str())));
        let affinity = daemon_set.node_affinity.iter();
        let affinity = affinity.map(|terms| {
            let terms = terms.iter().filter(|term| self.is_named_by(term));
            terms.filter_map(|term| self.meet(&term.labels)).max()
        });
        all(own.chain(affinity))
    }

    fn is_named_by(self, term: &NodeAffinityTerm) -> bool {
        let fits = |(name, must_be): &(String, bool)| (**name == *self.node.name) == *must_be;
        term.names.iter().all(fits)
    }

    fn meet(self, requirements: &[Requirement]) -> Option<Absence<'a>> {
        let each = requirements.iter();
        all(each.map(|it| self.fit(&it.key, |value| it.operator.accepts(value))))
    }

    fn fit(self, key: &str, fits: impl Fn(Option<&str>) -> bool) -> Option<Absence<'a>> {
        if fits(self.node.labels.get(key).map(String::as_str)) {
            return Some(FOR_EVER);
        }
        let (observations, now) = self.former?;
        Some(observations.former_label(key, fits, now)?.0)
    }
}
