//! A cluster with this repository's CRD and RBAC, installed by `kubectl`, as a user does.

use std::ops::Deref;

use anyhow::{Context, Result};
use tokio::sync::OnceCell;

use crate::kubernetes::Options;
use crate::kubernetes::audit::Write;
use crate::kubernetes::definitions::KARPENTER;
use crate::nodegate::install::{CONTROLLER, CRD, NAMESPACE, config};

/// A running cluster, which it dereferences to.
#[derive(Debug)]
pub struct Cluster {
    kubernetes: crate::kubernetes::Cluster,
    installed: OnceCell<()>,
}

impl Deref for Cluster {
    type Target = crate::kubernetes::Cluster;

    fn deref(&self) -> &crate::kubernetes::Cluster {
        &self.kubernetes
    }
}

impl Cluster {
    /// Starts a cluster and waits until it is ready, with nothing installed.
    pub async fn start(options: Options) -> Result<Self> {
        Ok(Self::of(crate::kubernetes::Cluster::start(options).await?))
    }

    /// The same for a cluster that lives as long as its process, besides others.
    pub async fn start_shared(options: Options) -> Result<Self> {
        Ok(Self::of(
            crate::kubernetes::Cluster::start_shared(options).await?,
        ))
    }

    fn of(kubernetes: crate::kubernetes::Cluster) -> Self {
        Self {
            kubernetes,
            installed: OnceCell::new(),
        }
    }

    /// Leaves the cluster running and returns the instructions for the user: how to reach it and how to end it.
    pub fn leave_running(self) -> Result<String> {
        self.kubernetes.leave_running()
    }

    /// The controller's writes so far, oldest first. The cluster needs an audit log.
    pub fn controllers_writes(&self) -> Vec<Write> {
        self.writes_of(CONTROLLER)
    }

    /// Installs CRD and RBAC; later calls do nothing.
    pub async fn install(&self) -> Result<()> {
        self.installed
            .get_or_try_init(async || {
                self.install_crd().await?;
                self.install_rbac().await
            })
            .await
            .copied()
    }

    /// Installs only the RBAC, also for later calls of [`Self::install`]: for tests with a CRD of their own, or none.
    pub async fn install_without_crd(&self) -> Result<()> {
        self.installed
            .get_or_try_init(async || self.install_rbac().await)
            .await
            .copied()
    }

    /// Installs `config/crd` and waits until it is established.
    pub async fn install_crd(&self) -> Result<()> {
        let applied = self.apply_path(&config("crd")).await;
        applied.context("installing the CRD")?;
        self.until_established(CRD).await
    }

    /// Installs `config/rbac` into its namespace.
    pub async fn install_rbac(&self) -> Result<()> {
        let namespace =
            format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}");
        self.apply(&namespace).await?;
        let applied = self.kubectl_on(&["apply"], &config("rbac")).await;
        applied.context("installing the RBAC").map(drop)
    }

    /// Installs Karpenter's resource definitions, and this repository's RBAC for them.
    pub async fn install_karpenter(&self) -> Result<()> {
        self.install_definitions(&KARPENTER).await?;
        self.install_karpenter_rbac().await
    }

    pub async fn install_karpenter_rbac(&self) -> Result<()> {
        let applied = self.kubectl_on(&["apply"], &config("karpenter")).await;
        applied
            .context("installing the RBAC for Karpenter")
            .map(drop)
    }
}
