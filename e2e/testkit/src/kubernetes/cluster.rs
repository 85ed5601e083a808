//! A Kubernetes cluster of real components on the loopback interface. It starts in seconds and vanishes when dropped.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{mem, thread};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use tokio::net::TcpStream;

use crate::kubernetes::baseline::Baseline;
use crate::kubernetes::binaries::{Binaries, Component};
use crate::kubernetes::components::Launcher;
use crate::kubernetes::credentials::Credentials;
use crate::kubernetes::folder::{Folder, has_failed};
use crate::kubernetes::kubeconfig::{self, Server};
use crate::kubernetes::options::Options;
use crate::kubernetes::process::{Lifetime, Process};
use crate::kubernetes::slots::{ClusterPermit, Slot};
use crate::kubernetes::{ports, tool};

/// The timeout for a component's start. It takes seconds; on a busy machine, longer.
const STARTUP: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(25);

/// The port of the API server's Service, and of the API server itself if pods reach it directly.
const HTTPS: u16 = 443;

/// How often to start when another process takes one of the ports.
const ATTEMPTS: usize = 3;

/// The dropped cluster that the next test of this process may reuse.
static DROPPED: Mutex<Option<Cluster>> = Mutex::new(None);

/// A running cluster. Dropping it kills its processes and removes its folder, unless the next test may reuse it
/// ([`Options::reuse`]); after a failure the logs remain.
#[derive(Debug)]
pub struct Cluster {
    server: Server,
    launcher: Launcher,
    processes: Mutex<Processes>,
    folder: Arc<Folder>,
    /// Freed once the processes have ended.
    slot: Mutex<Option<Slot>>,
    /// What to restore before the next test. `None` if it cannot be reused, such as after a component was stopped or added.
    baseline: Mutex<Option<Baseline>>,
}

/// The processes in the order in which they stop: the API server before etcd, without which it would hang.
#[derive(Debug, Default)]
struct Processes {
    clients: Vec<Process>,
    api_server: Option<Process>,
    etcd: Option<Process>,
}

impl Cluster {
    /// Starts a cluster, or reuses the previous test's, and waits until it is ready. A process has one such cluster at a time,
    /// and a machine as many as cores.
    pub async fn start(options: Options) -> Result<Self> {
        Self::start_with(options, false).await
    }

    /// The same for a cluster that lives as long as its process, besides others.
    pub async fn start_shared(options: Options) -> Result<Self> {
        Self::start_with(options, true).await
    }

    /// Lets another cluster start beside this one: from now on its test mostly waits, and for long.
    pub fn idles(&self) {
        self.take_baseline();
        lock(&self.slot).take();
    }

    async fn start_with(mut options: Options, is_shared: bool) -> Result<Self> {
        options.reuse &= !is_shared;
        let binaries = Binaries::locate()?;
        let mut attempt = 1;
        loop {
            let slot = Slot::take(is_shared).await?;
            let dropped = if is_shared {
                None
            } else {
                lock(&DROPPED).take()
            };
            // One with other options ends here, as it has no baseline any more.
            if let Some(dropped) = dropped
                && let Some(baseline) = dropped.take_baseline()
                && dropped.launcher.options == options
            {
                let restored = baseline.restore(dropped.store(), dropped.folder()).await;
                restored.context("restoring the previous test's cluster")?;
                *lock(&dropped.baseline) = Some(baseline);
                *lock(&dropped.slot) = Some(slot);
                return Ok(dropped);
            }
            match Self::try_start(options.clone(), binaries.clone(), slot).await {
                Err(error) if attempt < ATTEMPTS && is_port_taken(&error) => attempt += 1,
                result => return result,
            }
        }
    }

    async fn try_start(options: Options, binaries: Binaries, slot: Slot) -> Result<Self> {
        let folder = Arc::new(Folder::create()?);
        let credentials = Credentials::create(folder.path())?;
        let api_port = match options.pods_reach {
            Some(_) => HTTPS,
            None => ports::free()?,
        };
        let launcher = Launcher {
            options,
            binaries,
            credentials,
            folder: folder.path().to_owned(),
            etcd_port: ports::free()?,
            api_port,
        };
        let server = Server {
            url: format!("https://127.0.0.1:{}", launcher.api_port),
            ca: launcher.credentials.ca.clone(),
        };
        let cluster = Self {
            server,
            launcher,
            processes: Mutex::default(),
            folder,
            slot: Mutex::new(Some(slot)),
            baseline: Mutex::default(),
        };
        let started = cluster.bring_up().await;
        if started.is_err() {
            cluster.folder.keep_as_failed();
        }
        started.with_context(|| format!("logs are in {}", cluster.launcher.folder.display()))?;
        Ok(cluster)
    }

