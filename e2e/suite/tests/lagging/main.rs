//! The API server that the controller talks to lags behind the store, or the store goes back to a backup. Nothing tells: requests
//! are answered, bookmarks come, watches end in good order.
//!
//! ```text
//! scene      a cluster with a controller at an API server that lags
//! held       one kind is held back, and behind it something changes that matters
//! instances  the controller begins to lead, or starts, while a kind is held back
//! restored   a store that is restored from a backup
//! ```

mod held;
mod instances;
mod restored;
mod scene;

use anyhow::{Result, ensure};

/// Nearly all of this is waiting, so it is done at one time.
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
