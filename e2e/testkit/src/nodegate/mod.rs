//! Nodegate in a test's cluster: installed and run as users do, and observed from outside. Nothing here imports the product.
//!
//! What tests need of [`crate::kubernetes`] is re-exported.

mod agreement;
pub mod ask;
pub mod changes;
pub mod cluster;
pub mod controller;
pub mod deployment;
pub mod fixtures;
pub mod install;
pub mod relay;
pub mod reporter;
pub mod rule;
pub mod shared;
pub mod state;

pub use crate::kubernetes::{
    ControllerManager, LaggingServer, NodeHistory, Options, Relay, audit, binaries, cert_manager,
    certificate, definitions, eventually, eventually_eq, fetch, go_module, has_failed, helm,
    karpenter, kwok, never, note_failure, ports, process, prometheus, tool,
};

pub use cluster::Cluster;
pub use controller::Controller;
pub use reporter::Reporter;
pub use shared::{SharedCluster, SharedInstallation};
