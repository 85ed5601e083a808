//! A real Karpenter with its kwok provider, built from its Go module (`karpenter/`).
//!
//! The provider creates a Node for each `NodeClaim`, annotated so that kwok simulates its kubelet. Everything else is Karpenter
//! as shipped: what it launches, which taints it knows, what it consolidates, replaces and drains.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::kubernetes::cluster::Cluster;
use crate::kubernetes::definitions::{KARPENTER, KARPENTER_NODE_CLASS};
use crate::kubernetes::fetch::get;
use crate::kubernetes::go_module::{self, GoModule};
use crate::kubernetes::ports;
use crate::kubernetes::process::Process;
use crate::kubernetes::wait::eventually;

/// The timeout for its start: it fills its caches first.
const STARTUP: Duration = Duration::from_secs(60);

/// A running Karpenter. Killed when dropped.
#[derive(Debug)]
pub struct Karpenter {
    process: Process,
}

impl Karpenter {
    /// Installs its resource definitions, starts it as the cluster's admin, and waits until it is ready.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        cluster.install_definitions(&KARPENTER).await?;
        cluster.install_definitions(&KARPENTER_NODE_CLASS).await?;
        let probes = ports::free()?;
        let mut command = Command::new(GoModule::binary(&go_module::KARPENTER, "karpenter")?);
        command
            .current_dir(cluster.folder())
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("SYSTEM_NAMESPACE", "kube-system")
            .env("DISABLE_LEADER_ELECTION", "true")
            .env("METRICS_PORT", ports::free()?.to_string())
            .env("HEALTH_PROBE_PORT", probes.to_string());
        let log = cluster.folder().join(format!("karpenter-{probes}.log"));
        let process = Process::start("karpenter", command, log, cluster.lifetime())?;
        let mut karpenter = Self { process };
        let address = (std::net::Ipv4Addr::LOCALHOST, probes).into();
        eventually("Karpenter is ready", STARTUP, async || {
            karpenter.process.ensure_running()?;
            Ok(get(address, "/readyz")
                .await
                .is_ok_and(|(status, _)| status == 200))
        })
        .await?;
        Ok(karpenter)
    }
}
