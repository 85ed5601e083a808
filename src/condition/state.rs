//! One condition of one node at one time.

use std::fmt;

use jiff::Timestamp;

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

/// How many there are of something on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count<'a> {
    /// The number.
    pub number: u64,
    /// The thing.
    pub of: Counted<'a>,
}

/// What is counted on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted<'a> {
    /// Allocatable units of this resource.
    Resource(&'a str),
    /// Devices of this DRA driver without a taint that keeps pods off.
    Devices(&'a str),
}

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(resource) => write!(f, "{resource} to allocate"),
            Self::Devices(driver) => write!(f, "untainted devices of {driver}"),
        }
    }
}

impl<'a> Condition<'a> {
    /// Whether the status is unknown because what it depends on has not been seen yet.
    #[must_use]
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
