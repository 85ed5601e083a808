//! What the command line for people says of a demo's cluster.

use anyhow::{Result, ensure};
use nodegate_testbed::{Cluster, ask};

/// What is typed, and what the command line answers.
///
/// # Errors
///
/// When it cannot answer.
pub async fn ask(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let typed = arguments.join(" ");
    let said = ask::ask(&cluster.kubeconfig(), arguments).await?;
    ensure!(said.code == 0, "kubectl nodegate {typed}: {}", said.err);
    Ok(format!("$ kubectl nodegate {typed}\n{}", said.out))
}
