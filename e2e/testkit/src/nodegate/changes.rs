//! Changes to a running cluster and its rules.

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::Value;

use crate::nodegate::rule::rules;

pub use crate::kubernetes::changes::*;

/// Deletes a rule, which goes once its finalizers are gone.
pub async fn delete_rule(client: &Client, rule: &str) -> Result<()> {
    rules(client)
        .delete(rule, &DeleteParams::default())
        .await
        .with_context(|| format!("deleting rule {rule}"))?;
    Ok(())
}

/// Patches a rule with a JSON merge patch.
pub async fn patch_rule(client: &Client, rule: &str, patch: &Value) -> Result<()> {
    rules(client)
        .patch(rule, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .with_context(|| format!("patching rule {rule}"))?;
    Ok(())
}
