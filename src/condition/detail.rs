//! Reasons for a condition's status, in one wording for events, statuses, logs and the command line.

use std::fmt::{self, Write as _};
use std::num::NonZeroU64;

use super::count::Count;
use super::devices::{
    DEVICES_NOT_PUBLISHED, DEVICES_PUBLISHED, DEVICES_TAINTED, Devices, TOO_MANY_SLICES,
};
use super::groups::Component;
use super::names::Names;
use crate::api::{ConditionStatus, Duration};
use crate::object::{ObjectKey, Taint, UnhealthyStorage};

/// The reason for a condition's status, by itself or for a rule that asks for more than a status. [`Detail::reason`] is the CamelCase form; `Display` is the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail<'a> {
    /// What the reporter of a node condition wrote.
    Reported {
        /// The reporter's reason.
        reason: &'a str,
        /// The reporter's message.
        message: &'a str,
    },
    /// The reporter of a node condition has been silent for too long.
    HeartbeatMissed {
        /// The permitted silence.
        timeout: Duration,
    },
    /// A node condition has not been written since the node rebooted.
    WrittenBeforeReboot,
    /// The objects of a component have not been seen yet.
    NotSeen {
        /// The component.
        component: &'a Component,
    },
    /// There is no such `DaemonSet`.
    DaemonSetNotFound {
        /// Its name.
        daemon_set: &'a ObjectKey,
    },
    /// This `DaemonSet` does not run on the node.
    DaemonSetNotMeant {
        /// Its name.
        daemon_set: &'a ObjectKey,
    },
    /// This `DaemonSet` cannot start while a rule that waits for it holds the node.
    DoesNotTolerate {
        /// Its name.
        daemon_set: &'a ObjectKey,
        /// The rule's taint.
        gate: &'a Taint,
    },
    /// This `DaemonSet` has a Ready pod on the node.
    DaemonSetReady {
        /// Its name.
        daemon_set: &'a ObjectKey,
    },
    /// Every `DaemonSet` that runs on the node has a Ready pod there.
    AllDaemonSetsReady,
    /// The newest run of a check has succeeded.
    CheckSucceeded {
        /// Its pod.
        pod: &'a ObjectKey,
    },
    /// The newest run of a check has failed.
    CheckFailed {
        /// Its pod.
        pod: &'a ObjectKey,
    },
    /// The newest run of a check has not ended.
    CheckRunning {
        /// Its pod.
        pod: &'a ObjectKey,
    },
    /// There is no run of a check on the node that counts.
    CheckMissing {
        /// The check's namespace and name.
        check: &'a ObjectKey,
    },
    /// A DRA driver's devices on the node, all or not.
    Devices(Devices<'a>),
    /// Every critical `DaemonSet` that runs on the node has a pod there.
    DaemonSetsScheduled,
    /// No critical `DaemonSet` runs on the node.
    NoDaemonSetMeant,
    /// Critical `DaemonSet`s have no pod on the node.
    DaemonSetPodMissing {
        /// Those `DaemonSet`s, by name.
        daemon_sets: Names<&'a ObjectKey>,
    },
    /// All critical pods on the node are Ready.
    PodsReady,
    /// Critical pods are not Ready.
    PodNotReady {
        /// Those pods, by name.
        pods: Names<&'a ObjectKey>,
    },
    /// Critical pods are Ready, but since before the Node object was created.
    PodOlderThanNode {
        /// Those pods, by name.
        pods: Names<&'a ObjectKey>,
    },
    /// Critical pods are Ready, but since before the node rebooted.
    PodOlderThanBoot {
        /// Those pods, by name.
        pods: Names<&'a ObjectKey>,
    },
    /// Every required CSI driver is registered.
    CsiDriversRegistered,
    /// Required CSI drivers are not registered.
    CsiDriverMissing {
        /// Those drivers.
        drivers: Names<&'a str>,
    },
    /// CSI drivers are registered, but their registration may be from before the reboot.
    CsiDriverOlderThanBoot {
        /// Those drivers.
        drivers: Names<&'a str>,
    },
    /// CSI drivers are registered, but do not report yet how many volumes they can attach.
    CsiDriverWithoutCount {
        /// Those drivers.
        drivers: Names<&'a str>,
    },
    /// A CSI driver is registered, and reports its storage as unhealthy.
    CsiDriverUnhealthy {
        /// The driver, and what it reports.
        storage: &'a UnhealthyStorage,
    },
    /// All critical components are ready.
    ComponentsReady,
    /// No critical component runs on the node, or will.
    NoComponent,
    /// The node has an allocatable amount of the resource.
    ResourceAllocatable {
        /// The resource's name.
        resource: &'a str,
    },
    /// The node has no allocatable amount of the resource.
    ResourceNotAllocatable {
        /// The resource's name.
        resource: &'a str,
    },
    /// There are as many as the rule asks for, or more.
    MinimumReached {
        /// How many there are.
        count: Count<'a>,
        /// How many the rule asks for.
        minimum: NonZeroU64,
    },
    /// There are fewer than the rule asks for.
    BelowMinimum {
        /// How many there are.
        count: Count<'a>,
        /// How many the rule asks for.
        minimum: NonZeroU64,
    },
    /// The label that says how many the rule asks for does not say it.
    MinimumUnknown {
        /// The label's key.
        label: &'a str,
        /// The label's value; `None` if the node does not have the label.
        value: Option<&'a str>,
    },
    /// The rule does not accept the condition's reason.
    ReasonNotAccepted {
        /// The condition's status.
        status: ConditionStatus,
        /// The condition's reason.
        reason: &'a str,
        /// The reasons that the rule accepts.
        accepted: Names<&'a str>,
    },
}

