//! What is wrong with rules and what they wait for: status, webhook and command line print the same findings, each worded once.

mod backing;
mod of_rule;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::object::ObjectKey;
use crate::text::{documentation, stated};
pub use backing::{Around, Backing, left_out_on};
use of_rule::toleration;
pub use of_rule::{evicts, remedy, short_heartbeat};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Something cannot work as written.
    Error,
    /// Something may not work as written.
    Warning,
    Unknown,
    Ok,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Check {
    pub id: &'static str,
    pub severity: Severity,
    /// The heading in the documentation.
    #[serde(skip)]
    pub title: &'static str,
    /// The type and reason of the condition that says so in a rule's status; empty if none does.
    #[serde(skip)]
    pub published: &'static [(&'static str, &'static str)],
}

macro_rules! checks {
    ($($name:ident: $severity:ident $id:literal $title:literal $(=> $kind:literal $reason:literal)?;)+) => {
        impl Check {
            $(#[doc = $id] pub const $name: Self = Self {
                id: $id,
                severity: Severity::$severity,
                title: $title,
                published: &[$(($kind, $reason))?],
            };)+

            pub const ALL: &[Self] = &[$(Self::$name),+];
        }
    };
}

checks! {
    LABEL_ON_ONE_PLACE: Error "NG001" "Label in one place only";
    SHUT_OUT: Error "NG002" "Missing toleration" => "DaemonSetsShutOut" "TaintNotTolerated";
    EMPTY_CLASS: Warning "NG003" "A class with no DaemonSet" => "NothingToWaitFor" "NoDaemonSetInClass";
    OUTSIDE_NAMESPACES: Warning "NG004" "Label outside the class's namespaces" => "DaemonSetsOutsideNamespaces" "NamespaceNotCovered";
    DEADLOCK: Error "NG005" "Deadlock";
    LATE_LABEL: Warning "NG006" "Label that comes after the node joins";
    EVICTS: Warning "NG007" "NoExecute";
    SHORT_HEARTBEAT: Warning "NG008" "Heartbeat timeout below the heartbeat period";
    NODE_POOL: Warning "NG009" "NodePool without the startup taint";
    AUTOSCALER: Warning "NG010" "Cluster Autoscaler without the startup taint";
    NO_SUCH_DAEMON_SET: Error "NG011" "No such DaemonSet" => "ConditionsNotMade" "NoSuchDaemonSet";
    CONFLICT: Error "NG012" "Rules that conflict";
    REJECTED: Error "NG013" "A rule that cannot be used";
    NOBODY: Error "NG014" "A condition that nothing makes" => "ConditionsNotMade" "CountedAsAbsent";
    NO_SUCH_KIND: Error "NG014" "A condition that nothing makes" => "ConditionsNotMade" "NoSuchKind";
    NO_SUCH_CLASS: Error "NG014" "A condition that nothing makes" => "ConditionsNotMade" "NoSuchClass";
    NO_SUCH_CSI_DRIVER: Error "NG014" "A condition that nothing makes" => "ConditionsNotMade" "NoSuchCSIDriver";
    UNREADABLE: Error "NG015" "An object that cannot be read";
    STRAY_TAINT: Error "NG017" "A taint that no rule removes";
    ON_NO_NODE: Warning "NG018" "A DaemonSet on none of the nodes" => "NothingToWaitFor" "DaemonSetOnNoNode";
    SCHEDULER_WAITS: Warning "NG019" "A driver that the scheduler waits for";
    FAILING: Error "NG016" "A node to which a rule cannot be applied";
    UNPROBED: Warning "NG020" "A DaemonSet without a readiness probe";
    NEVER_RENEWED: Warning "NG021" "A condition that nobody renews" => "HeartbeatTimeoutWaits" "NeverRenewed";
    DESCHEDULER: Warning "NG022" "A descheduler that evicts for a taint";
    OTHER_MEANING: Error "NG023" "A rule that means something else to the other controller";
    MET_BY_NO_NODE: Warning "NG024" "A rule that no node meets" => "MetByNoNode" "NoNodeMeetsConditions";
    SELECTS_NO_NODE: Warning "NG025" "A rule that selects no node" => "SelectsNoNode" "NoNodeMatches";
    API_SERVER: Error "NG101" "API server";
    CLOCK: Warning "NG102" "clock";
    PERMISSIONS: Warning "NG103" "permissions";
    DEFINITION: Error "NG104" "CRD";
    GATED_AT_BIRTH: Warning "NG105" "gated at birth";
    WEBHOOK: Error "NG106" "webhook";
    CONTROLLER: Error "NG107" "controller";
    DELETIONS: Error "NG108" "deletions";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    #[serde(flatten)]
    pub check: Check,
    /// The object, as `kind/name` or `kind/namespace/name`, its place in a file, or a part of the installation.
    pub object: String,
    /// What is wrong, as a sentence.
    pub message: String,
    /// How to fix it; empty where the message says so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// The address of its section in the documentation.
    pub page: String,
}

impl Finding {
    pub fn new(
        check: Check,
        object: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            check,
            object: object.into(),
            message: message.into(),
            fix: fix.into(),
            page: documentation::page(&format!("kubectl/check.md#{}", check.id.to_lowercase())),
        }
    }

    pub fn of_rule(check: Check, rule: &str, what: impl Into<String>, fix: &str) -> Self {
        Self::new(check, format!("rule/{rule}"), what, fix)
    }

    pub fn of_daemon_set(check: Check, key: &ObjectKey, what: String, fix: &str) -> Self {
        Self::new(check, format!("daemonset/{key}"), what, fix)
    }

    /// Says what to do about the rule's taint with this key where the policy of [`remedy`] is installed or could be.
    pub fn remedy(&mut self, rule: &str, key: &str, is_installed: bool) {
        let daemon_set = self.object.strip_prefix("daemonset/");
        if let Some((namespace, name)) = daemon_set.and_then(|it| it.split_once('/')) {
            let daemon_set = ObjectKey::new(namespace, name);
            let remedy = remedy(&daemon_set, rule, key, is_installed);
            for text in [&mut self.message, &mut self.fix] {
                *text = text.replace(&toleration(key), &remedy);
            }
        }
    }

    /// The same, with another severity.
    pub fn but(mut self, severity: Severity) -> Self {
        self.check.severity = severity;
        self
    }

    /// Whether a condition of this type in a rule's status says it.
    pub fn is_published_as(&self, kind: &str) -> bool {
        self.check.published.iter().any(|(of, _)| *of == kind)
    }
}

/// Findings of one kind as one, which says the first few, how many more there are, and how to fix the first.
pub fn summed_up<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<Finding> {
    let findings: Vec<&Finding> = findings.collect();
    let first = *findings.first()?;
    let mut message = stated(findings.iter().map(|it| it.message.clone()));
    if !first.fix.is_empty() {
        message = format!("{message} ({})", first.fix);
    }
    Some(Finding {
        message,
        ..first.clone()
    })
}
