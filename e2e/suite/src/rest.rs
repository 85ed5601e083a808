//! Waits until the controller comes to rest.

use std::time::{Duration, Instant};

use anyhow::Result;
use nodegate_testbed::audit::Write;
use nodegate_testbed::{Cluster, eventually};

use crate::SOON;

/// How long the controller writes nothing when it is at rest: statuses are written at most once a second.
const QUIET: Duration = Duration::from_secs(2);

/// The controller's writes of objects whose names start like this, except events. The cluster needs an audit log.
pub fn writes_about(cluster: &Cluster, prefix: &str) -> Vec<Write> {
    let mut writes = cluster.controllers_writes();
    writes.retain(|write| write.resource != "events" && write.name.starts_with(prefix));
    writes
}

/// Waits until there have been no [`writes_about`] these objects for two seconds; returns all so far.
///
/// # Errors
///
/// After [`SOON`].
pub async fn at_rest(cluster: &Cluster, prefix: &str) -> Result<Vec<Write>> {
    let mut last = (0, Instant::now());
    eventually("the controller comes to rest", SOON, async || {
        let writes = writes_about(cluster, prefix);
        if writes.len() != last.0 {
            last = (writes.len(), Instant::now());
        }
        Ok((last.1.elapsed() > QUIET).then_some(writes))
    })
    .await
}
