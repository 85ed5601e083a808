//! What was there until a moment ago. A rule is evaluated with it and, where any of it counted, without it: where the answers differ,
//! nothing is changed on the node until the absence has lasted.

use std::cell::RefCell;
use std::fmt::Display;

use jiff::{SignedDuration, Timestamp};

use super::detail::Detail;
use super::facts::{Condition, Facts};
use super::labels::NodeLabels;
use super::observations::{LABELS_LAST, Observations};
use super::source::{Source, is_ours};
use crate::api::ConditionStatus::{False, True};
use crate::object::{DELETION_LASTS, DaemonSet, NodeCondition, ObjectKey};
use crate::selector::Selector;

/// What is gone that an earlier controller waited for or went by, by what it left on the node.
const BEFORE: &str = "what an earlier controller waited for";

/// What is gone, but has not been gone for long enough to count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Absence {
    /// From when on it counts as gone.
    pub until: Timestamp,
    /// What is gone: a label of the node (or its value), or a `DaemonSet`, by name.
    pub gone: String,
}

/// An evaluation in which what was there until a moment ago counts as there. It notes what counted.
#[derive(Debug)]
pub struct Recall<'a> {
    observations: &'a Observations,
    now: Timestamp,
    /// Of what counted, that which is the first to count as gone.
    first: RefCell<Option<Absence>>,
}

impl<'a> Recall<'a> {
    pub(crate) fn new(observations: &'a Observations, now: Timestamp) -> Self {
        let first = RefCell::default();
        Self {
            observations,
            now,
            first,
        }
    }

    /// Whether what is gone counts as there, as it does until this time.
    fn counts(&self, until: Timestamp, gone: impl Display) -> bool {
        let counts = self.now < until;
        if counts {
            let gone = gone.to_string();
            let known = self.first.take().into_iter();
            self.first
                .replace(known.chain([Absence { until, gone }]).min());
        }
        counts
    }

    /// Whether what this process has never seen counts for so long after it began, because an earlier one left something that says so.
    pub(crate) fn before(&self, lasts: SignedDuration) -> bool {
        self.counts(self.observations.first_seen + lasts, BEFORE)
    }

    /// The last value of a label that fits, if the node had it until a moment ago; no label is `None`.
    #[expect(clippy::option_option, reason = "that there is no label may fit, too")]
    pub(super) fn label(
        &self,
        key: &str,
        fits: impl Fn(Option<&str>) -> bool,
    ) -> Option<Option<&'a str>> {
        let (value, at) = self.observations.former_label(key, fits)?;
        self.counts(at + LABELS_LAST, format_args!("label {key}"))
            .then_some(value)
    }

    /// What counted although it is gone: of that, the first to count as gone.
    pub(crate) fn absence(self) -> Option<Absence> {
        self.first.into_inner()
    }
}

impl<'a> Facts<'_, 'a> {
    /// Whether the `DaemonSet` counts as there.
    pub(super) fn has(&self, daemon_set: &DaemonSet) -> bool {
        let key = &daemon_set.key;
        let recalls = |until, it: &Recall<'_>| it.counts(until, format_args!("DaemonSet {key}"));
        let counts = |until| self.recall.is_some_and(|it| recalls(until, it));
        daemon_set.counts_until().is_none_or(counts)
    }

    pub(crate) fn labels(&self) -> NodeLabels<'_, 'a> {
        NodeLabels::new(self.node, self.recall)
    }

    /// What is gone, if only that makes a rule with this selector select the node.
    pub(crate) fn unselected(&self, selector: &Selector) -> Option<Absence> {
        if !self.observations.recall_anything(self.now) {
            return None;
        }
        let recall = Recall::new(self.observations, self.now);
        let labels = NodeLabels::new(self.node, Some(&recall));
        let is_selected = labels.matches(selector) || recall.before(LABELS_LAST);
        recall.absence().filter(|_| is_selected)
    }

    /// The condition as an earlier controller published it, if what makes `found` another one may be an absence that this process
    /// has not seen for long enough.
    pub(super) fn published(
        &self,
        kind: &str,
        source: &Source,
        found: &Condition<'a>,
    ) -> Option<Condition<'a>> {
        let recall = self
            .recall
            .filter(|_| self.now < self.observations.first_seen + LABELS_LAST)?;
        let published = self
            .node
            .condition(kind)
            .filter(|it| is_ours(kind, &it.reason))?;
        let (reason, message) = (&published.reason, &published.message);
        let lasts = match (published.status, found.status) {
            (True, False) if matches!(found.detail, Detail::DaemonSetNotFound { .. }) => {
                DELETION_LASTS
            }
            (False, True) if reason == "DaemonSetPodMissing" => self.lasts(source, published)?,
            _ => return None,
        };
        let counts = recall.before(lasts);
        counts.then(|| Condition::new(published.status, Detail::Reported { reason, message }))
    }

    /// How long those `DaemonSet`s must be absent that a published condition names and that have no pod here, but for
    /// those that the rule leaves out; `None` if each has one.
    fn lasts(&self, source: &Source, published: &NodeCondition) -> Option<SignedDuration> {
        let group = self.group(source)?;
        let keys = published.message.split([' ', ',']);
        let keys = keys.filter_map(|it| it.split_once('/'));
        let keys = keys.map(|(namespace, name)| ObjectKey::new(namespace, name));
        let keys = keys.filter(|key| !self.except.contains(key));
        let lasts = keys.filter_map(|key| {
            let known = group.daemon_sets.get(&key);
            let Some(known) = known.filter(|it| it.deleted.is_none()) else {
                return Some(DELETION_LASTS);
            };
            let has_a_pod = group
                .pods
                .iter()
                .any(|pod| pod.is_live() && known.owns(pod));
            (!has_a_pod).then_some(LABELS_LAST)
        });
        lasts.max()
    }
}
