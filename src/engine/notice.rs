//! The Kubernetes Events that the controller posts: reason, action, type and wording of each.

use std::sync::Arc;

use super::error::{ADD_TAINT_ERROR, REMOVE_TAINT_ERROR};
use super::status;
use nodegate_core::object::{Node, ResourceKind};
use nodegate_core::rule::Rule;
use nodegate_core::text::cut;

/// The longest note that the API server accepts, in bytes.
const MAX_NOTE: usize = 1024;

/// The fixed fields of all notices of one kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Topic {
    pub reason: &'static str,
    pub action: &'static str,
    /// The Event's `type`: `Warning` if someone may have to act.
    pub kind: &'static str,
    /// The kind of the object that the Event is posted on.
    pub on: &'static str,
    /// When it is posted, for the reference pages.
    pub when: &'static str,
}

macro_rules! topics {
    ($($name:ident: $kind:ident $reason:tt $action:literal on $on:literal, $when:literal;)*) => {
        $(pub(super) const $name: Topic = Topic {
            reason: $reason,
            action: $action,
            kind: stringify!($kind),
            on: $on,
            when: $when,
        };)*

        pub const TOPICS: &[&Topic] = &[$(&$name),*];
    };
}

topics! {
    TAINT_ADDED: Normal "TaintAdded" "AddTaint" on "Node",
        "A rule's taint has been added to the node, by the controller or as the node was created.";
    TAINT_REMOVED: Normal "TaintRemoved" "RemoveTaint" on "Node",
        "A rule's taint has been removed.";
    TAINT_NOT_ADDED: Warning (ADD_TAINT_ERROR) "AddTaint" on "Node",
        "The API server refuses to add a rule's taint. Repeated when its message changes.";
    TAINT_NOT_REMOVED: Warning (REMOVE_TAINT_ERROR) "RemoveTaint" on "Node",
        "The API server refuses to remove a rule's taint. Repeated when its message changes.";
    BOOTSTRAP_COMPLETED: Normal "BootstrapCompleted" "CompleteBootstrap" on "Node",
        "A bootstrap-only rule's taint has been removed: the rule leaves the node alone from now on. Says after \
         how long, and which component came last. Not where `NodeCriticalComponentsReady` tells of it.";
    HELD: Warning "NodeHeld" "Hold" on "Node",
        "A rule has held the node for a minute: what each condition lacks; again when that is something else. Critical \
         components that it waits for have events with names of their own (`Unready...`, `Unscheduled...`).";
    COMPONENTS_READY: Normal "NodeCriticalComponentsReady" "RemoveTaint" on "Node",
        "Another project's taint has been removed, whose rule waits for critical components; in Gardener's words.";
    RELEASED_UNREADY: Warning "NodeReleasedUnready" "RemoveTaint" on "Node",
        "The node was not ready in time and has been released anyway: the rule's `repair.action` is `Release`.";
    TAINT_ADOPTED: Normal "TaintAdopted" "AdoptTaint" on "Node",
        "A rule has adopted a taint that it did not add.";
    TAINT_CONTENDED: Warning "TaintContended" "Wait" on "Node",
        "Another component keeps undoing what a rule does to its taint, or a `DaemonSet` comes and goes with the taint.";
    DAEMON_SETS_UNSCHEDULED: Warning "UnscheduledNodeCriticalDaemonSets" "WaitForCriticalComponents" on "Node",
        "A critical `DaemonSet` that is meant for the node has no pod there. Normal after a second, as on each node that \
         joins, and a Warning after a minute.";
    PODS_UNREADY: Warning "UnreadyNodeCriticalPods" "WaitForCriticalComponents" on "Node",
        "A critical pod on the node is not Ready. Normal after a second, as on each node that joins, and a Warning after a \
         minute.";
    DRIVERS_UNREADY: Warning "UnreadyRequiredCSIDrivers" "WaitForCriticalComponents" on "Node",
        "A CSI driver that critical pods wait for is not registered on the node. Normal after a second, as on each node that \
         joins, and a Warning after a minute.";
    LATE: Warning "NodeNotReadyInTime" "RepairNode" on "Node",
        "The node was not ready in time, and the rule asks for no repair.";
    REPAIR_SPARED: Normal "NodeRepairSpared" "RepairNode" on "Node",
        "The node was not ready in time, and an annotation on it, its `NodeClaim` or its `NodePool` forbids repair.";
    REPAIR_IMPOSSIBLE: Warning "NodeRepairImpossible" "RepairNode" on "Node",
        "The node was not ready in time, and the rule cannot repair it.";
    REPAIR_BLOCKED: Warning "NodeRepairBlocked" "RepairNode" on "Node",
        "The node was not ready in time and is probably not to blame: too many nodes are unhealthy, every node that joins in its zone is \
         late, or replacing it has not helped before. Repeated every 5 minutes.";
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
    CONFLICTED: Warning (status::CONFLICTED) "Evaluate" on "NodeReadinessRule",
        "An earlier rule governs the rule's taint on some of its nodes, or would on any node that both select.";
    HELD_BACK: Warning (status::HELD_BACK) "HoldBack" on "NodeReadinessRule",
        "The rule has come into force and would gate more nodes in use at once than it may: it gates none of them until they are \
         fewer, or `maxFirstGated` is raised.";
    DISRUPTION_LIMITED: Warning "DisruptionLimited" "HoldBack" on "NodeReadinessRule",
        "The rule's disruption limit holds back nodes that are to be gated.";
    SHUT_OUT: Warning "DaemonSetsShutOut" "Evaluate" on "NodeReadinessRule",
        "`DaemonSet`s do not tolerate the rule's taint: it waits in vain for those that it names, and not for those of a class.";
    OUTSIDE_NAMESPACES: Warning "DaemonSetsOutsideNamespaces" "Evaluate" on "NodeReadinessRule",
        "Labelled `DaemonSet`s are in namespaces that their class does not cover.";
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub kind: ResourceKind,
    pub name: Arc<str>,
    pub uid: Option<Arc<str>>,
}

