//! Nodegate keeps pods off Kubernetes nodes until everything the node needs is really there.

pub mod api;
