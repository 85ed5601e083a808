//! The controller is killed, stopped, paused, or loses its API server, at the worst moment. Afterwards every node is in the
//! right state, and nothing was done twice.

mod away;
mod restart;
mod warm_up;

use std::time::{Duration, Instant};

use anyhow::Result;
use nodegate_suite::PROMPTLY;
use nodegate_testbed::{Cluster, eventually};

/// Waits until the controller has written nothing for two seconds.
async fn quiet(cluster: &Cluster) -> Result<()> {
    let mut last = (0, Instant::now());
    eventually("the controller comes to rest", PROMPTLY, async || {
        let writes = cluster.controllers_writes().len();
        if writes != last.0 {
            last = (writes, Instant::now());
        }
        Ok(last.1.elapsed() > Duration::from_secs(2))
    })
    .await
}
