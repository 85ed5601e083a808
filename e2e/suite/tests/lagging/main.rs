//! The controller's API server lags behind etcd, or etcd is restored from a backup. Nothing indicates it: requests are
//! answered, bookmarks come, watches end regularly.

mod held;
mod instances;
mod restored;
mod scene;

use anyhow::{Result, ensure};

/// Nearly all of this is waiting, so it runs concurrently.
#[tokio::test]
async fn nothing_wrong_is_done_while_an_api_server_lags() -> Result<()> {
    let results = tokio::join!(
        held::pods(),
        held::daemon_sets(),
        held::csi_nodes(),
        held::nodes(),
        held::rules(),
        instances::a_standby_that_begins_to_lead(),
        instances::a_controller_that_starts(),
    );
    let results = <[Result<()>; 7]>::from(results);
    let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    ensure!(failures.is_empty(), "{failures:#?}");
    Ok(())
}
