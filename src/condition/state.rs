//! One condition of one node at one time.

use jiff::Timestamp;

use super::count::Count;
use super::detail::Detail;
use crate::api::ConditionStatus;

/// One condition of one node, with the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The status.
    pub status: ConditionStatus,
    /// The reason for the status.
    pub detail: Detail<'a>,
    /// When the status last changed, if the reporter says so.
    pub transition: Option<Timestamp>,
    /// When to evaluate again even if nothing happens: a fact counts from then on.
    pub recheck: Option<Timestamp>,
    /// How many there are of what a rule may ask a minimum of; `None` if the source counts nothing, or cannot at present.
    pub count: Option<Count<'a>>,
}

impl<'a> Condition<'a> {
    /// Whether the status is unknown because what it depends on has not been seen yet.
    pub fn is_to_be_seen(&self) -> bool {
        matches!(self.detail, Detail::NotSeen { .. })
    }

    /// A condition without a transition time.
    pub(super) fn new(status: ConditionStatus, detail: Detail<'a>) -> Self {
        Self {
            status,
            detail,
            transition: None,
            recheck: None,
            count: None,
        }
    }

    /// A condition that is `True`.
    pub(super) fn met(detail: Detail<'a>) -> Self {
        Self::new(ConditionStatus::True, detail)
    }

    /// A condition that is `False`.
    pub(super) fn unmet(detail: Detail<'a>) -> Self {
        Self::new(ConditionStatus::False, detail)
    }
}
