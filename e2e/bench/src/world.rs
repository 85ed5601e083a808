//! The objects of the cluster: nodes of realistic size, each with a pod of three critical `DaemonSet`s. The client simulates
//! kubelets, reporters and the `DaemonSet` controller, so that nothing else limits the speed.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ContainerImage, Node, NodeAddress, NodeSystemInfo, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};

use crate::load::{self, AT_ONCE};
use testkit::nodegate::fixtures::{RuleBuilder, daemon_set, node, pod, rule};

/// The condition that the agent's rule waits for.
pub(crate) const AGENT_READY: &str = "bench.nodegate.dev/AgentReady";

/// A label that all nodes and pods of the benchmark have.
pub(crate) const LABEL: &str = "bench.nodegate.dev/part";

/// The namespace of the critical pods.
pub(crate) const NAMESPACE: &str = "kube-system";

/// The annotation of a node that the client itself has tainted, as large as the controller's.
pub(crate) const LIMIT_ANNOTATION: &str =
    "bench.nodegate.dev/taint-added-by-3a4a9b5e-8d54-4f0c-9f0e-2f1d7a9c6b10";

/// The purpose of a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Measures the limit: the client itself adds and removes it.
    Limit,
    /// Of the rule that waits for [`AGENT_READY`].
    Agent,
    /// The startup taint that nodes join with.
    Startup,
    /// Of the rule that waits for critical components.
    Critical,
}

impl Gate {
    pub(crate) const ALL: [Self; 4] = [Self::Limit, Self::Agent, Self::Startup, Self::Critical];

    /// The key of its taint. The effect is always `NoSchedule`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Limit => "bench.nodegate.dev/limit",
            Self::Agent => "readiness.k8s.io/bench-agent",
            Self::Startup => "node.gardener.cloud/critical-components-not-ready",
            Self::Critical => "readiness.k8s.io/bench-critical",
        }
    }

    pub(crate) fn rule_name(self) -> &'static str {
        match self {
            Self::Limit => "bench-limit",
            Self::Agent => "bench-agent",
            Self::Startup => "bench-startup",
            Self::Critical => "bench-critical",
        }
    }

    pub(crate) fn rule(self) -> RuleBuilder {
        const CRITICAL: &str = "node.gardener.cloud/CriticalComponentsReady";
        let rule = rule(self.rule_name(), self.key());
        match self {
            Self::Limit | Self::Agent => rule.waits_for(AGENT_READY),
            Self::Startup => rule
                .waits_for(CRITICAL)
                .bootstrap_only()
                .nodegate("taintPolicy", "remove-only".into()),
            // Each deleted pod counts, however soon the next one is Ready.
            Self::Critical => rule
                .waits_for(CRITICAL)
                .nodegate("gracePeriod", "1ms".into()),
        }
    }
}

/// A node that the client has created.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub name: String,
    pub uid: String,
}

/// The objects that the client has created.
#[derive(Debug)]
pub(crate) struct World {
    pub members: Vec<Member>,
    daemon_sets: Vec<DaemonSet>,
}

impl World {
    /// Creates the `DaemonSet`s, this many nodes whose agent is not ready, and a Ready pod of each `DaemonSet` on each node.
    pub(crate) async fn create(client: &Client, nodes: usize) -> Result<Self> {
        let mut daemon_sets = Vec::new();
        for name in ["bench-cni", "bench-csi", "bench-log"] {
            let builder = daemon_set(&format!("{NAMESPACE}/{name}"));
            let builder = builder.critical().tolerate_everything();
            daemon_sets.push(builder.create(client).await?);
        }
        let names = (0..nodes).map(|number| format!("bench-{number:05}"));
        let members = load::each(AT_ONCE, names, async |name| {
            register(client, &name, None).await
        })
        .await?;
        let world = Self {
            members,
            daemon_sets,
        };
        load::each(AT_ONCE, &world.members, async |member| {
            for name in world.create_pods(client, &member.name).await? {
                load::set_pod_ready(client, &name).await?;
            }
            Ok(())
        })
        .await?;
        Ok(world)
    }

