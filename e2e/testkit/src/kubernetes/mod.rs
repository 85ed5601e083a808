//! Real Kubernetes control planes for tests: etcd, API server, controller manager and scheduler as processes on the loopback
//! interface. They start in seconds, and vanish when dropped or serve the process's next test.
//! [kwok](https://kwok.sigs.k8s.io) simulates the kubelets of any number of nodes. No containers, no root, and nothing to install: what `KUBEBUILDER_ASSETS` lacks is built from Go modules
//! into a cache.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use testkit::kubernetes::changes::set_node_condition;
//! use testkit::kubernetes::fixtures::{daemon_set, node};
//! use testkit::kubernetes::state::{is_ready, pods_on};
//! use testkit::kubernetes::{Cluster, Options, eventually};
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

mod accounts;
pub mod audit;
mod baseline;
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
pub mod history;
pub mod karpenter;
mod kubeconfig;
pub mod kwok;
pub mod lagging;
pub mod options;
pub mod ports;
pub mod process;
pub mod prometheus;
pub mod relay;
mod slots;
pub mod state;
pub mod tool;
pub mod versions;
pub mod wait;

pub use cluster::Cluster;
pub use folder::{has_failed, note_failure};
pub use history::NodeHistory;
pub use lagging::LaggingServer;
pub use options::{ControllerManager, Options};
pub use relay::Relay;
pub use wait::{eventually, eventually_eq, never};
