//! What is not under `nodegate` in a rule means the same to the Node Readiness Controller: its definition accepts every example
//! without that key, and so does ours.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nodegate_tests::{fixture, has_words, refused};
use serde_json::Value;
use testkit::nodegate::install::config;
use testkit::nodegate::{Cluster, Options, eventually};

use crate::scene::{SOON, apply};
use crate::whole::rules;

#[tokio::test]
async fn both_definitions_accept_every_example_without_what_is_ours() -> Result<()> {
    // No rule may add a taint under another prefix. Without its policy, a rule that only removes one is refused by both.
    let (shared, foreign): (Vec<_>, Vec<_>) = rules()?.into_iter().partition(|(_, rule)| {
        let key = rule["spec"]["taint"]["key"].as_str().unwrap_or_default();
        key.starts_with("readiness.k8s.io/")
    });
    ensure!(shared.len() > 15 && !foreign.is_empty());

    let cluster = Cluster::start(Options::api_only()).await?;
    let (theirs, ours) = (fixture("upstream-crd.yaml"), config("crd"));
    for definition in [&theirs, &ours] {
        cluster.apply_path(definition).await?;
        let file = cluster.folder().join("rules.yaml");
        let mut shared: Vec<Value> = shared.iter().map(|(_, rule)| upstream(rule)).collect();
        write(&file, &shared)?;
        eventually("the definition accepts the rules", SOON, async || {
            Ok(create(&cluster, &file).await.is_ok())
        })
        .await
        .with_context(|| definition.display().to_string())?;
        // Ours knows the key, theirs does not.
        shared.truncate(1);
        shared[0]["spec"]["nodegate"] = serde_json::json!({});
        write(&file, &shared)?;
        let is_ours = create(&cluster, &file).await.is_ok();
        ensure!(is_ours == (definition == &ours));
        for (_, rule) in &foreign {
            write(&file, &[upstream(rule)])?;
            let why = refused(create(&cluster, &file).await)?;
            has_words(&why, "taint key must start with 'readiness.k8s.io/'")?;
        }
    }
    // Strict validation names what is dropped where it stands.
    let file = cluster.folder().join("rules.yaml");
    let mut misplaced = upstream(&shared[0].1);
    misplaced["spec"]["existingNodes"] = "Leave".into();
    write(&file, &[misplaced])?;
    let why = refused(apply(&cluster, &file).await)?;
    has_words(&why, "unknown field \"spec.existingNodes\"")
}

/// The rule without what is ours.
fn upstream(rule: &Value) -> Value {
    let mut rule = rule.clone();
    let conditions = rule["spec"]["conditions"].as_array_mut();
    for condition in conditions.into_iter().flatten() {
        remove(condition);
    }
    remove(&mut rule["spec"]);
    rule
}

fn remove(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("nodegate");
    }
}

fn write(file: &Path, rules: &[Value]) -> Result<()> {
    let documents = rules.iter().map(|rule| format!("---\n{rule}\n"));
    fs::write(file, documents.collect::<String>()).context("writing the rules")
}

async fn create(cluster: &Cluster, file: &Path) -> Result<String> {
    let try_out = ["create", "--dry-run=server", "--validate=strict"];
    cluster.kubectl_on(&try_out, file).await
}
