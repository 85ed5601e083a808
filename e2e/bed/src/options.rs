//! What a cluster consists of.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::kwok;
use crate::process::Lifetime;

/// What the cluster consists of, beside etcd and the API server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether and how the controller manager runs.
    pub controller_manager: ControllerManager,
    /// Whether pods get scheduled.
    pub scheduler: bool,
    /// Whether kwok plays the kubelets of annotated nodes, and how often these beat.
    pub kwok: Option<Duration>,
    /// Whether the API server writes an audit log, for [`Cluster::audit_log`](crate::Cluster::audit_log).
    pub audit: bool,
    /// The user whose requests alone are in that log; without one it is everybody's, which slows the API server down.
    pub audited_user: Option<&'static str>,
    /// The address of the node that pods really run on, where they do. The API server is to be reached from there then, at its
    /// Service's address as in any cluster, and pods get tokens of their service accounts. It takes a machine, or namespaces,
    /// that nothing else runs in: the port is 443.
    pub pods_reach: Option<Ipv4Addr>,
    /// After how long without a sign of life a node is given up on, in place of Kubernetes' own 50 s.
    pub grace_period: Option<Duration>,
    /// Whether [`Cluster::leave_running`](crate::Cluster::leave_running) will be asked for. Such a cluster is not killed when its owner is.
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
            audited_user: None,
            pods_reach: None,
            grace_period: None,
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
            audited_user: None,
            pods_reach: None,
            grace_period: None,
            detachable: false,
        }
    }
}

impl Options {
    /// The same, with an audit log of everybody's requests.
    #[must_use]
    pub const fn audited(self) -> Self {
        Self {
            audit: true,
            ..self
        }
    }

    /// What becomes of the cluster's processes when their owner is gone.
    pub(crate) const fn lifetime(&self) -> Lifetime {
        if self.detachable {
            Lifetime::Detachable
        } else {
            Lifetime::Owner
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::full()
    }
}
