//! The ways in which Karpenter's nodes get a rule's taint.

use anyhow::Result;
use clap::ValueEnum;
use kube::Client;
use kube::api::PostParams;
use nodegate_testbed::fixtures::{NodePoolBuilder, node, rule};
use nodegate_testbed::install::config;
use nodegate_testbed::{Cluster, eventually};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::burst::{COMPONENT, STARTUP};

/// The key of the rule's taint.
const KEY: &str = "readiness.k8s.io/agent";

/// A taint that Karpenter does not know.
const FOREIGN: &str = "example.com/agent-not-ready";

/// How nodes get their taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setup {
    /// Not at all: there is no rule.
    NoRule,
    /// The kubelet registers with a taint outside `readiness.k8s.io/` that the `NodePool` does not name.
    Unknown,
    /// The controller puts the rule's taint on, which the `NodePool` does not name.
    Undeclared,
    /// The API server puts it on as it creates the node; the `NodePool` does not name it.
    AtBirth,
    /// The `NodePool` names it under `startupTaints`.
    Declared,
    /// The `NodePool` names it, and the API server puts it on.
    Recommended,
}

impl Setup {
    /// All set-ups, in the order of the table.
    pub const ALL: [Self; 6] = [
        Self::NoRule,
        Self::Unknown,
        Self::Undeclared,
        Self::AtBirth,
        Self::Declared,
        Self::Recommended,
    ];

    /// Its name in the table.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::NoRule => "no rule: nodes are open at once",
            Self::Unknown => "a taint that Karpenter does not know, undeclared",
            Self::Undeclared => "`readiness.k8s.io/`, undeclared, put on by the controller",
            Self::AtBirth => "`readiness.k8s.io/`, undeclared, closed at birth",
            Self::Declared => "`readiness.k8s.io/`, declared as startup taint",
            Self::Recommended => "declared, and closed at birth: recommended",
        }
    }

    /// Its name in the plot.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoRule => "no rule",
            Self::Unknown => "unknown taint",
            Self::Undeclared => "undeclared",
            Self::AtBirth => "at birth",
            Self::Declared => "declared",
            Self::Recommended => "recommended",
        }
    }

    /// Adds the pool's declarations.
    pub fn pool(self, pool: NodePoolBuilder) -> NodePoolBuilder {
        match self {
            Self::Declared | Self::Recommended => pool.startup_taint(KEY),
            Self::NoRule | Self::Unknown | Self::Undeclared | Self::AtBirth => pool,
        }
    }

    /// Installs what closes the nodes, and waits until it works.
    ///
    /// # Errors
    ///
    /// When the API server refuses it, or nodes stay open.
    pub async fn install(self, cluster: &Cluster) -> Result<()> {
        let client = cluster.client().await?;
        let waits = rule("agent", if self == Self::Unknown { FOREIGN } else { KEY })
            .bootstrap_only()
            .waits_for(&format!("daemonset.nodegate.dev/{COMPONENT}"));
        match self {
            Self::NoRule => return Ok(()),
            Self::Unknown => {
                cluster.apply(&registers_with(FOREIGN)).await?;
                let waits = waits.spec("taintPolicy", json!("remove-only"));
                waits.create(&client).await?;
                return until_born_with(&client, FOREIGN).await;
            }
            Self::Undeclared | Self::Declared => {}
            Self::AtBirth | Self::Recommended => {
                let folder = config("birth").to_string_lossy().into_owned();
                cluster.kubectl(&["apply", "-k", &folder]).await?;
            }
        }
        waits.create(&client).await?;
        match self {
            Self::AtBirth | Self::Recommended => until_born_with(&client, KEY).await,
            _ => Ok(()),
        }
    }
}

/// An admission policy that adds the taint to every node, as a kubelet's `--register-with-taints` does.
fn registers_with(key: &str) -> String {
    let name = json!({"name": "registers-with-taint"});
    let api = "admissionregistration.k8s.io/v1";
    let taint = format!("Object.spec.taints{{key: '{key}', effect: 'NoSchedule'}}");
    let patch = format!(
        "[JSONPatch{{op: 'add', path: '/spec/taints', value: object.?spec.taints.orValue([]) + [{taint}]}}]"
    );
    let policy = json!({
        "apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": name,
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"],
            }]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        },
    });
    let binding = json!({
        "apiVersion": api, "kind": "MutatingAdmissionPolicyBinding", "metadata": name,
        "spec": {"policyName": name["name"]},
    });
    format!("{policy}\n---\n{binding}\n")
}

/// Waits until nodes are created with this taint.
async fn until_born_with(client: &Client, key: &str) -> Result<()> {
    let nodes = kube::Api::all(client.clone());
    let only_try = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    eventually("nodes come with the taint", STARTUP, async || {
        let tried = nodes.create(&only_try, &node("tried").build()).await?;
        let taints = tried.spec.and_then(|spec| spec.taints).unwrap_or_default();
        Ok(taints.iter().any(|taint| taint.key == key))
    })
    .await
}
