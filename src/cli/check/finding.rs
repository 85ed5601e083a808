//! What is checked, and what was found.

use serde::Serialize;

use crate::documentation;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Severity {
    /// Something cannot work as written.
    Error,
    /// Something may not work as written.
    Warning,
    /// It could not be checked.
    Unknown,
    /// It works as it should.
    Ok,
}

/// Something that is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub id: &'static str,
    pub severity: Severity,
    /// The heading in the documentation.
    pub title: &'static str,
}

impl Check {
    /// A class's label is on only one of a `DaemonSet` and its pod template.
    pub(crate) const LABEL_ON_ONE_PLACE: Self = Self::error("NG001", "Label in one place only");
    /// A critical `DaemonSet` does not tolerate the taint of the rule that waits for it.
    pub(crate) const SHUT_OUT: Self = Self::error("NG002", "Missing toleration");
    /// A rule waits for a class without any `DaemonSet`.
    pub(crate) const EMPTY_CLASS: Self = Self::warning("NG003", "A class with no DaemonSet");
    /// A labelled `DaemonSet` is in a namespace that its class does not cover.
    pub(crate) const OUTSIDE_NAMESPACES: Self =
        Self::warning("NG004", "Label outside the class's namespaces");
    /// Something waits for itself.
    pub(crate) const DEADLOCK: Self = Self::error("NG005", "Deadlock");
    /// A critical `DaemonSet` selects nodes by a label that is added after they join.
    pub(crate) const LATE_LABEL: Self =
        Self::warning("NG006", "Label that comes after the node joins");
    /// A taint of new nodes evicts pods.
    pub(crate) const EVICTS: Self = Self::warning("NG007", "NoExecute");
    /// A heartbeat timeout is shorter than the reporter's heartbeat period.
    pub(crate) const SHORT_HEARTBEAT: Self =
        Self::warning("NG008", "Heartbeat timeout below the heartbeat period");
    /// A `NodePool` lacks the startup taint.
    pub(crate) const NODE_POOL: Self = Self::warning("NG009", "NodePool without the startup taint");
    /// Cluster Autoscaler does not treat the taint as a startup taint.
    pub(crate) const AUTOSCALER: Self =
        Self::warning("NG010", "Cluster Autoscaler without the startup taint");
    /// A `DaemonSet` that a rule names does not exist.
    pub(crate) const NO_SUCH_DAEMON_SET: Self = Self::error("NG011", "No such DaemonSet");
    /// Several rules govern the same taint on the same nodes.
    pub(crate) const CONFLICT: Self = Self::error("NG012", "Rules that conflict");
    /// A rule cannot be used.
    pub(crate) const REJECTED: Self = Self::error("NG013", "A rule that cannot be used");
    /// No component provides a condition.
    pub(crate) const NOBODY: Self = Self::error("NG014", "A condition that nothing makes");
    /// An object cannot be parsed.
    pub(crate) const UNREADABLE: Self = Self::error("NG015", "An object that cannot be read");
    /// A taint looks like a rule's, and no rule removes it.
    pub(crate) const STRAY_TAINT: Self = Self::error("NG017", "A taint that no rule removes");
    /// A `DaemonSet` that a rule names runs on none of the rule's nodes.
    pub(crate) const ON_NO_NODE: Self = Self::warning("NG018", "A DaemonSet on none of the nodes");

    /// The scheduler itself waits for a CSI driver that a rule names.
    pub(crate) const SCHEDULER_WAITS: Self =
        Self::warning("NG019", "A driver that the scheduler waits for");

    pub(crate) const API_SERVER: Self = Self::error("NG101", "API server");
    pub(crate) const CLOCK: Self = Self::warning("NG102", "clock");
    pub(crate) const PERMISSIONS: Self = Self::warning("NG103", "permissions");
    pub(crate) const DEFINITION: Self = Self::error("NG104", "CRD");
    pub(crate) const GATED_AT_BIRTH: Self = Self::warning("NG105", "gated at birth");
    pub(crate) const WEBHOOK: Self = Self::error("NG106", "webhook");
    pub(crate) const CONTROLLER: Self = Self::error("NG107", "controller");
    pub(crate) const DELETIONS: Self = Self::error("NG108", "deletions");

    #[cfg(test)]
    pub(crate) const ALL: [Self; 26] = [
        Self::LABEL_ON_ONE_PLACE,
        Self::SHUT_OUT,
        Self::EMPTY_CLASS,
        Self::OUTSIDE_NAMESPACES,
        Self::DEADLOCK,
        Self::LATE_LABEL,
        Self::EVICTS,
        Self::SHORT_HEARTBEAT,
        Self::NODE_POOL,
        Self::AUTOSCALER,
        Self::NO_SUCH_DAEMON_SET,
        Self::CONFLICT,
        Self::REJECTED,
        Self::NOBODY,
        Self::UNREADABLE,
        Self::STRAY_TAINT,
        Self::ON_NO_NODE,
        Self::SCHEDULER_WAITS,
        Self::API_SERVER,
        Self::CLOCK,
        Self::PERMISSIONS,
        Self::DEFINITION,
        Self::GATED_AT_BIRTH,
        Self::WEBHOOK,
        Self::CONTROLLER,
        Self::DELETIONS,
    ];

    const fn error(id: &'static str, title: &'static str) -> Self {
        Self {
            id,
            severity: Severity::Error,
            title,
        }
    }

    const fn warning(id: &'static str, title: &'static str) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(id, title)
        }
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub id: &'static str,
    pub severity: Severity,
    /// The heading in the documentation.
    #[serde(skip)]
    pub title: &'static str,
    /// The object, as `kind/name` or `kind/namespace/name`, its place in a file, or a part of the installation.
    pub object: String,
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// The address of its section in the documentation.
    pub page: String,
}

impl Finding {
    pub(crate) fn new(
        check: Check,
        object: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            id: check.id,
            severity: check.severity,
            title: check.title,
            object: object.into(),
            message: message.into(),
            fix: fix.into(),
            page: documentation::page(&format!("kubectl/check.md#{}", check.id.to_lowercase())),
        }
    }

    /// The same with another severity.
    pub(crate) fn but(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }
}
