//! Kubernetes features that older tested versions lack (`KUBERNETES=1.34`).

use anyhow::{Context, Result};
use kube::Client;

/// Whether Kubernetes is 1.`minor` or newer. If it is older, prints what the test skips.
pub async fn is_since(client: &Client, minor: u32, what: &str) -> Result<bool> {
    let version = client.apiserver_version().await?;
    let digits = version.minor.trim_end_matches('+');
    let number: u32 = digits.parse().context(version.minor.clone())?;
    if number < minor {
        let name = version.git_version;
        eprintln!("left out: {what} came with Kubernetes 1.{minor}, and this is {name}");
    }
    Ok(number >= minor)
}