impl About {
    pub fn node(name: &str, uid: &str) -> Self {
        Self::of(ResourceKind::Nodes, name, uid)
    }

    pub fn rule(name: &str, uid: &str) -> Self {
        Self::of(ResourceKind::Rules, name, uid)
    }

    fn of(kind: ResourceKind, name: &str, uid: &str) -> Self {
        let (name, uid) = (name.into(), Some(uid.into()));
        Self { kind, name, uid }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub about: About,
    pub related: Option<About>,
    pub topic: &'static Topic,
    /// The Event's `type`: `Normal` for what is a warning only once it has lasted, and else the topic's.
    pub kind: &'static str,
    /// The text, no longer than the API server accepts.
    pub note: String,
    /// How often this happened, if it is the last of a series; else 1.
    pub times: u32,
}

impl Notice {
    pub(super) fn new(about: About, topic: &'static Topic, note: String) -> Self {
        Self {
            about,
            related: None,
            topic,
            kind: topic.kind,
            note: cut(note, MAX_NOTE),
            times: 1,
        }
    }

    pub(super) fn on_node(node: &Node, topic: &'static Topic, note: String) -> Self {
        Self::new(About::node(&node.name, &node.uid), topic, note)
    }

    pub(super) fn on_rule(rule: &Rule, topic: &'static Topic, note: String) -> Self {
        Self::new(About::rule(&rule.name, &rule.uid), topic, note)
    }

    /// The same, with the rule that it is about as well.
    pub(super) fn of_rule(self, name: &str, uid: &str) -> Self {
        let related = Some(About::rule(name, uid));
        Self { related, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_as_long_as_the_api_server_takes() {
        let about = About::node("n", "uid");
        let notice = Notice::new(about, &LATE, "é".repeat(MAX_NOTE + 1));
        assert!(notice.note.len() <= MAX_NOTE, "{}", notice.note.len());
        assert!(notice.note.ends_with("..."), "{}", notice.note);
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
