//! The Kubernetes Events that the controller posts: reason, action, type and wording of each.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use super::broken::Broken;
use super::error::{ADD_TAINT_ERROR, REMOVE_TAINT_ERROR};
use super::status;
use crate::api::names::{GROUP, KIND, VERSION};
use crate::guard::Report;
use crate::plan::{ChangeKind, MissingPart, PartKind, TaintChange, WhyPassedOver};
use crate::rule::{CompiledSpec, Rule, is_foreign};
use crate::wording::cut;

/// The longest note that the API server accepts, in bytes.
const MAX_NOTE: usize = 1024;

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Normal,
    /// Someone may have to act.
    Warning,
}

impl Tone {
    /// The type as the Events API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The fixed fields of all notices of one kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Topic {
    /// The Event's `reason`.
    pub reason: &'static str,
    /// The Event's `action`.
    pub action: &'static str,
    /// The Event's `type`.
    pub tone: Tone,
    /// The kind of the object that the Event is posted on.
    pub on: &'static str,
    /// When it is posted, for the reference pages.
    pub when: &'static str,
}

macro_rules! topics {
    ($($name:ident: $tone:ident $reason:tt $action:literal on $on:literal, $when:literal;)*) => {
        $(pub(super) const $name: Topic = Topic {
            reason: $reason,
            action: $action,
            tone: Tone::$tone,
            on: $on,
            when: $when,
        };)*

        /// All topics.
        pub const TOPICS: &[&Topic] = &[$(&$name),*];
    };
}

