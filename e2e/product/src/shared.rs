//! One cluster, or one cluster with a controller in it, for all tests of a test binary.
//!
//! A `static` is never dropped: the guards end its processes with the test binary, and the next cluster sweeps its
//! folder away.

use std::future;
use std::io::{Write, stderr};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use kube_testbed::{Options, has_failed};
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
    /// How many tests use it now, as often as each of them has asked for it.
    uses: AtomicUsize,
}

/// That a test uses an installation, until its runtime ends. Whoever is the last to do so for now asks `kubectl nodegate` whether it
/// agrees with the controller.
struct Use(&'static SharedInstallation);

impl SharedInstallation {
    /// An installation to be, for a `static`; the controller gets these arguments.
    #[must_use]
    pub const fn new(options: Options, arguments: &'static [&'static str]) -> Self {
        Self {
            cluster: SharedCluster::new(options),
            arguments,
            controller: OnceCell::const_new(),
            uses: AtomicUsize::new(0),
        }
    }

    /// The cluster, with the controller ready in it.
    ///
    /// # Errors
    ///
    /// When either does not come up.
    pub async fn get(&'static self) -> Result<&'static Cluster> {
        self.controller().await?;
        self.uses.fetch_add(1, Ordering::Relaxed);
        let used = Use(self);
        tokio::spawn(async move {
            let _used = used;
            future::pending::<()>().await;
        });
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

impl Drop for Use {
    fn drop(&mut self) {
        let Self(installation) = self;
        let is_last = installation.uses.fetch_sub(1, Ordering::Relaxed) == 1;
        let controller = installation.controller.get();
        let question = controller.and_then(Controller::question);
        let Some(question) = question.filter(|_| is_last) else {
            return;
        };
        let goes_on = || !has_failed() && installation.uses.load(Ordering::Relaxed) == 0;
        if goes_on()
            && let Err(error) = question.hold(goes_on)
        {
            // A runtime that ends catches panics, and what a test prints is kept back.
            let _ = writeln!(stderr(), "{error:?}");
            process::exit(1);
        }
    }
}
