//! The components of a cluster.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::kubernetes::kwok;
use crate::kubernetes::process::Lifetime;

/// The components of a cluster beside etcd and the API server, and their settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each turns on one thing")]
pub struct Options {
    /// Whether and how the controller manager runs.
    pub controller_manager: ControllerManager,
    /// Whether pods get scheduled.
    pub scheduler: bool,
    /// Whether kwok simulates the kubelets of annotated nodes, and their heartbeat interval.
    pub kwok: Option<Duration>,
    /// Whether the API server restricts each kubelet to its own node.
    pub node_restriction: bool,
    /// Whether the API server writes an audit log, for [`Cluster::audit_log`](crate::kubernetes::Cluster::audit_log).
    pub audit: bool,
    /// Limits the log to this user's requests; logging everybody's slows the API server down.
    pub audited_user: Option<&'static str>,
    /// The address of the node on which pods really run, if any. They reach the API server there, at its Service's address as
    /// in any cluster, and get tokens of their service accounts. The port is 443, so the machine, or its namespaces, must run
    /// nothing else.
    pub pods_reach: Option<Ipv4Addr>,
    /// How long a node may be silent before it is marked not Ready, instead of Kubernetes' default of 50 s.
    pub grace_period: Option<Duration>,
    /// Whether [`Cluster::leave_running`](crate::kubernetes::Cluster::leave_running) will be called. Then the cluster may outlive its
    /// owner.
    pub detachable: bool,
    /// Whether the next test of the process that wants the same options reuses the dropped cluster, which is first restored
    /// to how it was. A cluster that nobody reuses ends with the process.
    pub reuse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerManager {
    /// Not at all.
    Off,
    /// Without node lifecycle and taint eviction: nodes keep their initial `not-ready` taint, and a node without heartbeats is
    /// left alone.
    WithoutNodeLifecycle,
    /// With every controller: a Ready node loses its `not-ready` taint, and one without heartbeats is tainted after 40 s.
    Complete,
}

impl Options {
    /// Only etcd and the API server, for tests that write everything themselves.
    pub const fn api_only() -> Self {
        Self {
            controller_manager: ControllerManager::Off,
            scheduler: false,
            kwok: None,
            node_restriction: false,
            audit: false,
            audited_user: None,
            pods_reach: None,
            grace_period: None,
            detachable: false,
            reuse: true,
        }
    }

    /// Everything except the node lifecycle controller; pods of `DaemonSet`s are scheduled and become Ready.
    pub const fn full() -> Self {
        Self {
            controller_manager: ControllerManager::WithoutNodeLifecycle,
            scheduler: true,
            kwok: Some(kwok::HEARTBEAT),
            ..Self::api_only()
        }
    }

    /// Everything, the node lifecycle controller too.
    pub const fn complete() -> Self {
        Self {
            controller_manager: ControllerManager::Complete,
            ..Self::full()
        }
    }

    pub const fn audited(self) -> Self {
        Self {
            audit: true,
            // The next test would see this one's requests in the log.
            reuse: false,
            ..self
        }
    }

    /// Whether the cluster's processes may outlive their owner.
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
