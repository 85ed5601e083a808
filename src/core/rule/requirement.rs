//! A condition that a rule requires, and how far a node's condition counts for it.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::api::{ConditionRequirement, ConditionStatus};
use crate::condition::{Condition, CriticalComponentClass, Detail, Names, NodeLabels, Source};
use crate::object::{NodeCondition, ObjectKey};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredCondition {
    pub kind: Arc<str>,
    pub source: Source,
    pub required: ConditionStatus,
    /// The status to assume if the node lacks the condition.
    pub default: Option<ConditionStatus>,
    /// How many there have to be, in place of the condition's own status.
    pub minimum: Option<Minimum>,
    /// The reasons with which the condition counts; all if empty.
    pub reasons: Vec<String>,
    /// The values with which a label counts; all if empty.
    pub values: Vec<String>,
    /// The `DaemonSet`s that are left out by name.
    pub except: Vec<ObjectKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Minimum {
    Number(NonZeroU64),
    /// As many as the node's label with this key says.
    FromLabel(String),
}

impl RequiredCondition {
    pub(super) fn compile(asked: ConditionRequirement, classes: &[CriticalComponentClass]) -> Self {
        let ours = asked.nodegate.unwrap_or_default();
        let number = ours.minimum.and_then(|it| u64::try_from(it).ok());
        let number = number.and_then(NonZeroU64::new).map(Minimum::Number);
        let except = ours.except.iter().filter_map(|it| it.split_once('/'));
        let except = except.map(|(namespace, name)| ObjectKey::new(namespace, name));
        Self {
            source: Source::of(&asked.type_, classes),
            kind: asked.type_.into(),
            required: asked.required_status,
            default: asked.default_status,
            minimum: number.or(ours.minimum_from_label.map(Minimum::FromLabel)),
            reasons: ours.reasons,
            values: ours.values,
            except: except.collect(),
        }
    }

    /// Why nothing may be changed by it: no class makes it.
    pub fn lacks_class(&self) -> Option<String> {
        let (prefix, _) = self.kind.rsplit_once('/')?;
        (self.source == Source::NoClass).then(|| {
            format!(
                "no critical component class of the configuration has the prefix {prefix}/ of {}: the rule changes nothing; \
                 see whether the controller has its configuration file",
                self.kind
            )
        })
    }

    pub fn status_if_missing(&self) -> ConditionStatus {
        self.default.unwrap_or(ConditionStatus::Unknown)
    }

    fn accepts(&self, reason: &str) -> bool {
        self.reasons.is_empty() || self.reasons.iter().any(|it| it == reason)
    }

    /// The status that counts for a condition as it stands on a Node, which has no counts and no values of labels.
    pub fn status_of(&self, reported: &NodeCondition) -> ConditionStatus {
        if self.accepts(&reported.reason) {
            reported.status
        } else {
            ConditionStatus::Unknown
        }
    }

    /// The allocatable resource that the rule counts.
    pub fn counted_resource(&self) -> Option<&str> {
        match &self.source {
            Source::Resource(resource) if self.minimum.is_some() => Some(resource),
            _ => None,
        }
    }

    /// The status that counts for a condition of the node, with the reason if `reasons`, `values` or `minimum` decide, not the condition.
    pub fn judge<'a>(
        &'a self,
        condition: &Condition<'a>,
        labels: NodeLabels<'_, 'a>,
    ) -> (ConditionStatus, Option<Detail<'a>>) {
        let status = condition.status;
        let reason = condition.detail.reason();
        if status != ConditionStatus::Unknown
            && !self.accepts(reason)
            && let Some(accepted) = Names::of(self.reasons.iter().map(String::as_str))
        {
            let detail = Detail::ReasonNotAccepted {
                status,
                reason,
                accepted,
            };
            return (ConditionStatus::Unknown, Some(detail));
        }
        if let Detail::LabelPresent { key, value } = condition.detail
            && !self.values.iter().any(|it| it == value)
            && let Some(accepted) = Names::of(self.values.iter().map(String::as_str))
        {
            let detail = Detail::LabelNotAccepted {
                key,
                value,
                accepted,
            };
            return (ConditionStatus::False, Some(detail));
        }
        let Some(minimum) = &self.minimum else {
            return (status, None);
        };
        let Some(count) = condition.count else {
            return (ConditionStatus::Unknown, None);
        };
        let (status, detail) = match minimum.on(labels) {
            Err(unknown) => (ConditionStatus::Unknown, unknown),
            Ok(minimum) if count.number >= minimum.get() => (
                ConditionStatus::True,
                Detail::MinimumReached { count, minimum },
            ),
            Ok(minimum) => (
                ConditionStatus::False,
                Detail::BelowMinimum { count, minimum },
            ),
        };
        (status, Some(detail))
    }
}

impl Minimum {
    /// How many there have to be on a node with these labels, or why its label does not say it.
    pub fn on<'a>(&'a self, labels: NodeLabels<'_, 'a>) -> Result<NonZeroU64, Detail<'a>> {
        let label = match self {
            Self::Number(number) => return Ok(*number),
            Self::FromLabel(label) => label,
        };
        let value = labels.get(label);
        let number = value.and_then(|value| value.parse().ok());
        number.ok_or(Detail::MinimumUnknown { label, value })
    }
}

/// What the rule requires, after the condition's type.
impl fmt::Display for RequiredCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "must be {}", self.required)?;
        match &self.minimum {
            None => {}
            Some(Minimum::Number(number)) => write!(f, " (minimum {number})")?,
            Some(Minimum::FromLabel(label)) => write!(f, " (minimum from label {label})")?,
        }
        if !self.values.is_empty() {
            write!(f, " ({})", self.values.join(" or "))?;
        }
        if !self.except.is_empty() {
            let except: Vec<String> = self.except.iter().map(ToString::to_string).collect();
            write!(f, " except {}", except.join(", "))?;
        }
        match self.reasons.as_slice() {
            [] => Ok(()),
            reasons => write!(f, " for reason {}", reasons.join(" or ")),
        }
    }
}
