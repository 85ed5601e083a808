//! One cluster, or one cluster with a controller, for all tests of a test binary.
//!
//! A `static` is never dropped: the guards end its processes with the test binary, and the next cluster sweeps its folder.

use std::future;
use std::io::{Write, stderr};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use tokio::sync::OnceCell;

use crate::kubernetes::{Options, has_failed};
use crate::nodegate::cluster::Cluster;
use crate::nodegate::controller::Controller;

/// A cluster that starts when it is first needed.
#[derive(Debug)]
pub struct SharedCluster {
    options: Options,
    cluster: OnceCell<Cluster>,
}

impl SharedCluster {
    /// Describes a cluster, for a `static`.
    pub const fn new(options: Options) -> Self {
        Self {
            options,
            cluster: OnceCell::const_new(),
        }
    }

    /// The cluster. The first caller starts it, and later ones wait for that.
    pub async fn get(&'static self) -> Result<&'static Cluster> {
        self.cluster
            .get_or_try_init(async || Cluster::start_shared(self.options.clone()).await)
            .await
    }
}

/// A cluster with a running controller, for tests that use only their own nodes, labels and taint keys.
#[derive(Debug)]
pub struct SharedInstallation {
    cluster: SharedCluster,
    arguments: &'static [&'static str],
    controller: OnceCell<Controller>,
    /// The number of current uses; a test counts once for each call.
    uses: AtomicUsize,
}

/// A test's use of an installation, until its runtime ends. The last use to end checks that `kubectl nodegate` agrees with the
/// controller.
struct Use(&'static SharedInstallation);

impl SharedInstallation {
    /// Describes an installation, for a `static`, with the controller's arguments.
    pub const fn new(options: Options, arguments: &'static [&'static str]) -> Self {
        Self {
            cluster: SharedCluster::new(options),
            arguments,
            controller: OnceCell::const_new(),
            uses: AtomicUsize::new(0),
        }
    }

    /// The cluster, with a ready controller.
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
            && let Err(error) = question.agrees(goes_on)
        {
            // A runtime that ends catches panics, and the output of a test is captured.
            let _ = writeln!(stderr(), "{error:?}");
            process::exit(1);
        }
    }
}
