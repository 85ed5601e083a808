//! What was there until a moment ago. A rule is evaluated with it and without it: where the answers differ, nothing is changed on
//! the node until the absence has lasted.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::detail::Detail;
use super::facts::{Condition, Facts};
use super::labels::NodeLabels;
use super::observations::LABELS_LAST;
use super::source::{Source, is_ours};
use crate::api::ConditionStatus::{False, True};
use crate::object::{DELETION_LASTS, DaemonSet, NodeCondition, ObjectKey};
use crate::selector::Selector;

/// The reason of a condition that names the `DaemonSet`s which have no pod on the node.
const POD_MISSING: &str = "DaemonSetPodMissing";

/// What is gone, but has not been gone for long enough to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Absence<'a> {
    /// From when on it counts as gone.
    pub until: Timestamp,
    /// What is gone.
    pub gone: Gone<'a>,
}

/// What is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Gone<'a> {
    DaemonSet(&'a ObjectKey),
    /// The node's label of this key, or its value.
    Label(&'a str),
    /// What an earlier controller waited for or went by, by what it left on the node.
    Before,
}

impl fmt::Display for Gone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DaemonSet(key) => write!(f, "DaemonSet {key}"),
            Self::Label(key) => write!(f, "label {key}"),
            Self::Before => f.write_str("what an earlier controller waited for"),
        }
    }
}

impl Absence<'_> {
    /// If anything is gone.
    pub(crate) fn any(self) -> Option<Self> {
        (self.until < Timestamp::MAX).then_some(self)
    }
}

impl<'a> Facts<'_, 'a> {
    /// Whether the `DaemonSet` counts as there.
    pub(super) fn has(&self, daemon_set: &DaemonSet) -> bool {
        let until = daemon_set.counts_until();
        until.is_none_or(|until| self.recalls && self.now < until)
    }

    /// Whether the `DaemonSet` selects the node by name and labels.
    pub(super) fn is_selected_by(&self, daemon_set: &DaemonSet) -> bool {
        self.labels().selected_by(daemon_set).is_some()
    }

    /// The labels that count.
    pub(crate) fn labels(&self) -> NodeLabels<'a> {
        if self.recalls {
            self.recalled_labels()
        } else {
            NodeLabels::of(self.node)
        }
    }

    /// The labels that the node has, or had until a moment ago.
    fn recalled_labels(&self) -> NodeLabels<'a> {
        NodeLabels::recalled(self.node, self.observations, self.now)
    }

    /// What only recalled makes a rule with this selector select the node.
    pub(crate) fn unselected(&self, selector: &Selector) -> Option<Absence<'a>> {
        let observations = self.observations;
        let recalls = observations.recall_anything();
        let selected = recalls.then(|| self.recalled_labels().matches(selector))?;
        let before = || observations.before(LABELS_LAST, self.now);
        selected.or_else(before)?.any()
    }

    /// What conditions from this source would count if it were recalled.
    pub(crate) fn absence(&self, source: &Source) -> Option<Absence<'a>> {
        let group = self.group(source)?;
        let daemon_sets = group.daemon_sets.values();
        daemon_sets.filter_map(|it| self.absence_of(it)).min()
    }

    /// The label of this key, if it would count if it were recalled.
    pub(crate) fn absent_label(&self, key: &str) -> Option<Absence<'a>> {
        self.recalled_labels().has(key)?.any()
    }

    /// What would make the `DaemonSet` count if it were recalled.
    fn absence_of(&self, daemon_set: &'a DaemonSet) -> Option<Absence<'a>> {
        let until = daemon_set.counts_until();
        if until.is_none() && !self.observations.recall_anything() {
            return None;
        }
        let selected = self.recalled_labels().selected_by(daemon_set)?;
        let gone = Gone::DaemonSet(&daemon_set.key);
        let deleted = until.map(|until| Absence { until, gone });
        let first = deleted.map_or(selected, |it| it.min(selected));
        first.any().filter(|it| self.now < it.until)
    }

    /// The condition as an earlier controller published it, if only an absence makes `found` another one, and this process has not
    /// seen for long enough that it lasts.
    pub(crate) fn published(
        &self,
        kind: &str,
        source: &Source,
        found: &Condition<'a>,
    ) -> Option<(Condition<'a>, Absence<'a>)> {
        // For nothing lasts longer.
        self.observations.before(LABELS_LAST, self.now)?;
        let published = self.node.condition(kind)?;
        if !is_ours(kind, &published.reason) {
            return None;
        }
        let lasts = match (published.status, found.status) {
            (True, False) if matches!(found.detail, Detail::DaemonSetNotFound { .. }) => {
                DELETION_LASTS
            }
            (False, True) => self.lasts(source, published)?,
            _ => return None,
        };
        let absence = self.observations.before(lasts, self.now)?;
        let (reason, message) = (&published.reason, &published.message);
        let condition = Condition::new(published.status, Detail::Reported { reason, message });
        Some((condition, absence))
    }

    /// How long those `DaemonSet`s must be absent that a published condition says have no pod here, and that are not waited for now;
    /// `None` if each has a pod.
    fn lasts(&self, source: &Source, published: &NodeCondition) -> Option<SignedDuration> {
        let group = self.group(source)?;
        let words = published.message.split([' ', ',']);
        let words = words.filter(|_| published.reason == POD_MISSING);
        let keys = words.filter_map(|it| it.split_once('/'));
        let lasts = keys.filter_map(|(namespace, name)| {
            let known = group.daemon_sets.get(&ObjectKey::new(namespace, name));
            let Some(known) = known.filter(|it| it.deleted.is_none()) else {
                return Some(DELETION_LASTS);
            };
            let mut pods = group.pods.iter();
            let has_a_pod = pods.any(|pod| pod.is_live() && known.owns(pod));
            (!has_a_pod && !known.edited).then_some(LABELS_LAST)
        });
        lasts.max()
    }
}
