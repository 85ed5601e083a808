//! What a rule's author should know, in words: those of the webhook's warnings, which `kubectl nodegate lint` says too.

use crate::api::{Duration, TaintEffect};
use crate::object::ObjectKey;

/// What a rule's author should know. `more` counts others of which the same is to be said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Advice<'a> {
    /// A critical `DaemonSet` cannot start on a node that the rule holds.
    #[error(
        "critical DaemonSet {daemon_set}{} does not tolerate the taint {key}:{effect}: it cannot start on a node that has \
         it, and is not waited for; add the toleration to its pod template", and(*.more)
    )]
    ShutOut {
        /// The `DaemonSet`.
        daemon_set: &'a ObjectKey,
        /// How many others.
        more: usize,
        /// The taint's key.
        key: &'a str,
        /// The taint's effect.
        effect: TaintEffect,
    },
    /// A `DaemonSet` that the rule waits for by name is not there.
    #[error(
        "there is no DaemonSet {daemon_set}{} today: until there is one, no node meets the condition; check namespace and \
         name", and(*.more)
    )]
    Missing {
        /// The `DaemonSet`.
        daemon_set: &'a ObjectKey,
        /// How many others.
        more: usize,
    },
    /// A labelled `DaemonSet` is not covered by its class.
    #[error(
        "DaemonSet {daemon_set}{} is labelled as critical, but its namespace is none of class '{class}': it is not waited \
         for; add the namespace to the class, or take the label off", and(*.more)
    )]
    OutsideNamespaces {
        /// The `DaemonSet`.
        daemon_set: &'a ObjectKey,
        /// How many others.
        more: usize,
        /// The class.
        class: &'a str,
    },
    /// The rule evicts what runs when it closes nodes, once.
    #[error(
        "NOTE: NoExecute will evict existing pods without tolerations. Ensure critical system pods have appropriate \
         tolerations. Nodes that are in use when the rule is created are closed too; NoSchedule only keeps new pods away"
    )]
    EvictsOnce,
    /// The rule evicts what runs whenever conditions fail.
    #[error(
        "CAUTION: NoExecute with continuous mode evicts pods when conditions fail, risking workload disruption. Consider \
         NoSchedule or bootstrap-only{}", if *.is_limited { "" } else { ", or set spec.disruption to limit how fast" }
    )]
    EvictsAgain {
        /// Whether the rule limits how fast it closes nodes.
        is_limited: bool,
    },
    /// The heartbeat timeout is shorter than the kubelet beats.
    #[error(
        "heartbeatTimeout {0} is shorter than kubelet and node problem detector need, which beat every 5m: their conditions \
         would count as Unknown in between; use at least 6m for them"
    )]
    ShortHeartbeat(Duration),
    /// Nothing makes a condition.
    #[error(
        "nothing makes conditions of type '{kind}', though their prefix is Nodegate's: it counts as '{counts_as}' on every \
         node; check the spelling"
    )]
    Nobody {
        /// The condition's type.
        kind: &'a str,
        /// What it counts as.
        counts_as: &'static str,
    },
}

fn and(more: usize) -> String {
    match more {
        0 => String::new(),
        others => format!(" (+{others} more)"),
    }
}