    async fn bring_up(&self) -> Result<()> {
        kubeconfig::write(
            &self.kubeconfig(),
            &self.server,
            &self.launcher.credentials.admin_token,
        )?;
        let etcd = self.launcher.etcd()?;
        self.processes().etcd = Some(etcd);
        self.start_api_server().await?;
        self.wait_for_namespaces().await?;

        let clients = self.launcher.clients()?;
        let mut listening = Vec::new();
        for (process, port) in clients {
            self.processes().clients.push(process);
            listening.push(port);
        }
        for port in listening {
            self.wait("a component", async || {
                TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                    .await
                    .is_ok()
            })
            .await?;
        }
        if self.launcher.options.reuse {
            let baseline = Baseline::of(self.store(), self.folder()).await?;
            *lock(&self.baseline) = Some(baseline);
        }
        Ok(())
    }

    /// Ensures that it is not reused.
    fn take_baseline(&self) -> Option<Baseline> {
        lock(&self.baseline).take()
    }

    /// The same cluster for the next test, if it can be reused, and the turn that the next test waits for.
    fn for_next_test(&self) -> Option<(Self, ClusterPermit)> {
        let baseline = self.take_baseline().filter(|_| !has_failed())?;
        let (slot, turn) = lock(&self.slot).take()?.without_turn();
        let next = Self {
            server: self.server.clone(),
            launcher: self.launcher.clone(),
            processes: Mutex::new(mem::take(&mut *self.processes())),
            folder: self.folder.clone(),
            slot: Mutex::new(Some(slot)),
            baseline: Mutex::new(Some(baseline)),
        };
        Some((next, turn))
    }

