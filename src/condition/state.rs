//! One condition of one node at one time.

use jiff::Timestamp;

use super::detail::Detail;
use crate::api::ConditionStatus;

/// One condition of one node, with the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The status.
    pub status: ConditionStatus,
    /// Why it is so.
    pub detail: Detail<'a>,
    /// When the status changed last, where the reporter says so.
    pub transition: Option<Timestamp>,
    /// When to look again even if nothing happens: the time from which a fact will be believed.
    pub recheck: Option<Timestamp>,
}

impl<'a> Condition<'a> {
    /// Whether nothing is known of it yet because what says it has still to be seen.
    #[must_use]
    pub fn is_to_be_seen(&self) -> bool {
        matches!(self.detail, Detail::DaemonSetNotSeen { .. })
    }

    /// A condition without times.
    pub(super) fn new(status: ConditionStatus, detail: Detail<'a>) -> Self {
        Self {
            status,
            detail,
            transition: None,
            recheck: None,
        }
    }

    /// The condition is `True`.
    pub(super) fn met(detail: Detail<'a>) -> Self {
        Self::new(ConditionStatus::True, detail)
    }

    /// The condition is `False`.
    pub(super) fn unmet(detail: Detail<'a>) -> Self {
        Self::new(ConditionStatus::False, detail)
    }
}
