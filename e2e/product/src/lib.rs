//! Nodegate in the test bed: installed and run as users do, and observed from outside. Nothing here imports the product.
//!
//! ```text
//! cluster      a cluster of the test bed, with this repository's CRD and RBAC
//! install      what this repository has for users to install
//! controller   the `nodegate` binary as a controller, as its own service account
//! reporter     the same binary as a reporter
//! ask          the same binary as `kubectl nodegate`
//! agreement    what it says of a cluster, held against what the controller has done there
//! deployment   the installed Deployment, run as a process
//! shared       one cluster, or one installation, for all tests of a test binary
//! rule         a builder for rules
//! fixtures     that builder, and those of the test bed
//! changes      what a test changes: rules, and what the test bed changes
//! sights       what a test looks at: the status of rules, and what the test bed shows
//! relay        the test bed's relay, which knows rules too
//! ```
//!
//! The rest of the test bed, [`kube_testbed`], is handed on: who depends on this crate needs no other for a test.

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