topics! {
    TAINT_ADDED: Normal "TaintAdded" "AddTaint" on "Node",
        "A rule's taint has been added to the node, by the controller or as the node was created.";
    TAINT_REMOVED: Normal "TaintRemoved" "RemoveTaint" on "Node",
        "A rule's taint has been lifted.";
    TAINT_NOT_ADDED: Warning (ADD_TAINT_ERROR) "AddTaint" on "Node",
        "The API server refuses to add a rule's taint. Repeated when its message changes.";
    TAINT_NOT_REMOVED: Warning (REMOVE_TAINT_ERROR) "RemoveTaint" on "Node",
        "The API server refuses to remove a rule's taint. Repeated when its message changes.";
    BOOTSTRAP_COMPLETED: Normal "BootstrapCompleted" "CompleteBootstrap" on "Node",
        "A bootstrap-only rule's taint has been lifted: the rule leaves the node alone from now on. Says after \
         how long, and which condition came last. Not of another project's taint.";
    HELD: Warning "NodeHeld" "Hold" on "Node",
        "A rule has kept the node closed for a minute: what each condition lacks; again when that is something else. Critical components that it waits for have events with names of \
         their own (`Unready...`, `Unscheduled...`).";
    COMPONENTS_READY: Normal "NodeCriticalComponentsReady" "RemoveTaint" on "Node",
        "Another project's taint has been lifted, whose rule waits for critical components; in Gardener's words.";
    RELEASED_UNREADY: Warning "NodeReleasedUnready" "RemoveTaint" on "Node",
        "The node was not ready in time and has been opened anyway: the rule's `repair.action` is `Release`.";
    TAINT_ADOPTED: Normal "TaintAdopted" "AdoptTaint" on "Node",
        "A rule has adopted a taint that it did not add.";
    TAINT_CONTENDED: Warning "TaintContended" "Wait" on "Node",
        "Another component keeps undoing what a rule does to its taint.";
    DAEMON_SETS_UNSCHEDULED: Warning (PartKind::DaemonSet.reason()) "WaitForCriticalComponents" on "Node",
        "A critical `DaemonSet` that is meant for the node has no pod there for a second or more.";
    PODS_UNREADY: Warning (PartKind::Pod.reason()) "WaitForCriticalComponents" on "Node",
        "A critical pod on the node has not been Ready for a second or more.";
    DRIVERS_UNREADY: Warning (PartKind::CsiDriver.reason()) "WaitForCriticalComponents" on "Node",
        "A CSI driver that critical pods wait for has not been registered on the node for a second or more.";
    LATE: Warning "NodeNotReadyInTime" "RepairNode" on "Node",
        "The node was not ready in time, and the rule asks for no repair.";
    REPAIR_SPARED: Normal "NodeRepairSpared" "RepairNode" on "Node",
        "The node was not ready in time, and an annotation on it, its `NodeClaim` or its `NodePool` forbids repair.";
    REPAIR_IMPOSSIBLE: Warning "NodeRepairImpossible" "RepairNode" on "Node",
        "The node was not ready in time, and the rule cannot repair it.";
    REPAIR_BLOCKED: Warning "NodeRepairBlocked" "RepairNode" on "Node",
        "The node was not ready in time, and too many nodes are unhealthy to repair it. Repeated every 5 minutes.";
    CLAIM_DELETED: Warning "NodeClaimDeleted" "RepairNode" on "Node",
        "The node's `NodeClaim` has been deleted, so that Karpenter replaces it.";
    NODE_UNREADABLE: Warning "ObjectUnreadable" "Read" on "Node",
        "Something about the node cannot be parsed: it is left as it is.";
    RULE_UNREADABLE: Warning "ObjectUnreadable" "Read" on "NodeReadinessRule",
        "The rule, or a `DaemonSet` that it waits for, cannot be parsed.";
    KARPENTER_UNREADABLE: Warning "ObjectUnreadable" "Read" on "NodeClaim, NodePool",
        "The object cannot be parsed: repair ignores it.";
    RULE_REJECTED: Warning "RuleRejected" "Compile" on "NodeReadinessRule",
        "The rule cannot be used as it is.";
    FIELDS_PRUNED: Warning (status::FIELDS_PRUNED) "Compile" on "NodeReadinessRule",
        "Another project's definition has dropped the rule's fields under `nodegate`: nothing is changed for it.";
    ALL_SUSPENDED: Warning "RulesSuspended" "Suspend" on "NodeReadinessRule",
        "All rules are suspended: this one changes nothing.";
    ALL_GO_ON: Normal "RulesResumed" "Suspend" on "NodeReadinessRule",
        "All rules were suspended, and are resumed.";
    FINALIZERS_UNWRITTEN: Warning "FinalizerError" "PatchFinalizers" on "NodeReadinessRule",
        "The API server refuses to change the rule's finalizer.";
    STATUS_UNWRITTEN: Warning "StatusUpdateError" "PatchStatus" on "NodeReadinessRule",
        "The API server refuses to change the rule's status.";
    DISRUPTION_LIMITED: Warning "DisruptionLimited" "HoldBack" on "NodeReadinessRule",
        "The rule's disruption limit keeps nodes open that are to be closed.";
    SHUT_OUT: Warning "DaemonSetsShutOut" "Evaluate" on "NodeReadinessRule",
        "`DaemonSet`s do not tolerate the rule's taint: it waits in vain for those that it names, and not for those of a class.";
    OUTSIDE_NAMESPACES: Warning "DaemonSetsOutsideNamespaces" "Evaluate" on "NodeReadinessRule",
        "Labelled `DaemonSet`s are in namespaces that their class does not cover.";
}

/// The object that a notice is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The object's API version.
    pub api_version: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Option<Arc<str>>,
}

impl About {
    /// A node.
    pub fn node(name: &Arc<str>, uid: &Arc<str>) -> Self {
        Self {
            api_version: "v1".into(),
            kind: "Node",
            name: name.clone(),
            uid: Some(uid.clone()),
        }
    }

    /// A rule.
    pub fn rule(rule: &Rule) -> Self {
        Self::rule_called(&rule.name, &rule.uid)
    }

    fn rule_called(name: &str, uid: &str) -> Self {
        Self {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: KIND,
            name: name.into(),
            uid: Some(uid.into()),
        }
    }
}

/// An Event to post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The object that it is about.
    pub about: About,
    /// Another object that is involved.
    pub related: Option<About>,
    /// The fields that it shares with all notices of its kind.
    pub topic: &'static Topic,
    /// The text, no longer than the API server accepts.
    pub note: String,
}

impl Notice {
    pub(super) fn new(about: About, topic: &'static Topic, note: String) -> Self {
        Self {
            about,
            related: None,
            topic,
            note: cut(note, MAX_NOTE),
        }
    }

