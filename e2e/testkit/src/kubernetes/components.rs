//! The command line of each component.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::kubernetes::binaries::{Binaries, Component};
use crate::kubernetes::credentials::Credentials;
use crate::kubernetes::options::{ControllerManager, Options};
use crate::kubernetes::process::Process;
use crate::kubernetes::{kwok, ports};

/// Starts a cluster's components, as often as needed.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    pub options: Options,
    pub binaries: Binaries,
    pub credentials: Credentials,
    /// For data and logs.
    pub folder: PathBuf,
    pub etcd_port: u16,
    /// The API server's port, also after a restart.
    pub api_port: u16,
}

impl Launcher {
    pub(crate) fn etcd(&self) -> Result<Process> {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", ports::free()?);
        let mut command = self.command(Component::Etcd)?;
        command
            .args(["--unsafe-no-fsync", "--log-level", "error"])
            // In bytes: the history of thousands of nodes outgrows the default of 2 GiB within minutes.
            .arg("--quota-backend-bytes=8589934592")
            .arg("--data-dir")
            .arg(self.store())
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer]);
        self.start(Component::Etcd, command)
    }

    pub(crate) fn api_server(&self) -> Result<Process> {
        let credentials = &self.credentials;
        let mut command = self.command(Component::ApiServer)?;
        command
            .arg(format!(
                "--etcd-servers=http://127.0.0.1:{}",
                self.etcd_port
            ))
            .arg("--allow-privileged=true")
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
            .arg("--profiling=false");
        match self.options.pods_reach {
            // There is no kube-proxy, so webhooks are called at their pods' addresses.
            Some(address) => command
                .arg("--bind-address=0.0.0.0")
                .arg("--enable-aggregator-routing=true")
                .arg(format!("--advertise-address={address}")),
            None => command
                .arg("--bind-address=127.0.0.1")
                .arg("--disable-admission-plugins=ServiceAccount"),
        };
        if self.options.node_restriction {
            command.arg("--enable-admission-plugins=NodeRestriction");
        }
        if self.options.audit {
            let policy = self.folder.join("audit-policy.json");
            std::fs::write(&policy, self.audit_policy()).context("writing the audit policy")?;
            command
                .arg(flag("--audit-policy-file", &policy))
                .arg(flag("--audit-log-path", &self.audit_log()))
                // In MiB; by default the log is rotated after 100.
                .arg("--audit-log-maxsize=100000");
        }
        self.start(Component::ApiServer, command)
    }

    /// Starts the components that use the API server; each comes with the port on which it will listen.
    pub(crate) fn clients(&self) -> Result<Vec<(Process, u16)>> {
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
        if self.options.pods_reach.is_some() {
            command.arg(flag("--root-ca-file", &self.credentials.ca_certificate));
        }
        if let Some(period) = self.options.grace_period {
            command.arg(format!("--node-monitor-grace-period={}s", period.as_secs()));
        }
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
            .arg(flag("--kubeconfig", &self.kubeconfig()))
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

    /// Sets the flags that the controller manager and the scheduler share.
    fn as_admin(&self, command: &mut Command, port: u16, certificates: &str) {
        let kubeconfig = self.kubeconfig();
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
        let lifetime = self.options.lifetime();
        let log = self.folder.join(format!("{}.log", component.name()));
        Process::start(component.name(), command, log, lifetime)
    }

    fn audit_policy(&self) -> String {
        let mut rule = json!({"level": "Metadata"});
        if let Some(user) = self.options.audited_user {
            rule["users"] = json!([user]);
        }
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [rule],
        });
        policy.to_string()
    }

    /// etcd's data folder.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }
}

fn flag(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
