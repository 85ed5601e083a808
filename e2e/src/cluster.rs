//! A Kubernetes cluster of real components on the loopback interface, up in seconds and gone when dropped.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use crate::binaries::{Binaries, Component};
use crate::credentials::Credentials;
use crate::folder::Folder;
use crate::kubeconfig::{self, Server};
use crate::process::{Lifetime, Process};
use crate::{kubectl, kwok, ports};

/// How long a component may take to come up. It takes seconds; a machine that builds something else takes longer.
const STARTUP: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(25);

/// How often a start is tried again when another process took one of its ports.
const ATTEMPTS: usize = 3;

/// How long service account tokens of kubeconfig files live, in seconds.
const TOKEN_LIFETIME: i64 = 24 * 3600;

/// What the cluster consists of, beside etcd and the API server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether and how the controller manager runs.
    pub controller_manager: ControllerManager,
    /// Whether pods get scheduled.
    pub scheduler: bool,
    /// Whether kwok plays the kubelets of annotated nodes, and how often these beat.
    pub kwok: Option<Duration>,
    /// Whether the API server writes an audit log, for [`Cluster::audit_log`].
    pub audit: bool,
    /// Whether [`Cluster::leave_running`] will be asked for. Such a cluster is not killed when its owner is.
    pub detachable: bool,
}

/// How the controller manager runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerManager {
    /// Not at all.
    Off,
    /// Without node lifecycle and taint eviction: nodes keep the `not-ready` taint that they are born with, and a node
    /// that nobody beats for is left alone.
    WithoutNodeLifecycle,
    /// With every controller: a Ready node loses its `not-ready` taint, one without heartbeats is tainted after 40 s.
    Complete,
}

impl Options {
    /// etcd and the API server alone: what a test needs that writes everything itself.
    #[must_use]
    pub const fn api_only() -> Self {
        Self {
            controller_manager: ControllerManager::Off,
            scheduler: false,
            kwok: None,
            audit: false,
            detachable: false,
        }
    }

    /// Everything, with `DaemonSet`s whose pods get scheduled and Ready, but without the node lifecycle controller.
    #[must_use]
    pub const fn full() -> Self {
        Self {
            controller_manager: ControllerManager::WithoutNodeLifecycle,
            scheduler: true,
            kwok: Some(kwok::HEARTBEAT),
            audit: false,
            detachable: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::full()
    }
}

/// A running cluster. Dropping it kills its processes and removes its folder; after a failure the logs stay.
#[derive(Debug)]
pub struct Cluster {
    server: Server,
    plan: Plan,
    processes: Mutex<Processes>,
    pub(crate) installed: OnceCell<()>,
    folder: Folder,
}

/// The processes in the order in which they end: the API server before its store, without which it would hang.
#[derive(Debug, Default)]
struct Processes {
    clients: Vec<Process>,
    api_server: Option<Process>,
    etcd: Option<Process>,
}

/// What is needed to start components, again and again.
#[derive(Debug)]
struct Plan {
    options: Options,
    binaries: Binaries,
    credentials: Credentials,
    folder: PathBuf,
    etcd_port: u16,
    api_port: u16,
}

impl Cluster {
    /// Starts a cluster and waits until it answers.
    ///
    /// # Errors
    ///
    /// When a binary is missing or a component does not come up; the message shows the end of its log.
    pub async fn start(options: Options) -> Result<Self> {
        let binaries = Binaries::locate()?;
        let mut attempt = 1;
        loop {
            match Self::try_start(options.clone(), binaries.clone()).await {
                Err(error) if attempt < ATTEMPTS && is_port_taken(&error) => attempt += 1,
                result => return result,
            }
        }
    }

    async fn try_start(options: Options, binaries: Binaries) -> Result<Self> {
        let folder = Folder::create()?;
        let credentials = Credentials::create(folder.path())?;
        let plan = Plan {
            options,
            binaries,
            credentials,
            folder: folder.path().to_owned(),
            etcd_port: ports::free()?,
            api_port: ports::free()?,
        };
        let server = Server {
            url: format!("https://127.0.0.1:{}", plan.api_port),
            ca: plan.credentials.ca.clone(),
        };
        let cluster = Self {
            server,
            plan,
            processes: Mutex::default(),
            installed: OnceCell::new(),
            folder,
        };
        let started = cluster.bring_up().await;
        if started.is_err() {
            cluster.folder.keep_as_failed();
        }
        started.with_context(|| format!("logs are in {}", cluster.plan.folder.display()))?;
        Ok(cluster)
    }