    /// A taint change that was made. A second notice follows if the rule opened a node that was not ready.
    pub fn of_change(node: &About, change: &TaintChange) -> Vec<Self> {
        let TaintChange {
            rule_name,
            key,
            effect,
            why,
            ..
        } = change;
        let (topic, what) = match change.kind {
            ChangeKind::Added => (&TAINT_ADDED, "added"),
            ChangeKind::Removed => (&TAINT_REMOVED, "removed"),
        };
        let (topic, note) = if change.components_ready && is_foreign(key) {
            let note = "every critical component is ready on this node";
            (&COMPONENTS_READY, note.into())
        } else {
            let note = format!("Taint '{key}:{effect}' {what} by rule '{rule_name}'");
            (topic, note)
        };
        let mut notices = vec![Self::new(node.clone(), topic, note)];
        if change.gave_up {
            let note = format!(
                "Rule '{rule_name}' has released this node although it is not ready: {why}"
            );
            notices.push(Self::new(node.clone(), &RELEASED_UNREADY, note));
        }
        notices
    }

    /// A taint change that the API server refused.
    pub fn of_failure(node: About, change: &TaintChange, why: &str) -> Self {
        let topic = match change.kind {
            ChangeKind::Added => &TAINT_NOT_ADDED,
            ChangeKind::Removed => &TAINT_NOT_REMOVED,
        };
        let note = format!("Rule '{}' {why}", change.rule_name);
        Self {
            related: Some(About::rule_called(&change.rule_name, &change.rule_uid)),
            ..Self::new(node, topic, note)
        }
    }

    /// The API server refused to change a rule's finalizers.
    pub fn of_unwritten_finalizers(rule: &Rule, why: &str) -> Self {
        Self::new(About::rule(rule), &FINALIZERS_UNWRITTEN, why.into())
    }

    /// The API server refused to write a rule's status.
    pub fn of_unwritten_status(rule: &Rule, why: &str) -> Self {
        Self::new(About::rule(rule), &STATUS_UNWRITTEN, why.into())
    }

    /// All rules are suspended, or resumed.
    pub fn of_suspension(rule: &Rule, suspended: bool) -> Self {
        let (topic, note) = if suspended {
            (
                &ALL_SUSPENDED,
                "all rules are suspended: nothing is changed on nodes",
            )
        } else {
            (
                &ALL_GO_ON,
                "rules are resumed, except those with spec.nodegate.suspend",
            )
        };
        Self::new(About::rule(rule), topic, note.into())
    }

    /// A taint of this rule that the node was created with.
    pub fn of_birth(node: About, rule: &Rule, spec: &CompiledSpec) -> Self {
        let note = format!(
            "Taint '{}:{}' added by rule '{}' as the node was created",
            spec.taint.key, spec.effect, rule.name
        );
        Self::new(node, &TAINT_ADDED, note)
    }

    /// A taint that the rule did not add but manages from now on.
    pub fn of_adoption(node: About, rule: &Rule, spec: &CompiledSpec) -> Self {
        let note = format!(
            "Taint '{}:{}' is now managed by rule '{}'",
            spec.taint.key, spec.effect, rule.name
        );
        Self::new(node, &TAINT_ADOPTED, note)
    }

    /// A bootstrap that was completed.
    pub fn of_completion(
        node: About,
        rule: &str,
        took: Option<SignedDuration>,
        last: Option<&str>,
    ) -> Self {
        let took = took.map(|took| format!(" after {}s", took.as_secs().max(0)));
        let last = last.map(|condition| format!("; {condition} came last"));
        let note = format!(
            "Bootstrap of this node completed under rule '{rule}'{}{}",
            took.unwrap_or_default(),
            last.unwrap_or_default()
        );
        Self::new(node, &BOOTSTRAP_COMPLETED, note)
    }

    /// A rule has kept the node closed for a while, for this reason.
    pub fn of_hold(node: About, rule: &Rule, why: &str) -> Self {
        let note = format!("Rule '{}' keeps this node closed: {why}", rule.name);
        Self {
            related: Some(About::rule(rule)),
            ..Self::new(node, &HELD, note)
        }
    }

    /// Critical components have been missing for a while.
    pub fn of_missing(node: About, missing: &MissingPart<'_>) -> Self {
        let topic = match missing.kind {
            PartKind::DaemonSet => &DAEMON_SETS_UNSCHEDULED,
            PartKind::Pod => &PODS_UNREADY,
            PartKind::CsiDriver => &DRIVERS_UNREADY,
        };
        Self::new(node, topic, missing.detail.to_string())
    }

