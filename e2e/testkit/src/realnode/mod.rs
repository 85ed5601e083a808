//! A real Kubernetes node for tests, beside the control plane of [`crate::kubernetes`]: unmodified kubelet, containerd, runc and
//! CNI plugins, with pods that are processes. Everything is built from Go modules; nothing is pulled, and nothing needs root.
//!
//! It runs in its own namespaces (users, mounts, processes, network, IPC, host name), together with the control plane and the
//! test, and ends with the first process in there. It lacks cgroups (no limits, no eviction), seccomp profiles, Services (there
//! is no kube-proxy; only the API server has its Service address) and other nodes.

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
