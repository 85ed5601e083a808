//! The controller under test: it runs as its own service account, and is observed through its probes and log.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::kubernetes::fetch::get;
use crate::kubernetes::has_failed;
use crate::kubernetes::ports;
use crate::kubernetes::process::Process;
use crate::kubernetes::relay::Relay;
use crate::kubernetes::{LaggingServer, eventually};
use crate::nodegate::agreement::Question;
use crate::nodegate::cluster::Cluster;
use crate::nodegate::install::{NAMESPACE, SERVICE_ACCOUNT, program};

const STARTUP: Duration = Duration::from_secs(30);
const SHUTDOWN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(25);

/// A running controller; it dereferences to its process. Killed when dropped, after a check that `kubectl nodegate` agrees with
/// it.
#[derive(Debug)]
pub struct Controller {
    process: Process,
    probes: SocketAddr,
    /// The check at its end.
    question: Option<Question>,
}

impl Controller {
    /// Starts it with these arguments, plus those for kubeconfig and probes, and waits until it is ready.
    pub async fn start(cluster: &Cluster, arguments: &[&str]) -> Result<Self> {
        let controller = Self::spawn(cluster, arguments, &[]).await?;
        controller.once_ready().await
    }

    /// Starts it with these arguments behind a relay to the API server, without waiting until it is ready.
    pub async fn spawn_behind(
        relay: &Relay,
        cluster: &Cluster,
        arguments: &[&str],
    ) -> Result<Self> {
        let launched = Self::spawn_by_way_of(relay.url(), cluster, arguments, &[]).await?;
        Ok(launched.unasked("the relay may be what keeps it from doing what is said"))
    }

    /// Like [`Self::spawn_behind`], with an API server that may lag.
    pub async fn spawn_on(
        server: &LaggingServer,
        cluster: &Cluster,
        arguments: &[&str],
    ) -> Result<Self> {
        let launched = Self::spawn_by_way_of(server.url(), cluster, arguments, &[]).await?;
        Ok(launched.unasked("what is said is read from another server"))
    }

    /// Skips the check with `kubectl nodegate` at its end, for this reason.
    pub fn unasked(mut self, _why: &'static str) -> Self {
        self.question = None;
        self
    }

    /// Checks now, as at its end, that `kubectl nodegate` agrees with it.
    pub fn ensure_agreement(&self) -> Result<()> {
        let question = self.question.as_ref();
        question.map_or(Ok(()), |question| question.agrees(|| true))
    }

    /// The check at its end, if any.
    pub(crate) fn question(&self) -> Option<&Question> {
        self.question.as_ref()
    }

    pub async fn once_ready(mut self) -> Result<Self> {
        let deadline = Instant::now() + STARTUP;
        while !self.is_ready().await {
            self.process.ensure_running()?;
            if Instant::now() > deadline {
                bail!(
                    "the controller was not ready within {STARTUP:?}; its log:\n{}",
                    self.log()
                );
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(self)
    }

    /// Starts another build, such as that of an earlier version, and waits until it is ready.
    pub async fn start_build(build: &Path, cluster: &Cluster, arguments: &[&str]) -> Result<Self> {
        cluster.install().await?;
        let kubeconfig = cluster
            .kubeconfig_for_service_account(NAMESPACE, SERVICE_ACCOUNT)
            .await?;
        let launched = Self::launch(build, cluster, &kubeconfig, arguments, &[])?;
        let launched = launched.unasked("this version's command line may disagree with it");
        launched.once_ready().await
    }

    /// Like [`Self::start`], with environment variables and without waiting: for one that may never become ready.
    pub async fn spawn(
        cluster: &Cluster,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        Self::spawn_by_way_of(cluster.url(), cluster, arguments, environment).await
    }

    /// Starts a controller that reaches the API server at this URL.
    async fn spawn_by_way_of(
        url: String,
        cluster: &Cluster,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        cluster.install().await?;
        let kubeconfig = cluster.kubeconfig_by_way_of(url, NAMESPACE, SERVICE_ACCOUNT);
        Self::launch(
            &binary()?,
            cluster,
            &kubeconfig.await?,
            arguments,
            environment,
        )
    }

    /// Starts a binary with these arguments, followed by those for kubeconfig and probes.
    pub(crate) fn launch(
        build: &Path,
        cluster: &Cluster,
        kubeconfig: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let probes = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let mut command = Command::new(build);
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!("--health-probe-bind-address={probes}"))
            .envs(environment.iter().copied());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = cluster.folder().join(format!("nodegate-{number}.log"));
        let process = Process::start("nodegate", command, log, cluster.lifetime())?;
        let mut files = arguments.iter().rev();
        let config = files.find_map(|it| it.strip_prefix("--config="));
        let mut variables = environment.iter();
        let config = config.or_else(|| Some(variables.find(|it| it.0 == "NODEGATE_CONFIG")?.1));
        let question = Question {
            kubeconfig: cluster.kubeconfig(),
            config: config.map(str::to_owned),
        };
        Ok(Self {
            process,
            probes,
            question: Some(question),
        })
    }

    pub fn probes(&self) -> SocketAddr {
        self.probes
    }

    /// Whether `/readyz` succeeds.
    pub async fn is_ready(&self) -> bool {
        get(self.probes, "/readyz")
            .await
            .is_ok_and(|(status, _)| status == 200)
    }

    pub async fn until_ready(&self, within: Duration) -> Result<()> {
        let what = "the controller is ready";
        eventually(what, within, async || Ok(self.is_ready().await)).await
    }

    /// The answer of `/readyz`: the status code and the text.
    pub async fn readiness(&self) -> Result<(u16, String)> {
        get(self.probes, "/readyz").await
    }

    /// Waits until it is not ready for a reason that has these words.
    pub async fn until_unready(&self, words: &str, within: Duration) -> Result<()> {
        eventually(words, within, async || {
            let (code, text) = self.readiness().await?;
            Ok(code == 503 && text.contains(words))
        })
        .await
    }

    /// Asks it to end (SIGTERM) and waits for its exit status.
    pub async fn stop(mut self) -> Result<ExitStatus> {
        self.process.terminate(SHUTDOWN).await
    }

    /// Leaves it running, together with its cluster, and returns its process ID.
    pub fn leave_running(mut self) -> u32 {
        self.process.detach();
        self.pid()
    }

    pub fn kill(mut self) {
        self.process.kill();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let is_there = matches!(self.process.exited(), Ok(None)) && !self.process.is_detached();
        let Some(question) = self.question.take().filter(|_| is_there) else {
            return;
        };
        let goes_on = || !thread::panicking() && !has_failed();
        if goes_on()
            && let Err(error) = question.agrees(goes_on)
        {
            panic!("{error:?}; the controller's log:\n{}", self.log());
        }
    }
}

impl Deref for Controller {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Controller {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// The controller that Cargo built for this test.
pub fn binary() -> Result<PathBuf> {
    program("nodegate-controller")
}
