//! The reporter, configured by environment variables, as in a pod.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::kubernetes::fetch::get;
use crate::kubernetes::ports;
use crate::kubernetes::process::Process;
use crate::nodegate::cluster::Cluster;
use crate::nodegate::install::program;

const SHUTDOWN: Duration = Duration::from_secs(10);

/// A running reporter; it dereferences to its process. Killed when dropped.
#[derive(Debug)]
pub struct Reporter {
    process: Process,
    address: SocketAddr,
}

impl Reporter {
    /// Starts it with these environment variables, plus arguments for kubeconfig and metrics.
    pub fn start(
        cluster: &Cluster,
        kubeconfig: &Path,
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let mut command = Command::new(program("nodegate-reporter")?);
        command
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .env("METRICS_BIND_ADDRESS", address.to_string())
            .envs(environment.iter().copied());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log: PathBuf = cluster.folder().join(format!("reporter-{number}.log"));
        let process = Process::start("reporter", command, log, cluster.lifetime())?;
        Ok(Self { process, address })
    }

    /// The answer on a path, such as `/readyz`: the status code and the text.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        get(self.address, path).await
    }

    /// The value of a metric, named with its labels as printed.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let (_, text) = self.get("/metrics").await?;
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        let value = value.with_context(|| format!("no metric {name} in:\n{text}"))?;
        value.trim().parse().context("a metric without a number")
    }

    /// Asks it to end (SIGTERM) and waits for its exit status.
    pub async fn stop(mut self) -> Result<ExitStatus> {
        self.process.terminate(SHUTDOWN).await
    }
}

impl Deref for Reporter {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Reporter {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}
