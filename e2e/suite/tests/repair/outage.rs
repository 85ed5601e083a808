//! An outage of the control plane during which deadlines pass.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::{Controller, never};

use super::{
    READY, are_left_alone, claim, deadline_key, eventually_deleted_within, eventually_open,
    in_seconds, key, node, own_cluster, rule,
};

/// How long the API server is away.
const OUTAGE: Duration = Duration::from_secs(15);
/// Longer than the controller takes to settle after the outage: at least as long as the outage, and less than twice the time
/// that a blind period may go undetected.
const SETTLED: Duration = Duration::from_secs(90);

/// Run by [`what_takes_a_readiness_ttl`](super::what_takes_a_readiness_ttl).
pub(crate) async fn an_outage_is_not_counted_against_nodes_and_nobody_is_forgotten_over_it()
-> Result<()> {
    const TEST: &str = "outage";
    let (cluster, client) = own_cluster().await?;
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    for name in ["outage-late", "outage-ready"] {
        claim(TEST, name).create(&client).await?;
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &in_seconds(7))
            .create(&client)
            .await?;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.stop_api_server();
    tokio::time::sleep(OUTAGE).await;
    cluster.start_api_server().await?;
    let back = Instant::now();
    let both = ["outage-late", "outage-ready"];
    never("one is deleted at once", OUTAGE / 3, async || {
        Ok(are_left_alone(&client, &both).await.is_err())
    })
    .await?;
    // Now its reporter gets through.
    set_node_condition(&client, "outage-ready", READY, "True").await?;
    eventually_open(&client, TEST, "outage-ready").await?;
    eventually_deleted_within(&client, "outage-late", SETTLED)
        .await
        .context("nothing happens any more that would wake anybody")?;
    println!("deleted {:?} after the API server is back", back.elapsed());
    ensure!(back.elapsed() >= OUTAGE, "too early");
    are_left_alone(&client, &["outage-ready"]).await
}
