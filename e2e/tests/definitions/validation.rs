//! The `CustomResourceDefinition` on a real API server: every case of the table, with no controller and no webhook.

use anyhow::{Context, Result, bail};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::Value;
use testkit::nodegate::rule::{resource, rules};
use testkit::nodegate::{Cluster, Options};

use super::cases::{CASES, Case};

#[tokio::test]
async fn the_api_server_takes_what_can_work_and_says_why_it_turns_down_the_rest() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_crd().await?;
    let rules = rules(&cluster.client().await?);
    let mut failures = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        if let Err(error) = run(&rules, &format!("case-{number}"), case).await {
            failures.push(format!("{}: {error:#}", case.name));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} cases fail:\n{}",
        failures.len(),
        CASES.len(),
        failures.join("\n")
    );
    Ok(())
}

async fn run(rules: &Api<DynamicObject>, name: &str, case: &Case) -> Result<()> {
    let before = case
        .before
        .map(|patch| spec(case.base, patch))
        .transpose()?;
    let after = spec(case.base, case.after)?;
    let answer = match before {
        None => create(rules, name, after).await,
        Some(before) => {
            let created = create(rules, name, before).await;
            let mut rule = created.context("the rule that is to be changed")?;
            rule.data["spec"] = after;
            rules.replace(name, &PostParams::default(), &rule).await
        }
    };
    if rules.get_opt(name).await?.is_some() {
        rules.delete(name, &DeleteParams::default()).await?;
    }
    match (case.expect, answer) {
        (Ok(()), Ok(_)) => Ok(()),
        (Ok(()), Err(error)) => bail!("turned down: {}", message(error)?),
        (Err(expected), Ok(_)) => bail!("accepted, though it should fail with {expected:?}"),
        (Err(expected), Err(error)) => {
            let message = message(error)?;
            if message.contains(expected) {
                Ok(())
            } else {
                bail!("expected {expected:?}, but the message is {message:?}")
            }
        }
    }
}

pub(crate) async fn create(
    rules: &Api<DynamicObject>,
    name: &str,
    spec: Value,
) -> kube::Result<DynamicObject> {
    let mut rule = DynamicObject::new(name, &resource());
    rule.data = serde_json::json!({ "spec": spec });
    rules.create(&PostParams::default(), &rule).await
}

/// The base with the patch applied, both in YAML.
pub(crate) fn spec(base: &str, patch: &str) -> Result<Value> {
    let mut spec = serde_saphyr::from_str(base).context("the base is not YAML")?;
    let patch = serde_saphyr::from_str(patch).context("the patch is not YAML")?;
    json_patch::merge(&mut spec, &patch);
    Ok(spec)
}

/// The API server's message; any other error fails the test.
pub(crate) fn message(error: kube::Error) -> Result<String> {
    match error {
        kube::Error::Api(status) => Ok(status.message.clone()),
        error => Err(error).context("the API server gives no answer"),
    }
}