const HEARTBEAT_MISSED: &str = "HeartbeatMissed";
const WRITTEN_BEFORE_REBOOT: &str = "WrittenBeforeReboot";
const DAEMON_SET_NOT_SEEN: &str = "DaemonSetNotSeen";
const COMPONENT_NOT_SEEN: &str = "ComponentNotSeen";
const DAEMON_SET_NOT_FOUND: &str = "DaemonSetNotFound";
const DAEMON_SET_NOT_MEANT: &str = "DaemonSetNotMeantForNode";
const DOES_NOT_TOLERATE: &str = "DoesNotTolerate";
const DAEMON_SET_READY: &str = "DaemonSetReady";
const ALL_DAEMON_SETS_READY: &str = "AllDaemonSetsReady";
const CHECK_SUCCEEDED: &str = "CheckSucceeded";
const CHECK_FAILED: &str = "CheckFailed";
const CHECK_RUNNING: &str = "CheckRunning";
const CHECK_MISSING: &str = "CheckMissing";
const DAEMON_SETS_SCHEDULED: &str = "DaemonSetsScheduled";
const DAEMON_SET_POD_MISSING: &str = "DaemonSetPodMissing";
const PODS_READY: &str = "PodsReady";
const POD_NOT_READY: &str = "PodNotReady";
const POD_OLDER_THAN_NODE: &str = "PodOlderThanNode";
const POD_OLDER_THAN_BOOT: &str = "PodOlderThanBoot";
const CSI_DRIVERS_REGISTERED: &str = "CSIDriversRegistered";
const CSI_DRIVER_NOT_REGISTERED: &str = "CSIDriverNotRegistered";
const CSI_DRIVER_OLDER_THAN_BOOT: &str = "CSIDriverOlderThanBoot";
const CSI_DRIVER_WITHOUT_COUNT: &str = "CSIDriverWithoutCount";
const CSI_DRIVER_UNHEALTHY: &str = "CSIDriverUnhealthy";
const COMPONENTS_READY: &str = "CriticalComponentsReady";
const RESOURCE_ALLOCATABLE: &str = "ResourceAllocatable";
const RESOURCE_NOT_ALLOCATABLE: &str = "ResourceNotAllocatable";

/// Whether only synthesized conditions have this reason.
pub(super) fn is_synthesized_reason(reason: &str) -> bool {
    [
        DAEMON_SET_NOT_FOUND,
        DAEMON_SET_NOT_MEANT,
        DOES_NOT_TOLERATE,
        DAEMON_SET_READY,
        ALL_DAEMON_SETS_READY,
        CHECK_SUCCEEDED,
        CHECK_FAILED,
        CHECK_RUNNING,
        CHECK_MISSING,
        DEVICES_PUBLISHED,
        DEVICES_NOT_PUBLISHED,
        TOO_MANY_SLICES,
        DEVICES_TAINTED,
        DAEMON_SETS_SCHEDULED,
        DAEMON_SET_POD_MISSING,
        PODS_READY,
        POD_NOT_READY,
        POD_OLDER_THAN_NODE,
        POD_OLDER_THAN_BOOT,
        CSI_DRIVERS_REGISTERED,
        CSI_DRIVER_NOT_REGISTERED,
        CSI_DRIVER_OLDER_THAN_BOOT,
        CSI_DRIVER_WITHOUT_COUNT,
        CSI_DRIVER_UNHEALTHY,
        COMPONENTS_READY,
        RESOURCE_ALLOCATABLE,
        RESOURCE_NOT_ALLOCATABLE,
    ]
    .contains(&reason)
}