    /// Someone has undone a change so often that the controller pauses before it makes the change again.
    pub fn of_contention(
        node: About,
        change: &TaintChange,
        times: u32,
        within: Duration,
        pause: Duration,
    ) -> Self {
        let (they, we) = match change.kind {
            ChangeKind::Added => ("taking off", "puts on"),
            ChangeKind::Removed => ("putting back", "lifts"),
        };
        let note = format!(
            "Another component keeps {they} taint '{}', which rule '{}' {we}: {times} times in {} s. The rule leaves it so for \
             {} s, and longer each time, until that stops. The API server's audit log names the other component; let only \
             one of the two manage this taint",
            change.taint(),
            change.rule_name,
            within.as_secs().max(1),
            pause.as_secs().max(1),
        );
        Self::new(node, &TAINT_CONTENDED, note)
    }

    /// The controller leaves a node as it is because one of its objects is unreadable.
    pub fn of_unreadable_node(node: About, broken: &Broken) -> Self {
        let note = format!("This node is left as it is: {broken}");
        Self::new(node, &NODE_UNREADABLE, note)
    }

    /// An unreadable `DaemonSet`, reported on a rule that waits for its class.
    pub fn of_unreadable_daemon_set(rule: &Rule, broken: &Broken) -> Self {
        let note = format!("{broken}; its last readable version stays in use, if there was one");
        Self::new(About::rule(rule), &RULE_UNREADABLE, note)
    }

    /// Any other unreadable object, reported on the object itself.
    pub fn of_unreadable(object: About, broken: &Broken) -> Self {
        let topic = if object.kind == KIND {
            &RULE_UNREADABLE
        } else {
            &KARPENTER_UNREADABLE
        };
        Self::new(object, topic, broken.to_string())
    }

    /// A rule that cannot be used as it is.
    pub fn of_rejection(rule: &Rule, why: &str) -> Self {
        let topic = if rule.pruned {
            &FIELDS_PRUNED
        } else {
            &RULE_REJECTED
        };
        Self::new(About::rule(rule), topic, why.into())
    }

    /// A disruption guard that keeps nodes open.
    pub fn of_guard(rule: &Rule, report: &Report) -> Self {
        Self::new(About::rule(rule), &DISRUPTION_LIMITED, report.to_string())
    }

    /// `DaemonSet`s that a rule does not wait for, or in vain.
    pub fn of_passed_over(rule: &Rule, why: WhyPassedOver, note: String) -> Self {
        let topic = match why {
            WhyPassedOver::ShutOut => &SHUT_OUT,
            WhyPassedOver::OutsideNamespaces => &OUTSIDE_NAMESPACES,
        };
        Self::new(About::rule(rule), topic, note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::TaintEffect;

    #[test]
    fn a_note_is_as_long_as_the_api_server_takes() {
        let about = About::node(&"n".into(), &"uid".into());
        let notice = Notice::new(about, &LATE, "é".repeat(MAX_NOTE + 1));
        assert!(notice.note.len() <= MAX_NOTE, "{}", notice.note.len());
        assert!(notice.note.ends_with("..."), "{}", notice.note);
    }

    #[test]
    fn a_refused_taint_is_told_of_on_the_node_and_names_its_rule() {
        let change = TaintChange {
            kind: ChangeKind::Added,
            rule_name: "r".into(),
            rule_uid: "r-uid".into(),
            key: "k".into(),
            effect: TaintEffect::NoSchedule,
            transition: None,
            why: String::new(),
            components_ready: false,
            gave_up: false,
        };
        let about = About::node(&"n".into(), &"n-uid".into());
        let notice = Notice::of_failure(about, &change, "no");
        let related = notice.related.map(|it| (it.kind, it.name, it.uid));
        assert_eq!(related, Some((KIND, "r".into(), Some("r-uid".into()))));
    }

    #[test]
    fn each_topic_is_one_of_its_own() {
        for (index, topic) in TOPICS.iter().enumerate() {
            let others = &TOPICS[..index];
            let is_same = |other: &&&Topic| (other.reason, other.on) == (topic.reason, topic.on);
            assert_eq!(others.iter().find(is_same), None);
        }
    }
}
