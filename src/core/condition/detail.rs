//! Reasons for a condition's status, in one wording for events, statuses, logs and the command line.

use std::borrow::Cow;
use std::fmt::{self, Formatter, Write as _};
use std::num::NonZeroU64;

use Hint::{
    NoDaemonSet, Node, Nothing, Unconfirmed, Unhealthy, Unready, Unregistered, Unscheduled, Vacuous,
};

use super::daemon_sets::LeftOut;
use super::devices::Devices;
use super::facts::{Amount, Counted};
use super::groups::Component;
use super::names::Names;
use super::pods::TooNew;
use crate::api::{ConditionStatus, Duration};
use crate::object::{ObjectKey, Taint, UnhealthyStorage};

/// Where to look for what a reason's message does not say.
#[derive(Debug)]
pub enum Hint<'a> {
    /// Nowhere: the condition is met, or the message says all.
    Nothing,
    /// Nowhere: nothing that it could wait for is meant for the node.
    Vacuous,
    /// At what runs on the node: what it does, and what to do next.
    Node(Cow<'a, str>, &'static str),
    Unscheduled(&'a Names<&'a ObjectKey>),
    NoDaemonSet(&'a ObjectKey),
    Unready(&'a Names<&'a ObjectKey>),
    TooNew(&'a Names<TooNew<'a>>),
    /// Pods whose readiness is from before the node, or from before it rebooted.
    Unconfirmed(&'a Names<&'a ObjectKey>),
    Unregistered(&'a Names<&'a str>),
    Unhealthy(&'a str),
}

/// Makes the enum of one table: each reason, its message, and where else to look.
macro_rules! details {
    (
        $f:ident;
        reported: {$(
            $reported:ident $({ $($its:ident: $type:ty),+ })? = $said:expr, $writes:expr => $sees:expr;
        )+}
        synthesized: {$(
            $variant:ident $({ $($field:ident: $of:ty),+ })? = $reason:literal, $write:expr => $see:expr;
        )+}
    ) => {
        /// The reason for a condition's status, or for what a rule makes of it; `Display` is the message.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Detail<'a> {
            $($reported $({ $($its: $type),+ })?,)+
            $($variant $({ $($field: $of),+ })?,)+
        }

        #[allow(unused_variables, reason = "few columns depend on the fields")]
        impl<'a> Detail<'a> {
            pub fn reason(&self) -> &'a str {
                match self {
                    $(Self::$reported $({ $($its),+ })? => $said,)+
                    $(Self::$variant $({ $($field: _),+ })? => $reason,)+
                }
            }

            pub fn hint(&self) -> Hint<'_> {
                match self {
                    $(Self::$reported $({ $($its),+ })? => $sees,)+
                    $(Self::$variant $({ $($field),+ })? => $see,)+
                }
            }
        }

        impl fmt::Display for Detail<'_> {
            #[allow(unused_variables, reason = "some fields are for the reason alone")]
            fn fmt(&self, $f: &mut Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$reported $({ $($its),+ })? => $writes,)+
                    $(Self::$variant $({ $($field),+ })? => $write,)+
                }
            }
        }

        /// Whether only synthesized conditions have this reason.
        pub(super) fn is_synthesized_reason(reason: &str) -> bool {
            [$($reason),+].contains(&reason)
        }
    };
}

const SILENT: &str = "its reporter on this node is silent";
const FIND_REPORTER: &str = "look for the reporter's pod on the node";
const LABELLER: &str = "look for the pod that should set the label";
const PLUGIN_LOG: &str = "read the log of the device plugin's pod on the node (some, such as Kernel Module Management's, shun tainted nodes)";

