//! Grace periods: how long an open node's conditions must be unmet before it is closed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nodegate_testbed::changes::set_node_condition;
use serde_json::json;

use super::{READY, client, create_open, eventually_gated, eventually_open, rule, stays_open};

#[tokio::test]
async fn an_open_node_is_closed_only_after_the_grace_period() -> Result<()> {
    let client = client().await?;
    rule("grace")
        .spec("gracePeriod", json!("4s"))
        .create(&client)
        .await?;
    create_open(&client, "grace", "grace").await?;
    let turned = Instant::now();
    set_node_condition(&client, "grace", READY, "False").await?;
    stays_open(&client, "grace", "grace", Duration::from_secs(3)).await?;
    eventually_gated(&client, "grace", "grace").await?;
    ensure!(turned.elapsed() >= Duration::from_secs(4), "too early");
    set_node_condition(&client, "grace", READY, "True").await?;
    eventually_open(&client, "grace", "grace").await
}