    /// A new client with all permissions. Clients belong to the runtime they were made in: make one per test.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig()).await
    }

    /// A new client for another kubeconfig file, such as a service account's.
    pub async fn client_for(&self, kubeconfig: &Path) -> Result<Client> {
        kubeconfig::client(kubeconfig).await
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.launcher.kubeconfig()
    }

    /// Runs `kubectl` as admin and returns what it printed.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with_input(arguments, "").await
    }

    /// Runs `kubectl` with what is typed after it.
    pub async fn types(&self, words: &str) -> Result<String> {
        self.kubectl(&words.split(' ').collect::<Vec<_>>()).await
    }

    /// Applies manifests (`kubectl apply -f -`).
    pub async fn apply(&self, manifests: &str) -> Result<String> {
        self.kubectl_with_input(&["apply", "-f", "-"], manifests)
            .await
    }

    /// Applies a path (`kubectl apply --server-side`): a folder with a kustomization, a folder of manifests or a file.
    pub async fn apply_path(&self, path: &Path) -> Result<String> {
        self.kubectl_on(&["apply", "--server-side"], path).await
    }

    /// Applies a path, and refuses fields that the API server does not know.
    pub async fn apply_strictly(&self, path: &Path) -> Result<String> {
        let strictly = ["apply", "--server-side", "--validate=strict"];
        self.kubectl_on(&strictly, path).await
    }

    /// Applies a path over what somebody else has applied.
    pub async fn apply_over(&self, path: &Path) -> Result<String> {
        let over = ["apply", "--server-side", "--force-conflicts"];
        self.kubectl_on(&over, path).await
    }

    /// Runs `kubectl` on a path, such as with `apply`.
    pub async fn kubectl_on(&self, arguments: &[&str], path: &Path) -> Result<String> {
        let kind = if path.join("kustomization.yaml").is_file() {
            "-k"
        } else {
            "-f"
        };
        let path = path.to_string_lossy();
        self.kubectl(&[arguments, &[kind, &path]].concat()).await
    }

    async fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = Command::new(self.launcher.binaries.path(Component::Kubectl)?);
        command
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            .env("KUBECACHEDIR", self.launcher.folder.join("kubectl-cache"));
        tool::run(command, input).await
    }

    /// Kills the API server; etcd keeps its data.
    pub fn stop_api_server(&self) {
        self.take_baseline();
        let stopped = self.processes().api_server.take();
        drop(stopped);
    }

    /// Starts the API server on its old port and waits until it is ready.
    pub async fn start_api_server(&self) -> Result<()> {
        let process = self.launcher.api_server()?;
        self.processes().api_server = Some(process);
        let client = self.client().await?;
        self.wait("the API server", async || is_ready(&client).await)
            .await
    }

    /// Kills the API server and starts it again.
    pub async fn restart_api_server(&self) -> Result<()> {
        self.stop_api_server();
        self.start_api_server().await
    }

    /// Starts another API server in this folder, which reaches etcd at this port, and waits until it is ready. It stops with
    /// the cluster. Returns its URL and the path of its admin's kubeconfig.
    pub(crate) async fn start_another_api_server(
        &self,
        folder: PathBuf,
        etcd_port: u16,
    ) -> Result<(String, PathBuf)> {
        fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let launcher = Launcher {
            folder,
            etcd_port,
            api_port: ports::free()?,
            ..self.launcher.clone()
        };
        let server = Server {
            url: format!("https://127.0.0.1:{}", launcher.api_port),
            ca: self.server.ca.clone(),
        };
        let kubeconfig = launcher.kubeconfig();
        kubeconfig::write(&kubeconfig, &server, self.admin_token())?;
        self.take_baseline();
        let process = launcher.api_server()?;
        self.processes().clients.push(process);
        let client = kubeconfig::client(&kubeconfig).await?;
        self.wait("the other API server", async || is_ready(&client).await)
            .await?;
        Ok((server.url, kubeconfig))
    }

    /// Backs up etcd. The API server and etcd are down for some seconds.
    pub async fn back_up_store(&self) -> Result<()> {
        self.copy_store(&self.launcher.store(), &self.backup())
            .await
    }

    /// Restores etcd from the backup: later writes are lost, and their revisions are used again. The API server and etcd are
    /// down for some seconds.
    pub async fn restore_store(&self) -> Result<()> {
        self.copy_store(&self.backup(), &self.launcher.store())
            .await
    }

    async fn copy_store(&self, from: &Path, to: &Path) -> Result<()> {
        self.stop_api_server();
        let stopped = self.processes().etcd.take();
        drop(stopped);
        if to.exists() {
            fs::remove_dir_all(to).with_context(|| format!("removing {}", to.display()))?;
        }
        let mut copy = Command::new("cp");
        copy.arg("-r").args([from, to]);
        tool::run(copy, "").await?;
        let etcd = self.launcher.etcd()?;
        self.processes().etcd = Some(etcd);
        self.start_api_server().await
    }

    fn backup(&self) -> PathBuf {
        self.launcher.folder.join("etcd-backup")
    }

    /// The URL of the API server: `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        self.server.url.clone()
    }

    /// The certificate of the CA that signed the API server's, as PEM.
    pub fn ca(&self) -> &str {
        &self.server.ca
    }

    pub fn admin_token(&self) -> &str {
        &self.launcher.credentials.admin_token
    }

    /// Where etcd serves its clients, without TLS, with gRPC and its health protocol.
    pub fn store(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.launcher.etcd_port).into()
    }

    /// The folder with logs, certificates and data.
    pub fn folder(&self) -> &Path {
        &self.launcher.folder
    }

    /// The audit log so far: one JSON object a line, with requests at metadata level. Empty unless the options ask for it.
    pub fn audit_log(&self) -> String {
        fs::read_to_string(self.launcher.audit_log()).unwrap_or_default()
    }

    /// The path of the audit log, to read it while it grows.
    pub fn audit_log_path(&self) -> PathBuf {
        self.launcher.audit_log()
    }

    /// Process ids by component.
    pub fn pids(&self) -> BTreeMap<String, u32> {
        self.processes()
            .all()
            .map(|process| (process.name().to_owned(), process.pid()))
            .collect()
    }

    /// Leaves the cluster running and returns the instructions for the user: how to reach it and how to end it.
    ///
    /// # Errors
    ///
    /// When it was not started as detachable.
    pub fn leave_running(self) -> Result<String> {
        if !self.launcher.options.detachable {
            bail!("the cluster was not started to be left running");
        }
        let mut processes = self.processes();
        processes.all_mut().for_each(Process::detach);
        let pids: Vec<u32> = processes.all().map(Process::pid).collect();
        drop(processes);
        self.folder.keep_while_running(&pids)?;
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        Ok(format!(
            "export KUBECONFIG={}\n# to end it: kill -9 {}\n",
            self.kubeconfig().display(),
            pids.join(" ")
        ))
    }

    /// Whether its processes, and those that depend on it, may outlive their owner.
    pub fn lifetime(&self) -> Lifetime {
        self.launcher.options.lifetime()
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        lock(&self.processes)
    }

    /// The API server creates the system namespaces itself, shortly after it is ready.
    async fn wait_for_namespaces(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client().await?);
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            self.wait("the system's namespaces", async || {
                matches!(namespaces.get_opt(name).await, Ok(Some(_)))
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until something happens; fails when a process ends before.
    async fn wait(&self, what: &str, happened: impl AsyncFn() -> bool) -> Result<()> {
        let deadline = Instant::now() + STARTUP;
        while !happened().await {
            self.processes()
                .all_mut()
                .try_for_each(Process::ensure_running)?;
            if Instant::now() > deadline {
                bail!("{what} did not come up within {STARTUP:?}");
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let left_running = self.processes().all().any(Process::is_detached);
        if left_running {
            return;
        }
        if thread::panicking() {
            for process in self.processes().all_mut() {
                if let Err(error) = process.ensure_running() {
                    eprintln!("{error:#}");
                }
            }
        }
        if let Some((next, turn)) = self.for_next_test() {
            *lock(&DROPPED) = Some(next);
            // The next test looks for it once it has the turn.
            drop(turn);
            return;
        }
        self.processes().end();
        self.folder.dispose();
    }
}

/// Locks the mutex, even after a panic elsewhere: the processes still have to be killed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Processes {
    fn all(&self) -> impl Iterator<Item = &Process> {
        self.clients
            .iter()
            .chain(&self.api_server)
            .chain(&self.etcd)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.clients
            .iter_mut()
            .chain(&mut self.api_server)
            .chain(&mut self.etcd)
    }

    fn end(&mut self) {
        self.clients.clear();
        self.api_server = None;
        self.etcd = None;
    }
}

async fn is_ready(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    client
        .request_text(request)
        .await
        .is_ok_and(|answer| answer == "ok")
}

fn is_port_taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}
