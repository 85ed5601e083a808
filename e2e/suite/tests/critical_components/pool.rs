//! A test's own node pool: nodes with their own label, and critical components that match them alone.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client, ResourceExt};
use nodegate_testbed::changes::{patch_node, set_pod_ready};
use nodegate_testbed::fixtures::{self, DaemonSetBuilder, NodeBuilder, PodBuilder, RuleBuilder};
use nodegate_testbed::sights::{has_taint, node_condition, pods_on, rule_status, taints};
use nodegate_testbed::{Cluster, eventually, eventually_eq, kwok, never};
use serde_json::json;

use crate::{A_WHILE, COMPONENTS_READY, GATE, NO_SCHEDULE, NOT_READY, SOON};

/// The label of pools.
pub(crate) const POOL: &str = "pool";

/// The namespace of the critical components.
pub(crate) const NAMESPACE: &str = "kube-system";

/// A node pool. Its first node and its own rule's taint share its name.
pub(crate) struct Pool {
    pub cluster: &'static Cluster,
    pub client: Client,
    pub name: &'static str,
}

impl Pool {
    /// A pool in the shared cluster, under Gardener's rule.
    pub(crate) async fn under_gardeners_rule(name: &'static str) -> Result<Self> {
        Self::on(crate::gardener().await?, name).await
    }

    /// A pool in this cluster.
    pub(crate) async fn on(cluster: &'static Cluster, name: &'static str) -> Result<Self> {
        let client = cluster.client().await?;
        Ok(Self {
            cluster,
            client,
            name,
        })
    }

    /// The pool's node as it joins a Gardener cluster, with kwok as its kubelet. Without the node lifecycle controller it keeps
    /// the `not-ready` taint until [`Pool::lift_not_ready`].
    pub(crate) fn node(&self) -> NodeBuilder {
        self.unattended_node().managed_by_kwok()
    }

    /// The pool's node without a kubelet: the test controls its pods.
    pub(crate) fn unattended_node(&self) -> NodeBuilder {
        self.further_node(self.name)
            .allocatable("pods", "100")
            .allocatable("cpu", "8")
    }

    /// Another node of the pool, without a kubelet.
    pub(crate) fn further_node(&self, name: &str) -> NodeBuilder {
        fixtures::node(name)
            .label(POOL, self.name)
            .taint(GATE, NO_SCHEDULE)
    }

    /// Lets a node join after a moment. The controller watches each kind separately, so objects created in the same instant
    /// might reach it after the node.
    pub(crate) async fn join(&self, node: NodeBuilder) -> Result<Node> {
        tokio::time::sleep(A_WHILE).await;
        node.create(&self.client).await
    }

    /// A critical `DaemonSet` for this pool without tolerations.
    pub(crate) fn intolerant_daemon_set(&self, name: &str) -> DaemonSetBuilder {
        fixtures::daemon_set(&format!("{NAMESPACE}/{}", self.daemon_set_name(name)))
            .critical()
            .node_selector(POOL, self.name)
    }

    /// A critical `DaemonSet` for this pool that tolerates everything, as network plugins do.
    pub(crate) fn daemon_set(&self, name: &str) -> DaemonSetBuilder {
        self.intolerant_daemon_set(name).tolerate_everything()
    }

