//! Waits until a node is held or released, or a condition of it is reported.

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use testkit::nodegate::state::{has_taint, node_condition};
use testkit::nodegate::{eventually, never};

use crate::{A_WHILE, SOON};

/// Waits until the node has a taint with this key.
pub async fn eventually_gated(client: &Client, node: &str, key: &str) -> Result<()> {
    gated_within(client, node, key, SOON).await
}

/// Like [`eventually_gated`], with another timeout.
pub async fn gated_within(client: &Client, node: &str, key: &str, timeout: Duration) -> Result<()> {
    eventually(&format!("{node} gets {key}"), timeout, async || {
        has_taint(client, node, key).await
    })
    .await
}

/// Waits until the node has no taint with this key.
pub async fn eventually_released(client: &Client, node: &str, key: &str) -> Result<()> {
    released_within(client, node, key, SOON).await
}

/// Like [`eventually_released`], with another timeout.
pub async fn released_within(
    client: &Client,
    node: &str,
    key: &str,
    timeout: Duration,
) -> Result<()> {
    eventually(&format!("{node} loses {key}"), timeout, async || {
        Ok(!has_taint(client, node, key).await?)
    })
    .await
}

/// Waits until a condition of the node has this status.
pub async fn eventually_reported(
    client: &Client,
    node: &str,
    condition: &str,
    status: &str,
) -> Result<()> {
    let what = format!("{condition} of {node} is {status}");
    eventually(&what, SOON, async || {
        let found = node_condition(client, node, condition).await?;
        Ok(found.is_some_and(|found| found.status == status))
    })
    .await
}

/// Checks for a while that the node keeps its taint with this key.
pub async fn stays_held(client: &Client, node: &str, key: &str) -> Result<()> {
    never(&format!("{node} loses {key}"), A_WHILE, async || {
        Ok(!has_taint(client, node, key).await?)
    })
    .await
}

/// Checks for a while that the node gets no taint with this key.
pub async fn stays_released(client: &Client, node: &str, key: &str) -> Result<()> {
    never(&format!("{node} gets {key}"), A_WHILE, async || {
        has_taint(client, node, key).await
    })
    .await
}
