//! What there is to find, and what is found.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Something does not do what it was written for.
    Error,
    /// Something may not do what it was written for.
    Warning,
}

/// What there is to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// A class's label is on a `DaemonSet` or on its pod template, and not on both.
    LabelOnOnePlace,
    /// A critical `DaemonSet` does not tolerate the taint of the rule that waits for it.
    ShutOut,
    /// A rule waits for a class of which there is no `DaemonSet`.
    EmptyClass,
    /// A labelled `DaemonSet` is in a namespace that its class does not cover.
    OutsideNamespaces,
    /// Something waits for itself.
    Deadlock,
    /// A critical `DaemonSet` selects nodes by a label that comes after birth.
    LateLabel,
    /// A taint of new nodes evicts.
    Evicts,
    /// A heartbeat timeout is shorter than the reporter beats.
    ShortHeartbeat,
    /// A `NodePool` lacks the startup taint.
    NodePool,
    /// Cluster Autoscaler does not know the taint.
    Autoscaler,
    /// A `DaemonSet` that a rule names does not exist.
    NoSuchDaemonSet,
    /// Rules want the same taint on the same nodes.
    Conflict,
    /// A rule cannot be used.
    Rejected,
    /// Nothing makes a condition.
    Nobody,
    /// An object cannot be read.
    Unreadable,
}

impl Check {
    /// All of them, with their ids, how bad they are, and the headings under which the documentation has them.
    pub const ALL: [(Self, &'static str, Severity, &'static str); 15] = [
        (
            Self::LabelOnOnePlace,
            "NG001",
            Severity::Error,
            "Label on one place only",
        ),
        (
            Self::ShutOut,
            "NG002",
            Severity::Error,
            "Missing toleration",
        ),
        (
            Self::EmptyClass,
            "NG003",
            Severity::Warning,
            "A class with no DaemonSet",
        ),
        (
            Self::OutsideNamespaces,
            "NG004",
            Severity::Warning,
            "Label outside the class's namespaces",
        ),
        (Self::Deadlock, "NG005", Severity::Error, "Deadlock"),
        (
            Self::LateLabel,
            "NG006",
            Severity::Warning,
            "Label that comes after birth",
        ),
        (Self::Evicts, "NG007", Severity::Warning, "NoExecute"),
        (
            Self::ShortHeartbeat,
            "NG008",
            Severity::Warning,
            "Heartbeat timeout below the beat",
        ),
        (
            Self::NodePool,
            "NG009",
            Severity::Warning,
            "NodePool without the startup taint",
        ),
        (
            Self::Autoscaler,
            "NG010",
            Severity::Warning,
            "Cluster Autoscaler without the startup taint",
        ),
        (
            Self::NoSuchDaemonSet,
            "NG011",
            Severity::Error,
            "No such DaemonSet",
        ),
        (
            Self::Conflict,
            "NG012",
            Severity::Error,
            "Rules that conflict",
        ),
        (
            Self::Rejected,
            "NG013",
            Severity::Error,
            "A rule that cannot be used",
        ),
        (
            Self::Nobody,
            "NG014",
            Severity::Error,
            "A condition that nothing makes",
        ),
        (
            Self::Unreadable,
            "NG015",
            Severity::Error,
            "An object that cannot be read",
        ),
    ];

    fn row(self) -> &'static (Self, &'static str, Severity, &'static str) {
        let mut rows = Self::ALL.iter();
        rows.find(|row| row.0 == self).unwrap_or(&Self::ALL[0])
    }

    /// Its id.
    #[must_use]
    pub fn id(self) -> &'static str {
        self.row().1
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(self) -> Severity {
        self.row().2
    }

    /// Its heading in the documentation.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().3
    }
}

/// What is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// The id of what there is to find.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about, as `kind/name` or `kind/namespace/name`, or the place in a file.
    pub object: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub way_out: String,
    /// Where the documentation has more.
    pub page: String,
}

impl Fault {
    /// A finding about an object.
    #[must_use]
    pub fn new(
        check: Check,
        object: impl Into<String>,
        what: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Self {
        Self {
            id: check.id(),
            severity: check.severity(),
            object: object.into(),
            what: what.into(),
            way_out: way_out.into(),
            page: format!("docs/lint.md#{}", check.id().to_lowercase()),
        }
    }

    /// The same finding, only a warning.
    #[must_use]
    pub fn only_a_warning(self) -> Self {
        Self {
            severity: Severity::Warning,
            ..self
        }
    }
}
