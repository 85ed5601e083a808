//! Nodegate in the test bed: installed and run as users do, and observed from outside. Nothing here imports the product.
//!
//! The rest of the test bed, [`kube_testbed`], is re-exported: tests need no other crate.

#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "only tests call this, and fail with the error"
)]

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
pub mod sights;

pub use kube_testbed::{
    ControllerManager, LaggingServer, Options, Relay, Witness, audit, binaries, cert_manager,
    certificate, definitions, eventually, eventually_eq, fetch, go_module, has_failed, helm,
    karpenter, kwok, never, note_failure, ports, process, prometheus, tool,
};

pub use cluster::Cluster;
pub use controller::Controller;
pub use reporter::Reporter;
pub use shared::{SharedCluster, SharedInstallation};
