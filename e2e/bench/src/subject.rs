//! The measured controller: a separate process, started by its command, observed only from outside.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use testkit::nodegate::Cluster;
use testkit::nodegate::controller;
use testkit::nodegate::install::{NAMESPACE, SERVICE_ACCOUNT};
use testkit::nodegate::process::Process;

/// How long it may take to stop.
const SHUTDOWN: Duration = Duration::from_secs(20);

/// The shell command for this repository's controller as shipped, but for the limit: rules gate all nodes at once here.
const NODEGATE: &str = r#""$NODEGATE" --kubeconfig "$KUBECONFIG" --health-probe-bind-address 0 --max-first-gated 100%"#;

/// How to start the controller.
#[derive(Debug, Clone)]
pub enum Recipe {
    /// This repository's.
    Nodegate(PathBuf),
    /// With a shell command, which finds the cluster by `$KUBECONFIG`.
    Shell(String),
}

impl Recipe {
    /// The recipe for a shell command, or else for this repository's controller.
    pub fn new(command: Option<String>) -> Result<Self> {
        match command {
            Some(command) => Ok(Self::Shell(command)),
            None => controller::binary().map(Self::Nodegate),
        }
    }

    /// Its name in the results, which marks a build without optimization.
    pub fn name(&self) -> String {
        match self {
            Self::Nodegate(binary) => {
                let mut name = "nodegate-controller".to_owned();
                if binary.iter().any(|folder| folder == "debug") {
                    name.push_str(" (debug build)");
                }
                name
            }
            Self::Shell(command) => command.clone(),
        }
    }

    /// Grants its permissions. This repository's controller gets only those of `config/rbac`.
    pub async fn permit(&self, cluster: &Cluster) -> Result<()> {
        if let Self::Shell(_) = self {
            let account = format!("--serviceaccount={NAMESPACE}:{SERVICE_ACCOUNT}");
            let kind = ["create", "clusterrolebinding", "bench-controller"];
            let arguments = [&kind[..], &["--clusterrole=cluster-admin", &account]].concat();
            cluster.kubectl(&arguments).await?;
        }
        Ok(())
    }

    fn command(&self) -> Command {
        // `exec` gives the controller the shell's process ID, which is the measured one.
        let (line, nodegate) = match self {
            Self::Nodegate(binary) => (NODEGATE, Some(binary)),
            Self::Shell(command) => (command.as_str(), None),
        };
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("exec {line}"));
        if let Some(binary) = nodegate {
            command.env("NODEGATE", binary);
        }
        command
    }
}

/// The resources it has used since its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// CPU time, in user and kernel mode.
    pub cpu: Duration,
    /// Peak resident memory, in MiB.
    pub peak_memory: f64,
}

/// The running controller. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Subject {
    process: Process,
}

impl Subject {
    /// Starts it in a cluster, as the service account of `config/rbac`, without waiting.
    pub(crate) async fn start(cluster: &Cluster, recipe: &Recipe) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let kubeconfig = cluster
            .kubeconfig_for_service_account(NAMESPACE, SERVICE_ACCOUNT)
            .await?;
        let mut command = recipe.command();
        command.env("KUBECONFIG", kubeconfig);
        let log = cluster.folder().join(format!("controller-{number}.log"));
        let process = Process::start("the controller", command, log, cluster.lifetime())?;
        Ok(Self { process })
    }

    pub(crate) fn ensure_running(&mut self) -> Result<()> {
        self.process.ensure_running()
    }

    /// Its resource usage so far, from `/proc`.
    pub(crate) fn usage(&mut self) -> Result<Usage> {
        self.ensure_running()?;
        let cpu = cpu_of(self.process.pid())?;
        let peak = u32::try_from(self.process.memory("VmHWM")?)?;
        Ok(Usage {
            cpu,
            peak_memory: f64::from(peak) / 1024.0,
        })
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.process.terminate(SHUTDOWN).await?;
        Ok(())
    }
}

/// The CPU time of a process's current threads, in user and kernel mode.
pub(crate) fn cpu_of(pid: u32) -> Result<Duration> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let mut cpu = Duration::ZERO;
    // The process's own sum counts in hundredths of a second, which is too coarse for an idle one.
    for thread in threads.context("reading a process's threads")? {
        let path = thread.context("reading a thread")?.path().join("schedstat");
        // A thread may end at any time.
        cpu += fs::read_to_string(path)
            .ok()
            .and_then(|text| run_time(&text))
            .unwrap_or_default();
    }
    Ok(cpu)
}

/// A thread's run time: the first number of its `schedstat`, in nanoseconds.
fn run_time(schedstat: &str) -> Option<Duration> {
    let nanoseconds = schedstat.split_whitespace().next()?;
    Some(Duration::from_nanos(nanoseconds.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_a_process_has_used() {
        assert_eq!(
            run_time("1500000 300 12\n"),
            Some(Duration::from_micros(1500))
        );
        assert_eq!(run_time(""), None);
    }
}
