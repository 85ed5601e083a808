//! Nodegate in the test bed: installed and run as users do, and observed from outside. Nothing here imports the product.
//!
//! ```text
//! cluster      a cluster of the test bed, with this repository's CRD and RBAC
//! install      what users install from this repository
//! controller   the `nodegate` binary as a controller, as its own service account
//! reporter     the same binary as a reporter
//! ask          the same binary as `kubectl nodegate`
//! agreement    checks that `kubectl nodegate` agrees with the controller
//! deployment   the installed Deployment, run as a process
//! shared       one cluster, or one installation, for all tests of a test binary
//! rule         a builder for rules
//! fixtures     builders for objects
//! changes      changes to a running cluster
//! sights       reads the state of a cluster
//! relay        the test bed's relay, extended to rules
//! ```
//!
//! The rest of the test bed, [`kube_testbed`], is re-exported: tests need no other crate.

#![allow(
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
    certificate, definitions, eventually, eventually_eq, fetch, go_module, helm, karpenter, kwok,
    never, note_failure, ports, process, prometheus, tool,
};

pub use cluster::Cluster;
pub use controller::Controller;
pub use reporter::Reporter;
pub use shared::{SharedCluster, SharedInstallation};
