//! Rules created under the Node Readiness Controller's definition, which accepts more, and changed under ours.

use anyhow::{Context, Result, bail, ensure};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use nodegate_tests::{SOON, fixture};
use serde_json::{Value, json};
use testkit::nodegate::install::config;
use testkit::nodegate::rule::rules;
use testkit::nodegate::{Cluster, Options, eventually};

use super::cases::{BOOTSTRAP, CONTINUOUS};
use super::validation::{create, message, spec};

/// Name, base and spec of a rule, and a change that is still refused, with its message.
#[rustfmt::skip]
const LEGACY: &[(&str, &str, &str, &str, &str)] = &[
    ("any-of", BOOTSTRAP, "{conditionPolicy: anyOf}", "{conditionPolicy: allOf}", "conditionPolicy is immutable"),
    ("default-status", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'True'}]}",
        "{conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'False'}]}", "conditions is immutable"),
    ("empty-selector", CONTINUOUS, "{nodeSelector: {matchLabels: null}}", "{nodeSelector: {matchExpressions: []}}", "nodeSelector must not be empty"),
    ("odd-value", CONTINUOUS, "{taint: {value: not yet}}", "{taint: {value: not now}}", "taint value is immutable"),
];

#[tokio::test]
async fn a_rule_made_under_upstreams_definition_can_be_changed_where_it_does_no_harm() -> Result<()>
{
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.apply_path(&fixture("upstream-crd.yaml")).await?;
    let rules = rules(&cluster.client().await?);
    for (name, base, legacy, _, _) in LEGACY {
        eventually(name, SOON, async || {
            Ok(create(&rules, name, spec(base, legacy)?).await.is_ok())
        })
        .await?;
    }
    cluster.apply_over(&config("crd")).await?;
    for (name, base, legacy, worse, why) in LEGACY {
        eventually("it is the strict definition again", SOON, async || {
            let again = create(&rules, &format!("{name}-again"), spec(base, legacy)?).await;
            if again.is_ok() {
                rules
                    .delete(&format!("{name}-again"), &DeleteParams::default())
                    .await?;
            }
            Ok(again.is_err())
        })
        .await?;
        for change in [
            json!({"dryRun": true}),
            json!({"nodegate": { "heartbeatTimeout": "10m" }}),
        ] {
            let changed = change_spec(&rules, name, change).await;
            changed.with_context(|| format!("{name} cannot be changed"))?;
        }
        let worse: Value = serde_saphyr::from_str(worse)?;
        match change_spec(&rules, name, worse).await {
            Ok(()) => bail!("{name} was made worse"),
            Err(error) => {
                let message = message(error)?;
                ensure!(message.contains(why), "{name}: {message}");
            }
        }
    }
    Ok(())
}

async fn change_spec(rules: &Api<DynamicObject>, name: &str, change: Value) -> kube::Result<()> {
    let patch = Patch::Merge(json!({ "spec": change }));
    rules.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}
