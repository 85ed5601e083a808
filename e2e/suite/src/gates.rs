//! Waits for a node to be closed, and to be open again.

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use nodegate_testbed::eventually;
use nodegate_testbed::sights::has_taint;

use crate::SOON;

/// Waits until the node has the taint of this key.
///
/// # Errors
///
/// When it does not get it soon.
pub async fn eventually_gated(client: &Client, node: &str, key: &str) -> Result<()> {
    gated_within(client, node, key, SOON).await
}

/// As [`eventually_gated`], with so much time.
///
/// # Errors
///
/// As there.
pub async fn gated_within(client: &Client, node: &str, key: &str, timeout: Duration) -> Result<()> {
    eventually(&format!("{node} gets {key}"), timeout, async || {
        has_taint(client, node, key).await
    })
    .await
}

/// Waits until the node has no taint of this key.
///
/// # Errors
///
/// When it does not lose it soon.
pub async fn eventually_open(client: &Client, node: &str, key: &str) -> Result<()> {
    opened_within(client, node, key, SOON).await
}

/// As [`eventually_open`], with so much time.
///
/// # Errors
///
/// As there.
pub async fn opened_within(
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
