//! A real cert-manager beside a cluster: the controllers that issue from self-signed Issuers, and the one that writes CAs into
//! webhook configurations.

use std::process::Command;

use anyhow::Result;

use crate::kubernetes::cluster::Cluster;
use crate::kubernetes::definitions::CERT_MANAGER;
use crate::kubernetes::go_module::{self, GoModule};
use crate::kubernetes::process::Process;

/// A running cert-manager. Killed when dropped.
#[derive(Debug)]
pub struct CertManager {
    process: Process,
}

impl CertManager {
    /// Installs its resource definitions, and starts it as the cluster's admin.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        cluster.install_definitions(&CERT_MANAGER).await?;
        let mut command = Command::new(GoModule::binary(&go_module::CERT_MANAGER, "cert-manager")?);
        command.env("KUBECONFIG", cluster.kubeconfig());
        let log = cluster.folder().join("cert-manager.log");
        let process = Process::start("cert-manager", command, log, cluster.lifetime())?;
        Ok(Self { process })
    }

    pub fn log(&self) -> String {
        self.process.log()
    }
}
