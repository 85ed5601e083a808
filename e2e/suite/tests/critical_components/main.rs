//! Critical components as in Gardener: what a node waits for before its taint goes, what it does not wait for, and what is
//! reported in the meantime.
//!
//! The tests share a cluster with the rule of `config/samples`, which selects every node. Each uses its own node pool
//! ([`pool::Pool`]). Tests of other configurations have another cluster.

mod again;
mod configured;
mod endings;
mod events;
mod lifecycle;
mod placement;
mod pool;
mod published;
mod refused;
mod shut_out;
mod unlabelled;
mod unpublished;
mod updates;

use anyhow::Result;
use nodegate_suite::{A_WHILE, SOON};
use nodegate_testbed::{Cluster, Options, SharedInstallation};
use tokio::sync::OnceCell;

/// Gardener's taint, with which its kubelets register their nodes.
const GATE: &str = "node.gardener.cloud/critical-components-not-ready";
/// The initial taint of every node, until its kubelet reports Ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_SCHEDULE: &str = "NoSchedule";

/// The condition of Gardener's rule.
const COMPONENTS_READY: &str = "node.gardener.cloud/CriticalComponentsReady";

/// Gardener's rule, which selects every Linux node.
const SAMPLE: &str = include_str!("../../../../config/samples/gardener-critical-components.yaml");
const SAMPLE_NAME: &str = "gardener-critical-components";

static INSTALLATION: SharedInstallation = SharedInstallation::new(Options::full(), &[]);

/// The cluster with Gardener's rule in force.
async fn gardener() -> Result<&'static Cluster> {
    static RULE: OnceCell<()> = OnceCell::const_new();
    let cluster = INSTALLATION.get().await?;
    RULE.get_or_try_init(async || cluster.apply(SAMPLE).await.map(drop))
        .await?;
    Ok(cluster)
}
