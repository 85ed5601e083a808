//! One cluster for all tests of a test binary.
//!
//! A `static` is never dropped: the guards end its processes with the test binary, and the next cluster sweeps its
//! folder away.

use anyhow::Result;
use tokio::sync::OnceCell;

use crate::cluster::Cluster;
use crate::options::Options;

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