details! {
    f;
    reported: {
        // What the reporter of a node condition wrote.
        Reported { reason: &'a str, message: &'a str } = *reason, f.write_str(message)
            => Node("its reporter on this node reports so".into(), "read the log of the reporter's pod on the node");
        HeartbeatMissed { timeout: Duration } = "HeartbeatMissed", write!(f, "no heartbeat has been seen for {timeout}")
            => Node(SILENT.into(), FIND_REPORTER);
        WrittenBeforeReboot = "WrittenBeforeReboot", f.write_str("it has not been reported since the node rebooted")
            => Node(SILENT.into(), FIND_REPORTER);
        NotSeen { component: &'a Component } = match component {
            Component::DaemonSet(_) => "DaemonSetNotSeen",
            _ => "ComponentNotSeen",
        }, match component {
            Component::DaemonSet(key) => write!(f, "DaemonSet {key} has not been seen yet"),
            Component::AllDaemonSets => f.write_str("the DaemonSets have not been seen yet"),
            Component::Check(key) => write!(f, "the pods of check {key} have not been seen yet"),
            Component::Devices(driver) => write!(f, "the ResourceSlices of {driver} have not been seen yet"),
        } => Nothing;
        KindNotSeen { kind: &'a str } = "ComponentNotSeen", write!(
            f,
            "the {kind}s that it depends on have not been seen yet (if that stays, the controller may not list them: its log says why)"
        ) => Nothing;
        MinimumReached { count: Amount<'a>, minimum: NonZeroU64 } = "MinimumReached",
            write!(f, "this node has {} {}, at least {minimum}", count.number, count.of) => Nothing;
        BelowMinimum { count: Amount<'a>, minimum: NonZeroU64 } = "BelowMinimum",
            write!(f, "this node has {} of {minimum} {}", count.number, count.of) => {
                let (who, log) = match count.of {
                    Counted::Resource(_) => ("the kubelet reports", PLUGIN_LOG),
                    Counted::Devices(_) => ("the driver has published", "read the log of the DRA driver's pod on the node"),
                };
                Node(format!("{who} {} {}", count.number, count.of).into(), log)
            };
        // The label that says how many the rule asks for does not say it; no value if the node lacks the label.
        MinimumUnknown { label: &'a str, value: Option<&'a str> } = "MinimumUnknown", match value {
            None => write!(f, "this node has no label {label}, which says how many are needed"),
            Some(value) => write!(
                f,
                "label {label} of this node says how many are needed, and its value '{value}' is no number of at least 1"
            ),
        } => Node(
            format!("whatever sets label {label} has not set it to a number").into(), LABELLER,
        );
        ReasonNotAccepted { status: ConditionStatus, reason: &'a str, accepted: Names<&'a str> } = "ReasonNotAccepted",
            write!(f, "it is {status} for reason '{reason}', and counts only with {accepted}") => Nothing;
        LabelNotAccepted { key: &'a str, value: &'a str, accepted: Names<&'a str> } = "LabelNotAccepted",
            write!(f, "label {key} of this node is '{value}', and counts only with {accepted}")
            => Node(format!("whatever sets label {key} has set it to '{value}'").into(), LABELLER);
    }
    synthesized: {
        DaemonSetNotFound { daemon_set: &'a ObjectKey } = "DaemonSetNotFound", write!(f, "there is no DaemonSet {daemon_set}")
            => NoDaemonSet(daemon_set);
        DaemonSetNotMeant { daemon_set: &'a ObjectKey } = "DaemonSetNotMeantForNode",
            write!(f, "DaemonSet {daemon_set} is not meant for this node") => Vacuous;
        DoesNotTolerateGate { daemon_set: &'a ObjectKey, taint: &'a Taint } = "DoesNotTolerate", write!(
            f,
            "DaemonSet {daemon_set} does not tolerate the taint {taint} of a rule that waits for it: add the toleration to its \
             pod template"
        ) => Nothing;
        DoesNotTolerate { daemon_set: &'a ObjectKey, taint: &'a Taint } = "DoesNotTolerate", write!(
            f,
            "DaemonSet {daemon_set} does not tolerate the taint {taint} of this node: add the toleration to its pod template, or \
             leave such nodes out of the rule's nodeSelector"
        ) => Nothing;
        DaemonSetReady { daemon_set: &'a ObjectKey } = "DaemonSetReady",
            write!(f, "DaemonSet {daemon_set} has a Ready pod on this node") => Nothing;
        AllDaemonSetsReady { left_out: Option<Names<LeftOut<'a>>> } = "AllDaemonSetsReady",
            met(f, "every DaemonSet meant for this node has a Ready pod on it", left_out.as_ref()) => Nothing;
        AllDaemonSetsScheduled { left_out: Option<Names<LeftOut<'a>>> } = "AllDaemonSetsScheduled",
            met(f, "every DaemonSet meant for this node has a pod on it", left_out.as_ref()) => Nothing;
        CheckSucceeded { pod: &'a ObjectKey } = "CheckSucceeded", write!(f, "pod {pod} has succeeded") => Nothing;
        CheckFailed { pod: &'a ObjectKey } = "CheckFailed", write!(f, "pod {pod} has failed") => Nothing;
        CheckRunning { pod: &'a ObjectKey } = "CheckRunning", write!(f, "pod {pod} has not ended yet") => Nothing;
        CheckMissing { check: &'a ObjectKey } = "CheckMissing",
            write!(f, "no pod of check {check} has run on this node since it was created or booted") => Nothing;
        // `any`: whether one is meant for this node.
        DaemonSetsScheduled { any: bool, left_out: Option<Names<LeftOut<'a>>> } = "DaemonSetsScheduled",
            met(f, if *any { "every critical DaemonSet meant for this node has a pod on it" }
                else { "no critical DaemonSet is meant for this node" }, left_out.as_ref())
            => if *any { Nothing } else { Vacuous };
        DaemonSetPodMissing { daemon_sets: Names<&'a ObjectKey> } = "DaemonSetPodMissing",
            daemon_sets.write(f, "DaemonSet", [" has", " have"], " no pod on this node") => Unscheduled(daemon_sets);
        LabelsMayStillCome { daemon_sets: Names<&'a ObjectKey> } = "LabelsMayStillCome", daemon_sets.write(
            f,
            "Cluster API or Karpenter may yet give this node the labels by which it is one of DaemonSet",
            [""; 2],
            "",
        ) => Nothing;
        PodsReady = "PodsReady", f.write_str("every critical pod on this node is Ready") => Nothing;
        PodNotReady { pods: Names<&'a ObjectKey> } = "PodNotReady", pods.write(f, "pod", [" is", " are"], " not Ready")
            => Unready(pods);
        PodNotAvailable { pods: Names<TooNew<'a>> } = "PodNotAvailable",
            pods.write(f, "not Ready for long enough yet: pod", [""; 2], "") => Hint::TooNew(pods);
        PodOlderThanNode { pods: Names<&'a ObjectKey> } = "PodOlderThanNode",
            pods.write(f, "pod", [" has", " have"], " been Ready since before this node was created") => Unconfirmed(pods);
        PodOlderThanBoot { pods: Names<&'a ObjectKey> } = "PodOlderThanBoot",
            pods.write(f, "pod", [" has", " have"], " been Ready since before this node rebooted") => Unconfirmed(pods);
        CsiDriversRegistered = "CSIDriversRegistered", f.write_str("every CSI driver that is waited for is registered")
            => Nothing;
        CsiDriverMissing { drivers: Names<&'a str> } = "CSIDriverNotRegistered",
            drivers.write(f, "CSI driver", [" is", " are"], " not registered on this node") => Unregistered(drivers);
        CsiDriverOlderThanBoot { drivers: Names<&'a str> } = "CSIDriverOlderThanBoot",
            drivers.write(f, "CSI driver", [" was", " were"], " registered before this node rebooted") => Unregistered(drivers);
        CsiDriverWithoutCount { drivers: Names<&'a str> } = "CSIDriverWithoutCount",
            drivers.write(f, "CSI driver", [" reports", " report"], " no allocatable count on this node")
            => Unregistered(drivers);
        CsiDriverUnhealthy { storage: &'a UnhealthyStorage } = "CSIDriverUnhealthy", unhealthy(storage, f)
            => Unhealthy(&storage.driver);
        ComponentsReady { any: bool, left_out: Option<Names<LeftOut<'a>>> } = "CriticalComponentsReady",
            met(f, if *any { "every critical component is ready on this node" }
                else { "no critical component is meant for this node" }, left_out.as_ref())
            => if *any { Nothing } else { Vacuous };
        DevicesPublished { devices: Devices<'a> } = "DevicesPublished", devices.fmt(f) => Nothing;
        DevicesNotPublished { devices: Devices<'a> } = "DevicesNotPublished", devices.fmt(f) => Nothing;
        DevicesTainted { devices: Devices<'a> } = "DevicesTainted", devices.fmt(f) => Nothing;
        // The node has more of something than is read.
        TooManyToRead { what: &'static str, most: usize } = "TooManyToRead",
            write!(f, "this node has more than {most} {what}, too many to read") => Nothing;
        LabelPresent { key: &'a str, value: &'a str } = "LabelPresent", write!(f, "label {key} of this node is '{value}'") => Nothing;
        LabelMissing { key: &'a str } = "LabelMissing", write!(f, "this node has no label {key}")
            => Node(format!("whatever sets label {key} has not set it").into(), LABELLER);
        ResourceAllocatable { resource: &'a str } = "ResourceAllocatable",
            write!(f, "this node has {resource} to allocate") => Nothing;
        ResourceNotAllocatable { resource: &'a str } = "ResourceNotAllocatable",
            write!(f, "this node has no {resource} to allocate") => Node(
                format!("the kubelet reports no {resource} to allocate: its device plugin has not registered it").into(), PLUGIN_LOG,
            );
    }
}

impl Detail<'_> {
    /// Whether the text is this message.
    pub fn reads(&self, text: &str) -> bool {
        let mut rest = Rest(text);
        write!(rest, "{self}").is_ok() && rest.0.is_empty()
    }
}

/// Compares a text with one that is written in parts: holds what has not been compared yet.
struct Rest<'a>(&'a str);

impl fmt::Write for Rest<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// What is met, and what that does not include.
fn met(f: &mut Formatter<'_>, met: &str, left_out: Option<&Names<LeftOut<'_>>>) -> fmt::Result {
    f.write_str(met)?;
    left_out.map_or(Ok(()), |left_out| write!(f, "; left out: {left_out}"))
}

/// `CSI driver a.csi reports StorageUnreachable (NetworkPartition): the data path is down (+1 more)`.
fn unhealthy(storage: &UnhealthyStorage, f: &mut Formatter<'_>) -> fmt::Result {
    let (driver, status) = (&storage.driver, &storage.status);
    write!(f, "CSI driver {driver} reports {status}")?;
    if !storage.reason.is_empty() {
        write!(f, " ({})", storage.reason)?;
    }
    if !storage.message.is_empty() {
        write!(f, ": {}", storage.message)?;
    }
    match storage.more {
        0 => Ok(()),
        more => write!(f, " (+{more} more)"),
    }
}
