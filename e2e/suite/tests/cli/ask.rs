//! Runs the command.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use nodegate_testbed::controller::binary;
use serde_json::Value;

/// What a command has answered.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// What it has printed.
    pub out: String,
    /// What it has complained of.
    pub err: String,
}

/// Asks as kubectl does: by the name of its plugin.
pub async fn ask(kubeconfig: &Path, arguments: &[&str]) -> Result<Said> {
    let mut command = Command::new(plugin()?);
    command
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    Ok(Said {
        code: output.status.code().context("it was killed")?,
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

/// The same for an answer as JSON.
pub async fn ask_json(kubeconfig: &Path, arguments: &[&str]) -> Result<Value> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
    let said = ask(kubeconfig, &arguments).await?;
    serde_json::from_str(&said.out).with_context(|| format!("{arguments:?}: {said:?}"))
}

/// The binary, under the name by which kubectl finds it.
pub fn plugin() -> Result<std::path::PathBuf> {
    let binary = binary()?;
    let folder = std::env::temp_dir().join(format!("kubectl-nodegate-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let link = folder.join("kubectl-nodegate");
    match std::os::unix::fs::symlink(&binary, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(link),
    }
}