impl<'a> Detail<'a> {
    /// The reason in CamelCase.
    pub fn reason(&self) -> &'a str {
        match self {
            Self::Reported { reason, .. } => reason,
            Self::HeartbeatMissed { .. } => HEARTBEAT_MISSED,
            Self::WrittenBeforeReboot => WRITTEN_BEFORE_REBOOT,
            Self::NotSeen {
                component: Component::DaemonSet(_),
            } => DAEMON_SET_NOT_SEEN,
            Self::NotSeen { .. } => COMPONENT_NOT_SEEN,
            Self::DaemonSetNotFound { .. } => DAEMON_SET_NOT_FOUND,
            Self::DaemonSetNotMeant { .. } => DAEMON_SET_NOT_MEANT,
            Self::DoesNotTolerate { .. } => DOES_NOT_TOLERATE,
            Self::DaemonSetReady { .. } => DAEMON_SET_READY,
            Self::AllDaemonSetsReady => ALL_DAEMON_SETS_READY,
            Self::CheckSucceeded { .. } => CHECK_SUCCEEDED,
            Self::CheckFailed { .. } => CHECK_FAILED,
            Self::CheckRunning { .. } => CHECK_RUNNING,
            Self::CheckMissing { .. } => CHECK_MISSING,
            Self::Devices(devices) => devices.reason(),
            Self::DaemonSetsScheduled | Self::NoDaemonSetMeant => DAEMON_SETS_SCHEDULED,
            Self::DaemonSetPodMissing { .. } => DAEMON_SET_POD_MISSING,
            Self::PodsReady => PODS_READY,
            Self::PodNotReady { .. } => POD_NOT_READY,
            Self::PodOlderThanNode { .. } => POD_OLDER_THAN_NODE,
            Self::PodOlderThanBoot { .. } => POD_OLDER_THAN_BOOT,
            Self::CsiDriversRegistered => CSI_DRIVERS_REGISTERED,
            Self::CsiDriverMissing { .. } => CSI_DRIVER_NOT_REGISTERED,
            Self::CsiDriverOlderThanBoot { .. } => CSI_DRIVER_OLDER_THAN_BOOT,
            Self::CsiDriverWithoutCount { .. } => CSI_DRIVER_WITHOUT_COUNT,
            Self::CsiDriverUnhealthy { .. } => CSI_DRIVER_UNHEALTHY,
            Self::ComponentsReady | Self::NoComponent => COMPONENTS_READY,
            Self::ResourceAllocatable { .. } => RESOURCE_ALLOCATABLE,
            Self::ResourceNotAllocatable { .. } => RESOURCE_NOT_ALLOCATABLE,
            Self::MinimumReached { .. } => "MinimumReached",
            Self::BelowMinimum { .. } => "BelowMinimum",
            Self::MinimumUnknown { .. } => "MinimumUnknown",
            Self::ReasonNotAccepted { .. } => "ReasonNotAccepted",
        }
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

impl fmt::Display for Detail<'_> {
    #[allow(clippy::too_many_lines, reason = "a line or two for each detail")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAEMON_SET: (&str, &str) = ("DaemonSet", "DaemonSets");
        const POD: (&str, &str) = ("pod", "pods");
        const DRIVER: (&str, &str) = ("CSI driver", "CSI drivers");
        const IS: (&str, &str) = ("is", "are");
        const HAS: (&str, &str) = ("has", "have");
        match self {
            Self::Reported { message, .. } => f.write_str(message),
            Self::HeartbeatMissed { timeout } => {
                write!(f, "no heartbeat has been seen for {timeout}")
            }
            Self::WrittenBeforeReboot => {
                f.write_str("it has not been reported since the node rebooted")
            }
            Self::NotSeen { component } => match component {
                Component::DaemonSet(key) => write!(f, "DaemonSet {key} has not been seen yet"),
                Component::AllDaemonSets => f.write_str("the DaemonSets have not been seen yet"),
                Component::Check(key) => {
                    write!(f, "the pods of check {key} have not been seen yet")
                }
                Component::Devices(driver) => {
                    write!(f, "the ResourceSlices of {driver} have not been seen yet")
                }
            },
            Self::DaemonSetNotFound { daemon_set } => {
                write!(f, "there is no DaemonSet {daemon_set}")
            }
            Self::DaemonSetNotMeant { daemon_set } => {
                write!(f, "DaemonSet {daemon_set} is not meant for this node")
            }
            Self::DoesNotTolerate { daemon_set, gate } => write!(
                f,
                "DaemonSet {daemon_set} does not tolerate the taint {}:{} of a rule that waits for it: add the toleration to its \
                 pod template",
                gate.key, gate.effect
            ),
            Self::DaemonSetReady { daemon_set } => {
                write!(f, "DaemonSet {daemon_set} has a Ready pod on this node")
            }
            Self::AllDaemonSetsReady => {
                f.write_str("every DaemonSet meant for this node has a Ready pod on it")
            }
            Self::CheckSucceeded { pod } => write!(f, "pod {pod} has succeeded"),
            Self::CheckFailed { pod } => write!(f, "pod {pod} has failed"),
            Self::CheckRunning { pod } => write!(f, "pod {pod} has not ended yet"),
            Self::CheckMissing { check } => write!(
                f,
                "no pod of check {check} has run on this node since it was created or booted"
            ),
            Self::Devices(devices) => devices.fmt(f),
            Self::NoDaemonSetMeant => f.write_str("no critical DaemonSet is meant for this node"),
            Self::NoComponent => f.write_str("no critical component is meant for this node"),
            Self::DaemonSetsScheduled => {
                f.write_str("every critical DaemonSet meant for this node has a pod on it")
            }
            Self::DaemonSetPodMissing { daemon_sets } => {
                daemon_sets.write(f, DAEMON_SET, HAS, "no pod on this node")
            }
            Self::PodsReady => f.write_str("every critical pod on this node is Ready"),
            Self::PodNotReady { pods } => pods.write(f, POD, IS, "not Ready"),
            Self::PodOlderThanNode { pods } => {
                let what = "been Ready since before this node was created";
                pods.write(f, POD, HAS, what)
            }
            Self::PodOlderThanBoot { pods } => {
                pods.write(f, POD, HAS, "been Ready since before this node rebooted")
            }
            Self::CsiDriversRegistered => {
                f.write_str("every CSI driver that is waited for is registered")
            }
            Self::CsiDriverMissing { drivers } => {
                drivers.write(f, DRIVER, IS, "not registered on this node")
            }
            Self::CsiDriverOlderThanBoot { drivers } => drivers.write(
                f,
                DRIVER,
                ("was", "were"),
                "registered before this node rebooted",
            ),
            Self::CsiDriverWithoutCount { drivers } => drivers.write(
                f,
                DRIVER,
                ("reports", "report"),
                "no allocatable count on this node",
            ),
            Self::CsiDriverUnhealthy { storage } => unhealthy(storage, f),
            Self::ComponentsReady => f.write_str("every critical component is ready on this node"),
            Self::ResourceAllocatable { resource } => {
                write!(f, "this node has {resource} to allocate")
            }
            Self::ResourceNotAllocatable { resource } => {
                write!(f, "this node has no {resource} to allocate")
            }
            Self::MinimumReached { count, minimum } => {
                write!(
                    f,
                    "this node has {} {}, at least {minimum}",
                    count.number, count.of
                )
            }
            Self::BelowMinimum { count, minimum } => {
                write!(
                    f,
                    "this node has {} of {minimum} {}",
                    count.number, count.of
                )
            }
            Self::MinimumUnknown { label, value: None } => {
                write!(
                    f,
                    "this node has no label {label}, which says how many are needed"
                )
            }
            Self::MinimumUnknown {
                label,
                value: Some(value),
            } => write!(
                f,
                "label {label} of this node says how many are needed, and its value '{value}' is no number of at least 1"
            ),
            Self::ReasonNotAccepted {
                status,
                reason,
                accepted,
            } => write!(
                f,
                "it is {status} for reason '{reason}', and counts only with {accepted}"
            ),
        }
    }
}

/// `CSI driver a.csi reports StorageUnreachable (NetworkPartition): the data path is down (+1 more)`.
fn unhealthy(storage: &UnhealthyStorage, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let UnhealthyStorage {
        driver,
        status,
        reason,
        message,
        more,
    } = storage;
    write!(f, "CSI driver {driver} reports {status}")?;
    if !reason.is_empty() {
        write!(f, " ({reason})")?;
    }
    if !message.is_empty() {
        write!(f, ": {message}")?;
    }
    match more {
        0 => Ok(()),
        more => write!(f, " (+{more} more)"),
    }
}
