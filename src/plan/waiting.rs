//! What the critical components on a node lack, for Events.

use crate::condition::Detail;

/// A question of Gardener's about critical components that is answered with no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// The kind of the missing thing.
    pub for_what: Component,
    /// What is missing.
    pub detail: Detail<'a>,
}

/// The kind of thing that a critical component lacks. Gardener's controller has an event reason for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// The pod of a `DaemonSet`.
    DaemonSet,
    /// A pod's readiness.
    Pod,
    /// A CSI driver's registration.
    CsiDriver,
}

impl Component {
    /// Gardener's event reason.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::DaemonSet => "UnscheduledNodeCriticalDaemonSets",
            Self::Pod => "UnreadyNodeCriticalPods",
            Self::CsiDriver => "UnreadyRequiredCSIDrivers",
        }
    }
}

impl<'a> Waiting<'a> {
    /// What a condition with this detail waits for, if it is a component.
    pub(super) fn of(detail: &Detail<'a>) -> Option<Self> {
        let for_what = match detail {
            Detail::DaemonSetPodMissing { .. } | Detail::DaemonSetNotFound { .. } => {
                Component::DaemonSet
            }
            Detail::PodNotReady { .. } | Detail::PodOlderThanNode { .. } => Component::Pod,
            Detail::CsiDriverMissing { .. }
            | Detail::CsiDriverWithoutCount { .. }
            | Detail::CsiDriverUnhealthy { .. } => Component::CsiDriver,
            _ => return None,
        };
        Some(Self {
            for_what,
            detail: detail.clone(),
        })
    }
}
