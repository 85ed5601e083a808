//! Runs a real Helm.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::kubernetes::cluster::Cluster;
use crate::kubernetes::go_module::{GoModule, HELM};
use crate::kubernetes::tool;

impl Cluster {
    /// Runs Helm as the cluster's admin and returns what it printed.
    pub async fn helm(&self, arguments: &[&str]) -> Result<String> {
        let mut command = command(arguments)?;
        command.env("KUBECONFIG", self.kubeconfig());
        tool::run(command, "").await
    }
}

/// Runs Helm without a cluster and returns what it printed.
pub async fn helm(arguments: &[&str]) -> Result<String> {
    let mut command = command(arguments)?;
    command.env("KUBECONFIG", "/dev/null");
    tool::run(command, "").await
}

pub fn binary() -> Result<PathBuf> {
    GoModule::binary(&HELM, "helm")
}

fn command(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(arguments);
    Ok(command)
}
