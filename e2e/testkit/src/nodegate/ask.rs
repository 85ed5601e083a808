//! `kubectl nodegate`, run as kubectl runs its plugins.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::nodegate::install::program;

#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub fn command(kubeconfig: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(program("kubectl-nodegate")?);
    command
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null());
    Ok(command)
}

/// Runs a command and waits for its answer.
pub async fn ask(kubeconfig: &Path, arguments: &[&str]) -> Result<Said> {
    let command = command(kubeconfig, arguments)?;
    tokio::task::spawn_blocking(move || answer(command)).await?
}

/// Runs a command that answers in JSON.
pub async fn ask_json(kubeconfig: &Path, arguments: &[&str]) -> Result<Value> {
    let command = command(kubeconfig, &as_json(arguments))?;
    json(&tokio::task::spawn_blocking(move || answer(command)).await??)
}

/// Like [`ask_json`], but blocks the current thread.
pub(crate) fn ask_json_now(kubeconfig: &Path, arguments: &[&str]) -> Result<Value> {
    json(&answer(command(kubeconfig, &as_json(arguments))?)?)
}

fn as_json<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["-o", "json"]].concat()
}

fn answer(mut command: Command) -> Result<Said> {
    let output = command.output().context("running kubectl nodegate")?;
    Ok(Said {
        code: output.status.code().context("it was killed")?,
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

fn json(said: &Said) -> Result<Value> {
    serde_json::from_str(&said.out).with_context(|| format!("no JSON: {said:?}"))
}
