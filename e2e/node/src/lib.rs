//! A real Kubernetes node for tests, beside the control plane of [`kube_testbed`]: kubelet, containerd, runc and CNI plugins as
//! they are, with pods that are processes. Everything is built from Go modules; nothing is pulled, and nothing needs root.
//!
//! All of it runs in namespaces of its own (users, mounts, processes, network, IPC, host name), control plane and test
//! included, and is gone with the first process in there. What it cannot show: cgroups (no limits, no eviction), seccomp
//! profiles, Services (there is no kube-proxy; the API server's alone has its address), other nodes.
//!
//! ```text
//! programs     what is built, and where it is
//! inside       a test, or a command, in namespaces of its own
//! node         the node: started, and what befalls it
//! settings     how kubelet and containerd are configured
//! images       what containers are made of
//! leftovers    what a machine loses when it goes down: processes and mounts
//! components   `DaemonSet`s that do on a node what real ones do
//! times        when things were seen, printed
//! ```

pub mod components;
pub mod images;
pub mod inside;
mod leftovers;
pub mod node;
pub mod programs;
mod settings;
pub mod times;

pub use node::RealNode;
pub use times::Times;
