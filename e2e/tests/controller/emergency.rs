//! A rule has gated nodes that it should not: each row of the table in `docs/emergency.md`.

use std::time::Duration;

use anyhow::{Result, bail};
use kube::Client;
use nodegate_tests::gates::{eventually_gated, eventually_released, stays_held, stays_released};
use nodegate_tests::rules::{annotate_lease, eventually_says};
use serde_json::json;
use testkit::nodegate::changes::{delete_rule, patch_rule};
use testkit::nodegate::{Cluster, Controller, Options, fixtures};

const MOVES: [&str; 7] = [
    "untaint",
    "leave",
    "dry-run",
    "brake",
    "keep-the-rule",
    "delete",
    "delete-under-the-brake",
];
/// Nodes of each move. A rule may always gate three at once.
const NODES: [&str; 2] = ["a", "b"];

/// One move, with a rule that has gated the nodes that have its name as a label.
struct Try<'a> {
    cluster: &'a Cluster,
    client: &'a Client,
    name: &'a str,
    key: String,
}

#[tokio::test]
async fn each_emergency_measure_helps_against_a_rule_that_gated_the_fleet() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let _controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    let client = &cluster.client().await?;
    for name in MOVES {
        let key = format!("readiness.k8s.io/{name}");
        let it = Try {
            cluster: &cluster,
            client,
            name,
            key,
        };
        it.gates_the_fleet().await?;
        it.makes_its_move().await?;
    }
    Ok(())
}

impl Try<'_> {
    async fn gates_the_fleet(&self) -> Result<()> {
        let rule = fixtures::rule(self.name, &self.key).bootstrap_only();
        let rule = rule
            .selects("move", self.name)
            .waits_for("example.com/Misspelt");
        for node in NODES {
            self.joins(node).await?;
        }
        // The API server's times have whole seconds, and `Leave` is about nodes that are older than the rule.
        tokio::time::sleep(Duration::from_secs(1)).await;
        rule.create(self.client).await?;
        for node in NODES {
            eventually_gated(self.client, &self.node(node), &self.key).await?;
        }
        Ok(())
    }

    async fn makes_its_move(&self) -> Result<()> {
        match self.name {
            "untaint" => {
                self.untaint("a").await?;
                eventually_gated(self.client, &self.node("a"), &self.key).await
            }
            "leave" => {
                self.patch(json!({"nodegate": {"existingNodes": "Leave"}}))
                    .await?;
                stays_held(self.client, &self.node("a"), &self.key).await?;
                self.untaint("b").await?;
                stays_released(self.client, &self.node("b"), &self.key).await
            }
            "dry-run" => {
                self.patch(json!({"dryRun": true})).await?;
                stays_held(self.client, &self.node("a"), &self.key).await
            }
            "brake" => {
                self.brake(true).await?;
                stays_held(self.client, &self.node("a"), &self.key).await?;
                self.untaint("b").await?;
                stays_released(self.client, &self.node("b"), &self.key).await?;
                self.brake(false).await?;
                eventually_gated(self.client, &self.node("b"), &self.key).await
            }
            "keep-the-rule" => {
                self.patch(json!({"nodegate": {"suspend": true}})).await?;
                eventually_says(self.client, self.name, "Suspended", "True").await?;
                for node in NODES {
                    self.untaint(node).await?;
                }
                let resumed = json!({"suspend": false, "existingNodes": "Leave"});
                self.patch(json!({"nodegate": resumed})).await?;
                stays_released(self.client, &self.node("a"), &self.key).await?;
                self.joins("new").await?;
                eventually_gated(self.client, &self.node("new"), &self.key).await
            }
            "delete" => self.deleted().await,
            "delete-under-the-brake" => {
                self.brake(true).await?;
                self.deleted().await
            }
            other => bail!("no such move: {other}"),
        }
    }

    async fn deleted(&self) -> Result<()> {
        delete_rule(self.client, self.name).await?;
        for node in NODES {
            eventually_released(self.client, &self.node(node), &self.key).await?;
        }
        Ok(())
    }

    fn node(&self, node: &str) -> String {
        format!("{}-{node}", self.name)
    }

    async fn joins(&self, node: &str) -> Result<()> {
        let node = fixtures::node(&self.node(node)).label("move", self.name);
        node.create(self.client).await?;
        Ok(())
    }

    async fn untaint(&self, node: &str) -> Result<()> {
        let untaint = format!("taint node {} {}-", self.node(node), self.key);
        self.cluster.types(&untaint).await.map(drop)
    }

    async fn patch(&self, spec: serde_json::Value) -> Result<()> {
        patch_rule(self.client, self.name, &json!({ "spec": spec })).await
    }

    /// Suspends all rules, or resumes them.
    async fn brake(&self, on: bool) -> Result<()> {
        let to = if on { "=true" } else { "-" };
        annotate_lease(self.cluster, &format!("nodegate.dev/suspend-all{to}")).await?;
        if on {
            eventually_says(self.client, self.name, "Suspended", "True").await?;
        }
        Ok(())
    }
}
