//! What the command line for people says of a demo's cluster.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nodegate_testbed::Cluster;
use nodegate_testbed::controller::binary;

/// What is typed, and what the command line answers.
///
/// # Errors
///
/// When it cannot answer.
pub async fn ask(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let typed = arguments.join(" ");
    let mut command = Command::new(binary()?);
    command
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig())
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output())
        .await?
        .with_context(|| format!("running nodegate {typed}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nodegate {typed}: {errors}");
    let answer = String::from_utf8_lossy(&output.stdout);
    Ok(format!("$ kubectl nodegate {typed}\n{answer}"))
}
