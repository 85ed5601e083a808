//! A cluster with one example, and the steps and checks of its tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client, ResourceExt};
use nodegate_tests::rules::{eventually_observed, eventually_says};
pub(crate) use nodegate_tests::{A_WHILE, SOON};
use serde::de::DeserializeOwned;
use serde_json::json;
use testkit::nodegate::changes::{patch_node, patch_node_status, patch_rule, set_pod_ready};
use testkit::nodegate::fixtures::{self, NodeBuilder};
use testkit::nodegate::install::repository;
use testkit::nodegate::{
    Cluster, Controller, NodeHistory, Options, eventually, eventually_eq, never, state,
};

/// The folder of all examples.
pub(crate) fn examples() -> PathBuf {
    repository().join("examples")
}

/// A YAML file of an example, such as `gpu/rule.yaml`.
pub(crate) fn read<T: DeserializeOwned>(file: &str) -> Result<T> {
    let text = fs::read_to_string(examples().join(file)).with_context(|| file.to_owned())?;
    serde_saphyr::from_str(&text).with_context(|| file.to_owned())
}

/// A cluster with an example in force.
pub(crate) struct Scene {
    /// It ends before its cluster.
    _controller: Controller,
    pub client: Client,
    pub cluster: Cluster,
}

impl Scene {
    /// A cluster with a controller, optionally with an example's configuration file.
    async fn set(configuration: Option<&str>) -> Result<Self> {
        let cluster = cluster().await?;
        let configuration =
            configuration.map(|file| format!("--config={}", examples().join(file).display()));
        let arguments: Vec<&str> = configuration.as_deref().into_iter().collect();
        Self::begin(cluster, &arguments).await
    }

    /// A cluster with Karpenter's definitions, and a controller that watches them.
    pub(crate) async fn with_karpenter() -> Result<Self> {
        let cluster = cluster().await?;
        cluster.install_karpenter().await?;
        Self::begin(cluster, &["--enable-karpenter"]).await
    }

    async fn begin(cluster: Cluster, arguments: &[&str]) -> Result<Self> {
        let client = cluster.client().await?;
        let controller = Controller::start(&cluster, arguments).await?;
        Ok(Self {
            cluster,
            client,
            _controller: controller,
        })
    }

    /// A cluster with an example applied and its rules in force.
    pub(crate) async fn of(example: &str, configuration: Option<&str>) -> Result<Self> {
        let scene = Self::set(configuration).await?;
        scene.apply(example).await?;
        Ok(scene)
    }

    /// Applies a folder or a file of an example and waits until all rules are in force.
    pub(crate) async fn apply(&self, example: &str) -> Result<()> {
        apply(&self.cluster, &examples().join(example)).await?;
        let rules = fixtures::rules(&self.client);
        eventually("the rules are in force", SOON, async || {
            let rules = rules.list(&kube::api::ListParams::default()).await?;
            let in_force = |rule: &kube::api::DynamicObject| {
                rule.data["status"]["observedGeneration"].is_number()
            };
            Ok(!rules.items.is_empty() && rules.items.iter().all(in_force))
        })
        .await
    }

    /// Ends a rule's dry run, and waits until the controller has observed that.
    pub(crate) async fn in_earnest(&self, rule: &str) -> Result<()> {
        patch_rule(&self.client, rule, &json!({"spec": {"dryRun": false}})).await?;
        eventually_observed(&self.client, rule).await.map(drop)
    }

    /// Lets a node join. The test acts as its kubelet.
    pub(crate) async fn join(&self, node: NodeBuilder) -> Result<Node> {
        let node = node.allocatable("pods", "100").allocatable("cpu", "8");
        node.create(&self.client).await
    }

    /// Removes the node's initial taint, as happens once its kubelet reports Ready.
    pub(crate) async fn turn_ready(&self, node: &str) -> Result<()> {
        const NOT_READY: &str = "node.kubernetes.io/not-ready";
        eventually("the not-ready taint goes", SOON, async || {
            let now = state::node(&self.client, node).await?;
            let mut taints = state::taints(&self.client, node).await?;
            taints.retain(|taint| taint.key != NOT_READY);
            let version = now.resource_version();
            let patch =
                json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
            patch_node(&self.client, node, &patch).await?;
            Ok(!state::has_taint(&self.client, node, NOT_READY).await?)
        })
        .await
    }

    /// The kubelet's report once the device plugin has registered, of eight GPUs of which so many are allocatable.
    pub(crate) async fn offer_gpus(&self, node: &str, gpus: &str) -> Result<()> {
        let offer = json!({"status": {
            "capacity": {"nvidia.com/gpu": "8"},
            "allocatable": {"nvidia.com/gpu": gpus},
        }});
        patch_node_status(&self.client, node, &offer).await
    }

