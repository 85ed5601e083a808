//! One cluster, or one cluster with a controller in it, for all tests of a test binary.
//!
//! A `static` is never dropped: the guards end its processes with the test binary, and the next cluster sweeps its
//! folder away.

use anyhow::Result;
use kube_testbed::Options;
use tokio::sync::OnceCell;

use crate::cluster::Cluster;
use crate::controller::Controller;

/// A cluster that starts when it is first asked for.
#[derive(Debug)]
pub struct SharedCluster {
    options: Options,
    cluster: OnceCell<Cluster>,
}

impl SharedCluster {
    /// A cluster to be, for a `static`.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        Self {
            options,
            cluster: OnceCell::const_new(),
        }
    }

    /// The cluster; the first caller starts it, and later ones wait for that.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub async fn get(&'static self) -> Result<&'static Cluster> {
        self.cluster
            .get_or_try_init(async || Cluster::start(self.options.clone()).await)
            .await
    }
}

/// A cluster with the controller running in it, for tests that keep to nodes, labels and taint keys of their own.
#[derive(Debug)]
pub struct SharedInstallation {
    cluster: SharedCluster,
    arguments: &'static [&'static str],
    controller: OnceCell<Controller>,
}

impl SharedInstallation {
    /// An installation to be, for a `static`; the controller gets these arguments.
    #[must_use]
    pub const fn new(options: Options, arguments: &'static [&'static str]) -> Self {
        Self {
            cluster: SharedCluster::new(options),
            arguments,
            controller: OnceCell::const_new(),
        }
    }

    /// The cluster, with the controller ready in it.
    ///
    /// # Errors
    ///
    /// When either does not come up.
    pub async fn get(&'static self) -> Result<&'static Cluster> {
        self.controller().await?;
        self.cluster.get().await
    }

    /// The controller.
    ///
    /// # Errors
    ///
    /// When it or its cluster does not come up.
    pub async fn controller(&'static self) -> Result<&'static Controller> {
        let cluster = self.cluster.get().await?;
        self.controller
            .get_or_try_init(async || Controller::start(cluster, self.arguments).await)
            .await
    }
}
