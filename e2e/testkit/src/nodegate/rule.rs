//! Rules, as a user writes them. Their schema belongs to the product, so they are JSON here.

use anyhow::{Context, Result};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Builds a rule: by default `continuous`, `NoSchedule`, without conditions.
#[derive(Debug, Clone)]
pub struct RuleBuilder {
    rule: Value,
}

impl RuleBuilder {
    fn new(name: &str, taint_key: &str) -> Self {
        Self {
            rule: json!({
                "apiVersion": "readiness.node.x-k8s.io/v1alpha1",
                "kind": "NodeReadinessRule",
                "metadata": {"name": name},
                "spec": {
                    "conditions": [],
                    "enforcementMode": "continuous",
                    "taint": {"key": taint_key, "effect": "NoSchedule"},
                    "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
                },
            }),
        }
    }

    /// Waits for a condition of the node to be `True`.
    pub fn waits_for(mut self, condition_type: &str) -> Self {
        if let Some(conditions) = self.rule["spec"]["conditions"].as_array_mut() {
            conditions.push(json!({"type": condition_type, "requiredStatus": "True"}));
        }
        self
    }

    /// Makes it ignore a node after its first success there.
    pub fn bootstrap_only(self) -> Self {
        self.spec("enforcementMode", json!("bootstrap-only"))
    }

    /// Makes it only count what it would do.
    pub fn dry_run(self) -> Self {
        self.spec("dryRun", json!(true))
    }

    /// Selects nodes with this label, instead of all Linux nodes.
    pub fn selects(self, label: &str, value: &str) -> Self {
        self.spec("nodeSelector", json!({"matchLabels": {label: value}}))
    }

    /// Sets a field of the spec; the value need not be valid.
    pub fn spec(mut self, field: &str, value: Value) -> Self {
        self.rule["spec"][field] = value;
        self
    }

    /// Sets a field under `spec.nodegate`; the value need not be valid.
    pub fn nodegate(mut self, field: &str, value: Value) -> Self {
        self.rule["spec"]["nodegate"][field] = value;
        self
    }

    /// Sets a finalizer from the start.
    pub fn finalizer(mut self, finalizer: &str) -> Self {
        self.rule["metadata"]["finalizers"] = json!([finalizer]);
        self
    }

    pub fn build(self) -> Value {
        self.rule
    }

    /// Sends the rule as a server-side dry run: everything happens except storing it.
    pub async fn try_out(self, client: &Client) -> Result<()> {
        let only_try = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        self.send(client, &only_try).await?;
        Ok(())
    }

    pub async fn create(self, client: &Client) -> Result<DynamicObject> {
        self.send(client, &PostParams::default()).await
    }

    async fn send(self, client: &Client, parameters: &PostParams) -> Result<DynamicObject> {
        let rule: DynamicObject = serde_json::from_value(self.rule).context("forming a rule")?;
        let name = rule.metadata.name.clone();
        rules(client)
            .create(parameters, &rule)
            .await
            .with_context(|| format!("creating rule {name:?}"))
    }
}

/// A rule, with the key of its taint.
pub fn rule(name: &str, taint_key: &str) -> RuleBuilder {
    RuleBuilder::new(name, taint_key)
}

pub fn rules(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource())
}

pub fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk("readiness.node.x-k8s.io", "v1alpha1", "NodeReadinessRule");
    ApiResource::from_gvk_with_plural(&kind, "nodereadinessrules")
}
