//! How kwok simulates the kubelets, and how a test controls when nodes and pods become Ready.
//!
//! It manages the nodes annotated [`MANAGED`] and the pods bound to them. It writes only what a kubelet would: other conditions
//! stay. It leaves a Ready condition with the reason [`SET_BY_TEST`] as it is.

use std::time::Duration;

/// The annotation of nodes that kwok manages, and its value. It is kwok's own.
pub const MANAGED: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// The annotation on nodes and pods that sets how long after its start one becomes Ready: a Go duration such as `1.5s`, or
/// [`NEVER`]; by default at once. A change of the object restarts the delay.
pub const READY_AFTER: &str = "testkit/ready-after";

/// The value of [`READY_AFTER`] that leaves readiness to the test.
pub const NEVER: &str = "never";

/// The annotation on nodes that sets the moment (RFC 3339) at which they become Ready, whatever changes before.
pub const READY_AT: &str = "testkit/ready-at";

/// The reason of Ready conditions that tests write; kwok leaves those alone.
pub const SET_BY_TEST: &str = "SetByTest";

/// The default interval of heartbeats: that of a kubelet whose status does not change.
pub const HEARTBEAT: Duration = Duration::from_secs(5 * 60);

pub(crate) fn stages(heartbeat: Duration) -> String {
    include_str!("kwok/stages.yaml").replace("HEARTBEAT_MS", &heartbeat.as_millis().to_string())
}
