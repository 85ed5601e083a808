//! The controller that is measured: a process of its own, started by its command, seen only from outside.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use nodegate_testbed::Cluster;
use nodegate_testbed::controller;
use nodegate_testbed::install::{NAMESPACE, SERVICE_ACCOUNT};
use nodegate_testbed::process::Process;

/// How long it may take to end when it is told to.
const SHUTDOWN: Duration = Duration::from_secs(20);

/// The shell's words for this repository's controller, as it is shipped.
const NODEGATE: &str =
    r#""$NODEGATE" controller --kubeconfig "$KUBECONFIG" --health-probe-bind-address 0"#;

/// How the controller is started.
#[derive(Debug, Clone)]
pub enum Recipe {
    /// This repository's, from this binary.
    Nodegate(PathBuf),
    /// By a shell command, which finds the cluster by `$KUBECONFIG`.
    Shell(String),
}

impl Recipe {
    /// A shell command, or without one this repository's controller.
    ///
    /// # Errors
    ///
    /// When that has not been built.
    pub fn new(command: Option<String>) -> Result<Self> {
        match command {
            Some(command) => Ok(Self::Shell(command)),
            None => controller::binary().map(Self::Nodegate),
        }
    }

    /// What it is called in results. Figures of a build without optimization are marked.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Nodegate(path) if path.iter().any(|folder| folder == "debug") => {
                "nodegate controller (debug build)".to_owned()
            }
            Self::Nodegate(_) => "nodegate controller".to_owned(),
            Self::Shell(command) => command.clone(),
        }
    }

    /// Gives it the rights that it may need. This repository's controller has those of `config/rbac`, and no others.
    ///
    /// # Errors
    ///
    /// When `kubectl` fails.
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
        // The shell makes way for the controller, which so has the process id that is looked at.
        let (line, binary) = match self {
            Self::Nodegate(path) => (NODEGATE, Some(path)),
            Self::Shell(command) => (command.as_str(), None),
        };
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("exec {line}"));
        command.envs(binary.map(|path| ("NODEGATE", path)));
        command
    }
}

/// What it has used since it was started.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// CPU, in user and kernel mode.
    pub cpu: Duration,
    /// MiB that were resident at most.
    pub peak_memory: f64,
}

/// The running controller. Killed when dropped.
#[derive(Debug)]
pub struct Subject {
    process: Process,
}

impl Subject {
    /// Starts it in a cluster, as the service account of `config/rbac`, and does not wait. It finds the API server at
    /// this port, where one is given.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub async fn start(cluster: &Cluster, recipe: &Recipe, port: Option<u16>) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let kubeconfig = cluster
            .kubeconfig_for_service_account(NAMESPACE, SERVICE_ACCOUNT)
            .await?;
        if let Some(port) = port {
            let text = fs::read_to_string(&kubeconfig).context("reading the kubeconfig")?;
            let text = text.replace(&cluster.url(), &format!("https://127.0.0.1:{port}"));
            fs::write(&kubeconfig, text).context("writing the kubeconfig")?;
        }
        let mut command = recipe.command();
        command.env("KUBECONFIG", kubeconfig);
        let log = cluster.folder().join(format!("controller-{number}.log"));
        let process = Process::start("the controller", command, log, cluster.lifetime())?;
        Ok(Self { process })
    }

    /// An error with the end of its log when it has ended.
    ///
    /// # Errors
    ///
    /// See above.
    pub fn ensure_running(&mut self) -> Result<()> {
        self.process.ensure_running()
    }

    /// What it has used so far, by `/proc`.
    ///
    /// # Errors
    ///
    /// When it has ended, or the system has no such `/proc`.
    pub fn usage(&mut self) -> Result<Usage> {
        self.ensure_running()?;
        let cpu = cpu_of(self.process.pid())?;
        let peak = u32::try_from(self.process.memory("VmHWM")?)?;
        Ok(Usage {
            cpu,
            peak_memory: f64::from(peak) / 1024.0,
        })
    }

    /// Asks it to end, and waits.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub async fn stop(mut self) -> Result<()> {
        self.process.terminate(SHUTDOWN).await?;
        Ok(())
    }
}

/// How much CPU a process has used, in user and kernel mode, by the threads that it has.
///
/// # Errors
///
/// When it has ended, or the system has no such `/proc`.
pub fn cpu_of(pid: u32) -> Result<Duration> {
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

/// How long a thread has run: the first number of its `schedstat`, in nanoseconds.
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