    pub(crate) fn daemon_set_name(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// A critical pod without an owner on the pool's node.
    pub(crate) fn pod(&self, name: &str) -> PodBuilder {
        fixtures::pod(&format!("{NAMESPACE}/{}-{name}", self.name))
            .critical()
            .on(self.name)
            .tolerate_everything()
    }

    /// Sets one of the pool's ownerless pods Ready or not.
    pub(crate) async fn set_pod_ready(&self, name: &str, ready: bool) -> Result<()> {
        let name = format!("{}-{name}", self.name);
        self.set_ready_in(NAMESPACE, &name, ready).await
    }

    /// Sets a pod on the pool's node Ready or not. First waits for kwok to start the pod: it would overwrite a change that it
    /// has not observed.
    pub(crate) async fn set_ready_in(&self, namespace: &str, pod: &str, ready: bool) -> Result<()> {
        let node = nodegate_testbed::sights::node(&self.client, self.name).await?;
        if node.annotations().contains_key(kwok::MANAGED.0) {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
            eventually("kwok starts the pod", SOON, async || {
                let status = pods.get(pod).await?.status.unwrap_or_default();
                Ok(status.phase.as_deref() == Some("Running"))
            })
            .await?;
        }
        set_pod_ready(&self.client, namespace, pod, ready).await
    }

    /// The pods of one of the pool's `DaemonSet`s on its node, without terminating ones.
    pub(crate) async fn pods_of(&self, daemon_set: &str) -> Result<Vec<Pod>> {
        let name = self.daemon_set_name(daemon_set);
        let mut pods = pods_on(&self.client, self.name).await?;
        pods.retain(|pod| {
            pod.metadata.deletion_timestamp.is_none()
                && pod
                    .owner_references()
                    .iter()
                    .any(|owner| owner.name == name)
        });
        Ok(pods)
    }

    /// Waits for the pod of one of the pool's `DaemonSet`s on its node, and returns its name.
    pub(crate) async fn pod_of(&self, daemon_set: &str) -> Result<String> {
        let pod = eventually("the DaemonSet has a pod on the node", SOON, async || {
            Ok(self.pods_of(daemon_set).await?.pop())
        })
        .await?;
        Ok(pod.name_any())
    }

    /// Waits for the pod of one of the pool's `DaemonSet`s, and sets it Ready or not.
    pub(crate) async fn set_ready(&self, daemon_set: &str, ready: bool) -> Result<()> {
        let pod = self.pod_of(daemon_set).await?;
        self.set_ready_in(NAMESPACE, &pod, ready).await
    }

    /// Removes the node's initial taint, as the node lifecycle controller does when the node is Ready.
    pub(crate) async fn lift_not_ready(&self) -> Result<()> {
        eventually("the not-ready taint goes", SOON, async || {
            let mut taints = taints(&self.client, self.name).await?;
            taints.retain(|taint| taint.key != NOT_READY);
            let version = nodegate_testbed::sights::node(&self.client, self.name)
                .await?
                .resource_version();
            let patch =
                json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
            patch_node(&self.client, self.name, &patch).await?;
            Ok(!has_taint(&self.client, self.name, NOT_READY).await?)
        })
        .await
    }

    pub(crate) async fn is_gated(&self) -> Result<bool> {
        has_taint(&self.client, self.name, GATE).await
    }

    /// Waits until the node is open.
    pub(crate) async fn opens(&self) -> Result<()> {
        let what = format!("node {} opens", self.name);
        eventually(&what, SOON, async || Ok(!self.is_gated().await?)).await
    }

    /// Checks that the node is closed for this reason, and stays so.
    pub(crate) async fn is_held_because(&self, message: &str) -> Result<()> {
        self.says(COMPONENTS_READY, "False", message).await?;
        self.stays_closed().await
    }

    /// Checks that the node is closed because a pod of this `DaemonSet` is not Ready.
    pub(crate) async fn is_held_by_the_pod_of(&self, daemon_set: &str) -> Result<()> {
        let pod = self.pod_of(daemon_set).await?;
        self.is_held_because(&format!("pod {NAMESPACE}/{pod} is not Ready"))
            .await
    }

    /// Checks that the node is closed because this `DaemonSet` has no pod there.
    pub(crate) async fn is_held_for_want_of(&self, daemon_set: &str) -> Result<()> {
        let name = self.daemon_set_name(daemon_set);
        self.is_held_because(&format!(
            "DaemonSet {NAMESPACE}/{name} has no pod on this node"
        ))
        .await
    }

    /// Checks that the node stays closed for a moment.
    pub(crate) async fn stays_closed(&self) -> Result<()> {
        let what = format!("node {} opens", self.name);
        never(&what, A_WHILE, async || Ok(!self.is_gated().await?)).await
    }

    /// Waits until a condition of the node has this status and message.
    pub(crate) async fn says(&self, condition: &str, status: &str, message: &str) -> Result<()> {
        let expected = Some((status.to_owned(), message.to_owned()));
        let what = format!("what node {} says about {condition}", self.name);
        eventually_eq(&what, SOON, expected, async || {
            let condition = node_condition(&self.client, self.name, condition).await?;
            Ok(
                condition
                    .map(|condition| (condition.status, condition.message.unwrap_or_default())),
            )
        })
        .await
    }

    /// A rule for this pool alone, with its own taint ([`Pool::own_taint`]).
    pub(crate) fn rule(&self) -> RuleBuilder {
        fixtures::rule(self.name, &self.own_taint()).selects(POOL, self.name)
    }

    /// Creates a rule and waits until it is in force.
    pub(crate) async fn enforce(&self, rule: RuleBuilder) -> Result<()> {
        let name = rule.create(&self.client).await?.name_any();
        eventually("the rule is in force", SOON, async || {
            let status = rule_status(&self.client, &name).await?;
            Ok(status["observedGeneration"].is_number())
        })
        .await
    }

    /// The taint of the pool's own rule.
    pub(crate) fn own_taint(&self) -> String {
        format!("readiness.k8s.io/{}", self.name)
    }

    /// Whether the node has the taint of the pool's own rule.
    pub(crate) async fn has_own_taint(&self) -> Result<bool> {
        has_taint(&self.client, self.name, &self.own_taint()).await
    }

    /// Waits until the node has the taint of the pool's own rule, or no longer has it.
    pub(crate) async fn gets_own_taint(&self, expected: bool) -> Result<()> {
        let what = format!("node {} has its own rule's taint", self.name);
        eventually_eq(&what, SOON, expected, async || self.has_own_taint().await).await
    }
}