    /// Creates a pod of each `DaemonSet` on a node, not Ready, and returns their names.
    pub(crate) async fn create_pods(&self, client: &Client, node: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for index in 0..self.daemon_sets.len() {
            let name = self.pod_name(index, node, 1);
            self.create_pod(client, index, node, &name).await?;
            names.push(name);
        }
        Ok(names)
    }

    /// The name of the pod of the `DaemonSet` with this index on a node, in this generation of the rollout.
    pub(crate) fn pod_name(&self, daemon_set: usize, node: &str, generation: u32) -> String {
        let owner = self.daemon_sets[daemon_set].name_any();
        format!("{owner}-{node}-{generation}")
    }

    /// Creates one pod of the `DaemonSet` with this index, not Ready.
    pub(crate) async fn create_pod(
        &self,
        client: &Client,
        daemon_set: usize,
        node: &str,
        name: &str,
    ) -> Result<()> {
        let owner = &self.daemon_sets[daemon_set];
        let builder = pod(&format!("{NAMESPACE}/{name}")).critical();
        let builder = builder.label("app", &owner.name_any()).label(LABEL, "pod");
        let mut pod = builder.on(node).tolerate_everything().build();
        pod.metadata.owner_references = Some(vec![OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "DaemonSet".to_owned(),
            name: owner.name_any(),
            uid: owner.uid().context("a DaemonSet without a UID")?,
            controller: Some(true),
            ..OwnerReference::default()
        }]);
        Api::<Pod>::namespaced(client.clone(), NAMESPACE)
            .create(&PostParams::default(), &pod)
            .await
            .with_context(|| format!("creating pod {name}"))?;
        Ok(())
    }

    /// The name of the `DaemonSet` with this index.
    pub(crate) fn daemon_set_name(&self, index: usize) -> String {
        self.daemon_sets[index].name_any()
    }
}

/// Registers a node whose agent is not ready, with an optional startup taint.
pub(crate) async fn register(client: &Client, name: &str, startup: Option<Gate>) -> Result<Member> {
    let mut builder = node(name)
        .label(LABEL, "node")
        .label("topology.kubernetes.io/zone", "zone-a")
        .annotation(
            "volumes.kubernetes.io/controller-managed-attach-detach",
            "true",
        );
    for (kind, status) in [
        ("MemoryPressure", "False"),
        ("DiskPressure", "False"),
        ("PIDPressure", "False"),
        ("Ready", "True"),
        (AGENT_READY, "False"),
    ] {
        builder = builder.condition(kind, status);
    }
    for (resource, amount) in [("cpu", "8"), ("memory", "32Gi"), ("pods", "110")] {
        builder = builder.allocatable(resource, amount);
    }
    if let Some(gate) = startup {
        builder = builder.taint(gate.key(), "NoSchedule");
    }
    let mut node = builder.build();
    fill_in(&mut node, name);
    let node = Api::<Node>::all(client.clone())
        .create(&PostParams::default(), &node)
        .await
        .with_context(|| format!("creating node {name}"))?;
    Ok(Member {
        name: name.to_owned(),
        uid: node.uid().context("a node without a UID")?,
    })
}

/// Fields that a kubelet reports and nobody here reads. They give the node a realistic size.
fn fill_in(node: &mut Node, name: &str) {
    let status = node.status.get_or_insert_default();
    status.node_info = Some(NodeSystemInfo {
        architecture: "amd64".to_owned(),
        boot_id: "0c1b5d9e-7c0e-4b0a-8f0e-9a1f5c7d2e31".to_owned(),
        container_runtime_version: "containerd://2.1.4".to_owned(),
        kernel_version: "6.12.41-cloud-amd64".to_owned(),
        kubelet_version: "v1.36.0".to_owned(),
        operating_system: "linux".to_owned(),
        os_image: "Linux".to_owned(),
        ..NodeSystemInfo::default()
    });
    status.addresses = Some(vec![NodeAddress {
        address: name.to_owned(),
        type_: "Hostname".to_owned(),
    }]);
    let image = |number: i64| ContainerImage {
        names: Some(vec![
            format!("registry.example.com/platform/component-{number}@sha256:{number:064x}"),
            format!("registry.example.com/platform/component-{number}:v1.{number}.0"),
        ]),
        size_bytes: Some(50_000_000 + number),
    };
    status.images = Some((0..10).map(image).collect());
}
