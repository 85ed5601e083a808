//! What kwok, which plays the kubelets, does with nodes and pods, and how a test tells it when.
//!
//! It manages the nodes annotated [`MANAGED`] and the pods bound to them, and writes only what a kubelet would: other
//! conditions on the node stay. A Ready condition whose reason is [`SET_BY_TEST`] is left as it is.

use std::time::Duration;

/// The annotation, and its value, of nodes that kwok manages. It is kwok's own.
pub const MANAGED: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// The annotation, on nodes and pods, that says how long after its start a node or pod gets Ready: a Go duration such as
/// `1.5s`, or [`NEVER`]. Without it, at once. The delay starts over when the object changes meanwhile.
pub const READY_AFTER: &str = "kube-testbed/ready-after";

/// The value of [`READY_AFTER`] for what gets Ready only when a test says so.
pub const NEVER: &str = "never";

/// The annotation, on nodes, with the moment (RFC 3339) at which they get Ready, however often they change meanwhile.
pub const READY_AT: &str = "kube-testbed/ready-at";

/// The reason of Ready conditions that tests write; kwok keeps its hands off those.
pub const SET_BY_TEST: &str = "SetByTest";

/// How often nodes beat unless a test wants it otherwise: as often as a kubelet whose status does not change.
pub const HEARTBEAT: Duration = Duration::from_secs(5 * 60);

/// kwok's configuration.
pub(crate) fn stages(heartbeat: Duration) -> String {
    include_str!("kwok/stages.yaml").replace("HEARTBEAT_MS", &heartbeat.as_millis().to_string())
}
