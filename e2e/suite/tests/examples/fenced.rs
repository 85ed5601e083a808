//! The YAML in README, documentation and examples: all of it parses, and an API server accepts whole manifests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use nodegate_suite::pages::yaml;
use nodegate_testbed::{Cluster, Options};
use serde_json::Value;

/// Kinds of whole manifests that the API server of a test does not know.
const ELSEWHERE: [&str; 5] = [
    "Application",
    "HelmRelease",
    "KubeletConfiguration",
    "Kustomization",
    "NodePool",
];

#[tokio::test]
async fn an_api_server_takes_every_whole_manifest_in_the_documentation() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.install_alpha().await?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fenced");
    fs::create_dir_all(&folder)?;
    let mut whole = 0;
    for block in yaml()? {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&block.text)
            .with_context(|| format!("{}: not YAML", block.place()))?;
        let is_whole = |document: &Value| {
            let kind = document["kind"].as_str();
            document["metadata"]["name"].is_string()
                && kind.is_some_and(|kind| !ELSEWHERE.contains(&kind))
        };
        if documents.is_empty() || !documents.iter().all(is_whole) {
            continue;
        }
        whole += 1;
        let file = folder.join(format!("{whole}.yaml"));
        fs::write(&file, &block.text)?;
        let file = file.to_string_lossy();
        let arguments = [
            "apply",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            &file,
        ];
        let taken = cluster.kubectl(&arguments).await;
        taken.with_context(|| block.place())?;
    }
    assert!(whole > 0, "no whole manifest was found");
    Ok(())
}
