//! The `realnode` command: builds what a real node is made of, and runs commands on a machine of their own.

use std::os::unix::process::CommandExt;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use testkit::realnode::inside;
use testkit::realnode::programs::Programs;

/// A real Kubernetes node for tests: kubelet, containerd, runc and CNI plugins in namespaces that need no root.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// Build the programs from their Go modules, unless they are in the cache already.
    Build,
    /// Tell whether this machine allows the namespaces, and if not, what to do.
    Check,
    /// Run a command in namespaces of its own.
    Run {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Cli::parse().job {
        Job::Build => Programs::build().map(drop),
        Job::Check => {
            let status = inside::command(&[])?.status();
            let status = status.context("trying the namespaces")?;
            ensure!(status.success(), "no real node can run on this machine");
            Ok(())
        }
        Job::Run { command } => {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let error = inside::command(&command)?.exec();
            Err(error).context("entering namespaces")
        }
    }
}
