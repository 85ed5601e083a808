//! Real Kubernetes control planes for tests: etcd, API server, controller manager and scheduler as processes on the loopback
//! interface, up in seconds and gone when dropped, with [kwok](https://kwok.sigs.k8s.io) as the kubelet of as many nodes as a
//! test wants. No containers, no root, and nothing to install: what is not in `KUBEBUILDER_ASSETS` is built from Go modules
//! into a cache.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use kube_testbed::changes::set_node_condition;
//! use kube_testbed::fixtures::{daemon_set, node};
//! use kube_testbed::sights::{is_ready, pods_on};
//! use kube_testbed::{Cluster, Options, eventually};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let cluster = Cluster::start(Options::full()).await?;
//! let client = cluster.client().await?;
//! daemon_set("kube-system/network")
//!     .tolerate_everything()
//!     .ready_after(Duration::from_secs(2))
//!     .create(&client)
//!     .await?;
//! node("worker-1").managed_by_kwok().create(&client).await?;
//! set_node_condition(&client, "worker-1", "example.com/NetworkReady", "False").await?;
//! eventually("the network's pod is Ready", Duration::from_secs(20), async || {
//!     Ok(pods_on(&client, "worker-1").await?.iter().any(is_ready))
//! })
//! .await?;
//! # Ok(())
//! # }
//! ```
//!
//! A cluster:
//!
//! ```text
//! cluster      a cluster, started and stopped as one
//! options      what it consists of
//! components   the command line of each component
//! process      one component as a process that never outlives its owner
//! ports        ports of the loopback interface that nobody else uses
//! folder       its folder: data, certificates, logs; swept when its owner is gone
//! credentials  its CA, serving certificate, token signing key and admin token
//! kubeconfig   how clients reach it
//! accounts     its service accounts, and how a process is one of them
//! ```
//!
//! What it is made of:
//!
//! ```text
//! go_module    the Go modules beside this crate's sources, built once into a cache folder
//! binaries     where etcd, kube-apiserver and the others are found
//! kwok         what plays the kubelets, and how a test tells it when things get ready
//! ```
//!
//! What a test does there:
//!
//! ```text
//! fixtures     builders for nodes, `DaemonSet`s, pods, `CSINode`s and Karpenter's objects
//! changes      what a test changes: node conditions, pod readiness
//! sights       what a test looks at: taints, conditions, events
//! wait         "this happens within...", "this does not happen for..."
//! witness      every state of the nodes, for what must not happen in between
//! audit        who wrote what, by the API server's audit log
//! relay        what is between a client and the API server, and loses things
//! lagging      a second API server that lags behind the store
//! ```
//!
//! What a test has beside a cluster:
//!
//! ```text
//! tool         runs a command line tool, such as the real `kubectl`
//! helm         a real Helm
//! prometheus   a real Prometheus, and promtool
//! karpenter    a real Karpenter with its kwok provider
//! cert_manager a real cert-manager, as far as webhooks need it
//! definitions  the resource definitions of other projects, without what acts on them
//! certificate  a serving certificate in a folder
//! fetch        what a process serves over HTTP and HTTPS
//! ```

mod accounts;
pub mod audit;
pub mod binaries;
pub mod cert_manager;
pub mod certificate;
pub mod changes;
pub mod cluster;
mod components;
mod credentials;
pub mod definitions;
pub mod fetch;
pub mod fixtures;
mod folder;
pub mod go_module;
pub mod helm;
pub mod karpenter;
mod kubeconfig;
pub mod kwok;
pub mod lagging;
pub mod options;
pub mod ports;
pub mod process;
pub mod prometheus;
pub mod relay;
pub mod sights;
pub mod tool;
pub mod wait;
pub mod witness;

pub use cluster::Cluster;
pub use folder::{has_failed, note_failure};
pub use lagging::LaggingServer;
pub use options::{ControllerManager, Options};
pub use relay::Relay;
pub use wait::{eventually, eventually_eq, never};
pub use witness::Witness;
