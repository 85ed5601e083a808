//! Nodegate's own pods, as installed: which one leads, which are Ready, and whether the webhook answers.

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::json;
use testkit::nodegate::Cluster;
use testkit::nodegate::fixtures::rule;
use testkit::nodegate::state::{has_taint, is_ready, pods_on};
use testkit::realnode::inside::has_users;
use testkit::realnode::node::NAME;
use testkit::realnode::{RealNode, Times};

use crate::scene::TAINT;

/// The Deployment, in the namespace of each installation.
const MANAGER: &str = "deployment/nrr-controller-manager";

/// An installation in a namespace.
pub(crate) struct Installation {
    client: Client,
    namespace: &'static str,
}

impl Installation {
    /// Takes an existing installation. Where root is the only user, its pods run as root, which the namespace must allow.
    pub(crate) async fn found(cluster: &Cluster, namespace: &'static str) -> Result<Self> {
        if !has_users() {
            let root = json!({"runAsNonRoot": false, "runAsUser": 0, "runAsGroup": 0});
            let pod = json!({"spec": {"template": {"spec": {"securityContext": root}}}});
            let patch = ["patch", MANAGER, "-n", namespace, "-p", &pod.to_string()];
            cluster.kubectl(&patch).await?;
            let level = "pod-security.kubernetes.io/enforce=privileged";
            let label = format!("label --overwrite namespace {namespace} {level}");
            cluster.types(&label).await?;
        }
        Ok(Self {
            client: cluster.client().await?,
            namespace,
        })
    }

    /// The pod of the leader.
    async fn leader(&self) -> Result<Option<String>> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), self.namespace);
        let leases = leases.list(&ListParams::default()).await?;
        let mut specs = leases.items.into_iter().filter_map(|lease| lease.spec);
        let held = specs.find_map(|spec| spec.holder_identity);
        Ok(held.filter(|held| !held.is_empty()))
    }

    pub(crate) async fn leads(&self, times: &Times) -> Result<String> {
        times
            .until("a pod of the controller leads", async || {
                self.leader().await
            })
            .await
    }

    pub(crate) async fn both_are_ready(&self, times: &Times) -> Result<()> {
        times
            .until("both pods are Ready", async || {
                let pods = pods_on(&self.client, NAME).await?;
                let own = |namespace: &Option<String>| namespace.as_deref() == Some(self.namespace);
                let own = pods.iter().filter(|pod| own(&pod.metadata.namespace));
                Ok(own.filter(|pod| is_ready(pod)).count() == 2)
            })
            .await
    }

    /// Waits until the node is released.
    pub(crate) async fn releases_the_node(&self, times: &Times) -> Result<()> {
        times
            .until("the node is released", async || {
                Ok(!has_taint(&self.client, NAME, TAINT).await?)
            })
            .await
    }

    /// Waits until the webhook refuses a rule that conflicts with the one named `critical`.
    pub(crate) async fn refuses_conflicts(&self, times: &Times) -> Result<()> {
        let conflicting = rule("another", TAINT).waits_for("example.com/Ready");
        times
            .until("the webhook answers through its Service", async || {
                let answer = conflicting.clone().try_out(&self.client).await;
                Ok(answer.is_err_and(|error| {
                    format!("{error:#}").contains("conflicts with existing rule 'critical'")
                }))
            })
            .await
    }

    /// Kills the leader's process, and waits until the other one leads and both run.
    pub(crate) async fn outlives_its_leader(&self, node: &RealNode) -> Result<()> {
        let first = self.leader().await?.context("no instance leads")?;
        let times = Times::since("the leader's process is killed");
        node.kill_by_variable("POD_NAME", pod_of(&first))?;
        times
            .until("another one leads", async || {
                Ok(self.leader().await?.is_some_and(|now| now != first))
            })
            .await?;
        self.both_are_ready(&times).await
    }
}

/// The name of the pod in the Lease's holder identity.
fn pod_of(holder: &str) -> &str {
    holder.split_once('_').map_or(holder, |(pod, _)| pod)
}