    async fn bring_up(&self) -> Result<()> {
        kubeconfig::write(
            &self.kubeconfig(),
            &self.server,
            &self.plan.credentials.admin_token,
        )?;
        let etcd = self.plan.etcd()?;
        self.processes().etcd = Some(etcd);
        self.start_api_server().await?;
        self.wait_for_namespaces().await?;

        let clients = self.plan.clients()?;
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
        Ok(())
    }

    /// A new client with every right. Clients belong to the runtime they were made in: make one per test.
    ///
    /// # Errors
    ///
    /// When the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig()).await
    }

    /// A new client for another kubeconfig file, such as a service account's.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn client_for(&self, kubeconfig: &Path) -> Result<Client> {
        kubeconfig::client(kubeconfig).await
    }

    /// The path of the admin's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.plan.folder.join("admin.kubeconfig")
    }

    /// Writes a kubeconfig with a fresh token of an existing service account, and returns its path.
    ///
    /// # Errors
    ///
    /// When the API server makes no token.
    pub async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf> {
        // A file of its own each time: an earlier one may be in use.
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_LIFETIME),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let token = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("requesting a token for {namespace}/{name}"))?
            .status
            .and_then(|status| status.token)
            .context("a token request came back without a token")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = format!("{namespace}.{name}.{number}.kubeconfig");
        let path = self.plan.folder.join(file);
        kubeconfig::write(&path, &self.server, &token)?;
        Ok(path)
    }

    /// Runs `kubectl` as admin and returns what it printed.
    ///
    /// # Errors
    ///
    /// When it fails; the message is its standard error.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with_input(arguments, "").await
    }

    /// Applies manifests (`kubectl apply -f -`).
    ///
    /// # Errors
    ///
    /// When it fails; the message is kubectl's.
    pub async fn apply(&self, manifests: &str) -> Result<String> {
        self.kubectl_with_input(&["apply", "-f", "-"], manifests)
            .await
    }

    async fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = Command::new(self.plan.binaries.path(Component::Kubectl)?);
        command
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            .env("KUBECACHEDIR", self.plan.folder.join("kubectl-cache"));
        kubectl::run(command, input).await
    }

    /// Kills the API server; etcd keeps its data.
    pub fn stop_api_server(&self) {
        let stopped = self.processes().api_server.take();
        drop(stopped);
    }

    /// Starts the API server, on the port it always has, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub async fn start_api_server(&self) -> Result<()> {
        let process = self.plan.api_server()?;
        self.processes().api_server = Some(process);
        let client = self.client().await?;
        self.wait("the API server", async || is_ready(&client).await)
            .await
    }

    /// Kills the API server and starts it again.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub async fn restart_api_server(&self) -> Result<()> {
        self.stop_api_server();
        self.start_api_server().await
    }

    /// The folder with logs, certificates and data.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.plan.folder
    }

    /// The audit log so far: one JSON object a line, requests at metadata level. Empty unless asked for in the options.
    #[must_use]
    pub fn audit_log(&self) -> String {
        std::fs::read_to_string(self.plan.audit_log()).unwrap_or_default()
    }

    /// Process ids by component.
    #[must_use]
    pub fn pids(&self) -> BTreeMap<String, u32> {
        self.processes()
            .all()
            .map(|process| (process.name().to_owned(), process.pid()))
            .collect()
    }

    /// Leaves the cluster running and returns what to tell the user: how to reach it and how to end it.
    ///
    /// # Errors
    ///
    /// When it was not started as detachable.
    pub fn leave_running(self) -> Result<String> {
        if !self.plan.options.detachable {
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

    fn processes(&self) -> MutexGuard<'_, Processes> {
        // A panic elsewhere leaves the processes as they are: still to be killed.
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The system's namespaces are made by the API server itself, shortly after it is ready.
    async fn wait_for_namespaces(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client().await?);
        for name in ["default", "kube-system", "kube-node-lease"] {
            self.wait("the system's namespaces", async || {
                matches!(namespaces.get_opt(name).await, Ok(Some(_)))
            })
            .await?;
        }
        Ok(())
    }

    /// Waits for something that only happens while all processes run.
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
        self.processes().end();
        self.folder.dispose();
    }
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

