//! A real cert-manager beside a cluster: the controllers that issue from self-signed Issuers, and the one that writes CAs into
//! webhook configurations.

use std::process::Command;

use anyhow::{Context, Result};

use crate::cluster::Cluster;
use crate::definitions::CERT_MANAGER;
use crate::go_module::GoModule;
use crate::process::Process;

/// A running cert-manager. Killed when dropped.
#[derive(Debug)]
pub struct CertManager {
    process: Process,
}

impl CertManager {
    /// Installs its resource definitions, and starts it as the cluster's admin.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        cluster.install_definitions(&CERT_MANAGER).await?;
        let module = GoModule::cert_manager()?;
        let folder = module
            .built()
            .context("cert-manager has not been built yet; type: make cert-manager")?;
        let mut command = Command::new(folder.join("cert-manager"));
        command.env("KUBECONFIG", cluster.kubeconfig());
        let log = cluster.folder().join("cert-manager.log");
        let process = Process::start("cert-manager", command, log, cluster.lifetime())?;
        Ok(Self { process })
    }

    /// Its output so far.
    pub fn log(&self) -> String {
        self.process.log()
    }
}
