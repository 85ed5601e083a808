//! The controller's API server lags behind etcd, or etcd is restored from a backup. Nothing indicates it: requests are
//! answered, bookmarks come, watches end regularly. The simulation has every kind lag; here it is one that the API server holds
//! for all nodes, the nodes themselves, and a custom resource.

mod held;
mod instances;
mod restored;
mod scene;

use anyhow::{Context, Result, ensure};

/// Nearly all of this is waiting, so it runs concurrently.
#[tokio::test]
async fn nothing_wrong_is_done_while_an_api_server_lags() -> Result<()> {
    let (nodes, rules, pods) = tokio::join!(
        held::nodes(),
        held::rules(),
        instances::a_standby_that_begins_to_lead(),
    );
    let results = [
        nodes.context("Nodes are held back"),
        rules.context("rules are held back"),
        pods.context("a standby begins to lead while pods are held back"),
    ];
    let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    ensure!(failures.is_empty(), "{failures:#?}");
    Ok(())
}
