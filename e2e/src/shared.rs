//! One cluster for all tests of a test binary.
//!
//! A `static` is never dropped: the guards end its processes with the test binary, and the next cluster sweeps its
//! folder away.

use std::panic;

use anyhow::Result;
use tokio::sync::OnceCell;

use crate::cluster::{Cluster, Options};

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

    /// The cluster; the first caller starts it, and later ones wait for that. Once a test has panicked, its logs are kept.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub async fn get(&'static self) -> Result<&'static Cluster> {
        self.cluster
            .get_or_try_init(async || {
                let cluster = Cluster::start(self.options.clone()).await?;
                self.report_panics();
                Ok(cluster)
            })
            .await
    }

    fn report_panics(&'static self) {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            previous(info);
            if let Some(cluster) = self.cluster.get() {
                cluster.mark_failed();
                eprintln!("the cluster's logs are in {}", cluster.folder().display());
            }
        }));
    }
}