    /// The message of a rule's condition, once it is `True`.
    pub(crate) async fn says(&self, rule: &str, condition: &str) -> Result<String> {
        let said = eventually_says(&self.client, rule, condition, "True").await?;
        Ok(said["message"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits for the pod of a `DaemonSet` on a node.
    pub(crate) async fn pod(&self, daemon_set: &str, node: &str) -> Result<Pod> {
        let what = format!("DaemonSet {daemon_set} has a pod on {node}");
        eventually(&what, SOON, async || {
            let pods = state::pods_on(&self.client, node).await?;
            Ok(pods.into_iter().find(|pod| {
                let owners = pod.owner_references();
                pod.metadata.deletion_timestamp.is_none()
                    && owners.iter().any(|owner| owner.name == daemon_set)
            }))
        })
        .await
    }

    /// Sets the pod of a `DaemonSet` on a node Ready or not.
    pub(crate) async fn set_ready(&self, daemon_set: &str, node: &str, ready: bool) -> Result<()> {
        let pod = self.pod(daemon_set, node).await?;
        let namespace = pod.namespace().context("a pod without a namespace")?;
        set_pod_ready(&self.client, &namespace, &pod.name_any(), ready).await
    }

    /// Waits until a node has a taint, or no longer has it.
    pub(crate) async fn has_taint(&self, node: &str, key: &str, expected: bool) -> Result<()> {
        let what = format!("{node} has taint {key}");
        eventually_eq(&what, SOON, expected, async || {
            state::has_taint(&self.client, node, key).await
        })
        .await
    }

    /// Checks for a moment that a node keeps a taint, or stays without it.
    pub(crate) async fn keeps_taint(&self, node: &str, key: &str, expected: bool) -> Result<()> {
        let what = format!("taint {key} comes to or goes from {node}");
        never(&what, A_WHILE, async || {
            Ok(state::has_taint(&self.client, node, key).await? != expected)
        })
        .await
    }

    /// Checks that no node was gated since the history began, up to the current state of this one.
    pub(crate) async fn gated_none(
        &self,
        history: &NodeHistory,
        node: &str,
        key: &str,
    ) -> Result<()> {
        for (name, states) in history.up_to(&self.client, node).await? {
            let held = states.iter().any(|it| state::count_taints(it, key) > 0);
            ensure!(!held, "{name} was gated");
        }
        Ok(())
    }

    /// Waits until a condition of a node is `False`, with a message that contains these words.
    pub(crate) async fn is_unmet(&self, node: &str, condition: &str, words: &str) -> Result<()> {
        let what = format!("{condition} of {node} is False: {words}");
        eventually(&what, SOON, async || {
            let seen = state::node_condition(&self.client, node, condition).await?;
            let (status, message) = seen.map(|it| (it.status, it.message)).unwrap_or_default();
            let message = message.unwrap_or_default();
            let is_unmet = status == "False" && message.contains(words);
            ensure!(is_unmet, "it is {status:?}: {message:?}");
            Ok(true)
        })
        .await
    }

    /// Waits until the node's events include these reasons, in any order.
    pub(crate) async fn has_events(&self, node: &str, reasons: &[&str]) -> Result<()> {
        let what = format!("events {reasons:?} on {node}");
        eventually(&what, SOON, async || {
            let told = state::reasons_about(&self.client, "Node", node).await?;
            Ok(reasons
                .iter()
                .all(|reason| told.iter().any(|it| it == reason)))
        })
        .await
    }

    /// The node of the pod `workload` in `default`, once it is scheduled.
    pub(crate) async fn place(&self) -> Result<Option<String>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let spec = pods.get("workload").await?.spec;
        Ok(spec.and_then(|spec| spec.node_name))
    }

    /// Deletes a rule and waits until it is gone.
    pub(crate) async fn delete_rule(&self, rule: &str) -> Result<()> {
        let delete = format!("delete nrr {rule} --timeout=60s");
        self.cluster.types(&delete).await.map(drop)
    }
}

/// A cluster in which the tests act as the kubelets.
async fn cluster() -> Result<Cluster> {
    let cluster = Cluster::start(Options {
        kwok: None,
        ..Options::full()
    })
    .await?;
    cluster.install().await?;
    Ok(cluster)
}

/// Applies a kustomization, a folder or a file, and refuses unknown fields.
pub(crate) async fn apply(cluster: &Cluster, path: &Path) -> Result<String> {
    let strictly = ["apply", "--validate=strict"];
    cluster.kubectl_on(&strictly, path).await
}
