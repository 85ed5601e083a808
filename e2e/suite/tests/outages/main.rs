//! The controller is killed, stopped, paused, or loses its API server, at the worst moment: afterwards every node is as
//! it should be, without anything being done twice.
//!
//! ```text
//! restart   it ends, in whatever way, and is started again
//! away      the API server goes away, or the controller itself for a while
//! change    rules and nodes that come, go and change meanwhile
//! ```

mod away;
mod change;
mod restart;

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
