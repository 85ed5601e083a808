//! A real Kubernetes control plane for Nodegate's tests, demo and benchmark.
//!
//! ```text
//! go_module    the Go modules under `controlplane/`, `prometheus/` and `helm/`, built once into a cache folder
//! binaries     where etcd, kube-apiserver and the others are found
//! process      one component as a process that never outlives its owner
//! ports        ports of the loopback interface that nobody else uses
//! folder       a cluster's folder: data, certificates, logs; swept when its owner is gone
//! credentials  the cluster's CA, serving certificate, token signing key and admin token
//! kubeconfig   how clients reach the cluster, as admin or as a service account
//! options      what a cluster consists of
//! components   the command line of each component
//! cluster      all of that, started and stopped as one
//! shared       one cluster for all tests of a test binary
//! tool         runs a command line tool, such as the real `kubectl`
//! kwok         what plays the kubelets, and how a test tells it when things get ready
//! fixtures     builders for nodes, `DaemonSet`s, pods, `CSINode`s and rules
//! changes      what a test changes: node conditions, pod readiness
//! sights       what a test looks at: taints, events
//! witness      every state of the nodes, for what must not happen in between
//! audit        who wrote what, by the API server's audit log
//! wait         "this happens within...", "this does not happen for..."
//! certificate  a serving certificate in a folder
//! fetch        what a process serves over HTTP and HTTPS
//! prometheus   a real Prometheus, and promtool
//! karpenter    Karpenter's resource definitions in a cluster
//! helm         a real Helm, and this repository's chart
//! install      this repository's CRD and RBAC in a cluster
//! deployment   the installed Deployment, run as a process
//! relay        what is between the controller and the API server, and loses things
//! controller   the `nodegate` binary under test, as its own service account
//! stage        what demos are told with: screen, watches, checks
//! reporter     the same binary as a reporter
//! bench        what `make bench` measures
//! demo         the story that `make demo` shows
//! outage       the story that `make demo-outage` shows
//! ```
//!
//! Beside it, in the crate under `lab/`, is a model of the API server in memory, which is held against this one.
//!
//! Nothing here imports the product: it is run and observed from outside, as in a cluster.

pub mod audit;
pub mod bench;
pub mod binaries;
pub mod certificate;
pub mod changes;
pub mod cluster;
mod components;
pub mod controller;
mod credentials;
pub mod demo;
pub mod deployment;
pub mod fetch;
pub mod fixtures;
mod folder;
pub mod go_module;
pub mod helm;
pub mod install;
pub mod karpenter;
mod kubeconfig;
pub mod kwok;
pub mod options;
pub mod outage;
pub mod ports;
pub mod process;
pub mod prometheus;
pub mod relay;
pub mod reporter;
pub mod shared;
pub mod sights;
pub mod stage;
mod tool;
pub mod wait;
pub mod witness;

pub use cluster::Cluster;
pub use controller::Controller;
pub use folder::note_failure;
pub use options::{ControllerManager, Options};
pub use relay::Relay;
pub use reporter::Reporter;
pub use shared::{SharedCluster, SharedInstallation};
pub use wait::{eventually, eventually_eq, never};
pub use witness::Witness;
