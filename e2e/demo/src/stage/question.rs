//! Runs the command line on a demo's cluster.

use anyhow::{Result, ensure};
use nodegate_testbed::{Cluster, ask};

/// The typed command, and its answer.
///
/// # Errors
///
/// When the command fails.
pub async fn ask(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let typed = arguments.join(" ");
    let said = ask::ask(&cluster.kubeconfig(), arguments).await?;
    ensure!(said.code == 0, "kubectl nodegate {typed}: {}", said.err);
    Ok(format!("$ kubectl nodegate {typed}\n{}", said.out))
}