impl Plan {
    fn etcd(&self) -> Result<Process> {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", ports::free()?);
        let mut command = self.command(Component::Etcd)?;
        command
            .args(["--unsafe-no-fsync", "--log-level", "error"])
            .arg("--data-dir")
            .arg(self.folder.join("etcd"))
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer]);
        self.start(Component::Etcd, command)
    }

    fn api_server(&self) -> Result<Process> {
        let credentials = &self.credentials;
        let mut command = self.command(Component::ApiServer)?;
        command
            .arg(format!(
                "--etcd-servers=http://127.0.0.1:{}",
                self.etcd_port
            ))
            .args(["--bind-address=127.0.0.1", "--allow-privileged=true"])
            .arg(format!("--secure-port={}", self.api_port))
            .arg(flag("--cert-dir", &self.folder.join("certs")))
            .arg(flag("--tls-cert-file", &credentials.serving_certificate))
            .arg(flag("--tls-private-key-file", &credentials.serving_key))
            .arg(flag("--token-auth-file", &credentials.tokens))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(flag(
                "--service-account-key-file",
                &credentials.token_public_key,
            ))
            .arg(flag(
                "--service-account-signing-key-file",
                &credentials.token_key,
            ))
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            .arg("--authorization-mode=Node,RBAC")
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg("--profiling=false");
        if self.options.audit {
            let policy = self.folder.join("audit-policy.json");
            std::fs::write(&policy, AUDIT_POLICY).context("writing the audit policy")?;
            command
                .arg(flag("--audit-policy-file", &policy))
                .arg(flag("--audit-log-path", &self.audit_log()));
        }
        self.start(Component::ApiServer, command)
    }

    /// The components that use the API server, each with the port it listens on once it is up.
    fn clients(&self) -> Result<Vec<(Process, u16)>> {
        let mut clients = Vec::new();
        if self.options.controller_manager != ControllerManager::Off {
            clients.push(self.controller_manager()?);
        }
        if self.options.scheduler {
            clients.push(self.scheduler()?);
        }
        if let Some(heartbeat) = self.options.kwok {
            clients.push(self.kwok(heartbeat)?);
        }
        Ok(clients)
    }

    fn controller_manager(&self) -> Result<(Process, u16)> {
        let controllers = match self.options.controller_manager {
            ControllerManager::Complete => "*",
            ControllerManager::WithoutNodeLifecycle | ControllerManager::Off => {
                "*,-node-lifecycle-controller,-taint-eviction-controller"
            }
        };
        let port = ports::free()?;
        let mut command = self.command(Component::ControllerManager)?;
        self.as_admin(&mut command, port, "controller-manager-certs");
        command
            .arg(flag(
                "--service-account-private-key-file",
                &self.credentials.token_key,
            ))
            .arg(format!("--controllers={controllers}"));
        Ok((self.start(Component::ControllerManager, command)?, port))
    }

    fn scheduler(&self) -> Result<(Process, u16)> {
        let port = ports::free()?;
        let mut command = self.command(Component::Scheduler)?;
        self.as_admin(&mut command, port, "scheduler-certs");
        Ok((self.start(Component::Scheduler, command)?, port))
    }

    fn kwok(&self, heartbeat: Duration) -> Result<(Process, u16)> {
        let port = ports::free()?;
        let stages = self.folder.join("kwok.yaml");
        std::fs::write(&stages, kwok::stages(heartbeat)).context("writing kwok's stages")?;
        let mut command = self.command(Component::Kwok)?;
        command
            .arg(flag("--kubeconfig", &self.folder.join("admin.kubeconfig")))
            .arg(flag("--config", &stages))
            .arg(format!("--server-address=127.0.0.1:{port}"))
            .arg("--manage-all-nodes=false")
            .arg(format!(
                "--manage-nodes-with-annotation-selector={}={}",
                kwok::MANAGED.0,
                kwok::MANAGED.1
            ));
        Ok((self.start(Component::Kwok, command)?, port))
    }

    /// The flags that the controller manager and the scheduler have in common.
    fn as_admin(&self, command: &mut Command, port: u16, certificates: &str) {
        let kubeconfig = self.folder.join("admin.kubeconfig");
        command
            .arg(flag("--kubeconfig", &kubeconfig))
            .arg(flag("--authentication-kubeconfig", &kubeconfig))
            .arg(flag("--authorization-kubeconfig", &kubeconfig))
            .arg(flag("--cert-dir", &self.folder.join(certificates)))
            .args(["--bind-address=127.0.0.1", "--leader-elect=false"])
            .arg(format!("--secure-port={port}"));
    }

    fn command(&self, component: Component) -> Result<Command> {
        let mut command = Command::new(self.binaries.path(component)?);
        command.current_dir(&self.folder);
        Ok(command)
    }

    fn start(&self, component: Component, command: Command) -> Result<Process> {
        let lifetime = if self.options.detachable {
            Lifetime::Detachable
        } else {
            Lifetime::Owner
        };
        let log = self.folder.join(format!("{}.log", component.name()));
        Process::start(component.name(), command, log, lifetime)
    }

    fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }
}

const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [{"level": "Metadata"}]
}
"#;

fn flag(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
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
