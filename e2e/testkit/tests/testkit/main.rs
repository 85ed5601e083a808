//! Clusters are as tests expect them. One test runs at a time: a cluster is reused only where no other starts in between.

mod control_plane;
mod lagging_server;
mod reuse;

use tokio::sync::Mutex;

/// Held by the test that runs.
static TURN: Mutex<()> = Mutex::const_new(());
