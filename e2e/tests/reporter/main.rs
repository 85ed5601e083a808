//! `nodegate-reporter` on a real API server, as a sidecar: with a pod's token and the shipped RBAC.

mod endpoints;
mod inputs;
mod outcomes;
mod process;
mod roles;
mod writes;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::NodeCondition;
use kube::Client;
use nodegate_tests::reporter::{CONDITION, token_on};
use nodegate_tests::{SOON, has_words};
use serde_json::Value;
use testkit::kubernetes::versions::is_since;
use testkit::nodegate::fixtures::{node, pod};
use testkit::nodegate::install::{config, example};
use testkit::nodegate::state::node_condition;
use testkit::nodegate::{Cluster, Options, Reporter, SharedCluster, eventually_eq};
use tokio::sync::OnceCell;

/// The condition's status and reason for each kind of result.
const OK: (&str, &str) = ("True", "EndpointOK");
const NOT_READY: (&str, &str) = ("False", "EndpointNotReady");
const NO_ANSWER: (&str, &str) = ("False", "EndpointConnectionError");
const BROKEN: (&str, &str) = ("False", "HealthCheckFailed");

static CLUSTER: SharedCluster = SharedCluster::new(Options::api_only().audited());
static INSTALLED: OnceCell<()> = OnceCell::const_new();

/// A node, a reporter's pod on it, and access to the API server.
struct World<'c> {
    cluster: &'c Cluster,
    client: Client,
    node: String,
    kubeconfig: PathBuf,
}

impl World<'static> {
    /// A world on the shared cluster.
    async fn new(node: &str) -> Result<Self> {
        let cluster = CLUSTER.get().await?;
        INSTALLED.get_or_try_init(|| install(cluster)).await?;
        Self::on(cluster, node).await
    }
}

impl<'c> World<'c> {
    /// A world on a cluster with everything installed.
    async fn on(cluster: &'c Cluster, name: &str) -> Result<Self> {
        let client = cluster.client().await?;
        node(name).create(&client).await?;
        Ok(Self {
            cluster,
            node: name.to_owned(),
            kubeconfig: token_on(cluster, &client, name).await?,
            client,
        })
    }

    /// Whether the API server lets a reporter act as its node.
    async fn can_impersonate(&self) -> Result<bool> {
        is_since(&self.client, 36, "constrained impersonation").await
    }

    /// The token of a pod on the node, whose account has this `ClusterRole`, in its own namespace.
    async fn token_in(&self, namespace: &str, account: &str, role: &str) -> Result<PathBuf> {
        let manifests = format!(
            "
apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {account}, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}
subjects: [{{kind: ServiceAccount, name: {account}, namespace: {namespace}}}]
"
        );
        self.cluster.apply(&manifests).await?;
        pod(&format!("{namespace}/reporter"))
            .service_account(account)
            .on(&self.node)
            .create(&self.client)
            .await?;
        self.cluster
            .kubeconfig_for_pod(namespace, account, "reporter")
            .await
    }

    /// Starts a reporter with frequent checks and these environment variables.
    fn report(&self, endpoint: &str, environment: &[(&str, &str)]) -> Result<Reporter> {
        self.report_as(&self.kubeconfig, endpoint, environment)
    }

    /// The same, with another account's token.
    fn report_as(
        &self,
        token: &Path,
        endpoint: &str,
        environment: &[(&str, &str)],
    ) -> Result<Reporter> {
        let mut variables = vec![
            ("NODE_NAME", self.node.as_str()),
            ("CONDITION_TYPE", CONDITION),
            ("CHECK_ENDPOINT", endpoint),
            ("CHECK_INTERVAL", "200ms"),
            ("CHECK_TIMEOUT", "2s"),
        ];
        variables.extend_from_slice(environment);
        Reporter::start(self.cluster, token, &variables)
    }

    /// The Node's condition, if it has one.
    async fn condition(&self) -> Result<Option<NodeCondition>> {
        node_condition(&self.client, &self.node, CONDITION).await
    }

    /// Waits until the condition has this status and reason, and returns it.
    async fn reports(&self, (status, reason): (&str, &str)) -> Result<NodeCondition> {
        let what = format!("{status}/{reason} is reported on {}", self.node);
        eventually_eq(&what, SOON, format!("{status}/{reason}"), async || {
            let condition = self.condition().await?.context("no condition")?;
            let seen = condition.reason.unwrap_or_default();
            Ok(format!("{}/{seen}", condition.status))
        })
        .await?;
        self.condition().await?.context("it is gone again")
    }

    /// The same, with a message that has these words; returns the message.
    async fn reports_that(&self, outcome: (&str, &str), words: &str) -> Result<String> {
        let message = self.reports(outcome).await?.message.unwrap_or_default();
        has_words(&message, words)?;
        Ok(message)
    }

    /// The requests of reporters for this Node: verb, resource and status code.
    fn requests(&self) -> Vec<(String, String, u64)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let log = self.cluster.audit_log();
        let events = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events
            .filter(|event| text(&event["userAgent"]).starts_with("nodegate-reporter/"))
            .filter(|event| event["objectRef"]["name"] == self.node.as_str())
            .map(|event| {
                let object = &event["objectRef"];
                let resource = [text(&object["resource"]), text(&object["subresource"])];
                let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
                (text(&event["verb"]), resource.join("/"), code)
            })
            .collect()
    }

    /// How often the condition has been written.
    fn writes(&self) -> usize {
        let requests = self.requests();
        // An API server that has just started may refuse what it allows a moment later.
        let is_write = |(verb, _, code): &&(String, String, u64)| verb == "patch" && *code < 300;
        requests.iter().filter(is_write).count()
    }
}

/// Installs the CRD, the RBAC, and the example, with the strictest validation.
async fn install(cluster: &Cluster) -> Result<()> {
    cluster.install().await?;
    for folder in [config("reporter"), example("cni-readiness")] {
        cluster.apply_strictly(&folder).await?;
    }
    Ok(())
}
