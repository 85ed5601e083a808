//! Every folder under `examples/`: its README tells a story and names its files, a test plays it, and an API server accepts it. So
//! it does the YAML in README and documentation, all of which parses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use nodegate_tests::pages::{files, yaml};
use serde_json::Value;
use testkit::nodegate::definitions::KARPENTER;
use testkit::nodegate::install::config;
use testkit::nodegate::{Cluster, Options};

use crate::scene::{apply, examples};

fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(examples())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        ensure!(
            entry.file_type()?.is_dir(),
            "examples/{name} is in no example's folder"
        );
        names.push(name);
    }
    names.sort();
    Ok(names)
}

#[test]
fn every_example_tells_its_story_and_names_its_files() -> Result<()> {
    for name in names()? {
        let folder = examples().join(&name);
        let readme = fs::read_to_string(folder.join("README.md"))
            .with_context(|| format!("examples/{name}/README.md"))?;
        for entry in fs::read_dir(&folder)? {
            let file = entry?.file_name().to_string_lossy().into_owned();
            let link = format!("]({file})");
            ensure!(
                ["README.md", "kustomization.yaml"].contains(&file.as_str())
                    || readme.contains(&link),
                "examples/{name}/README.md does not name {file}"
            );
        }
    }
    Ok(())
}

/// Every rule of the examples and the samples, with its file.
pub(crate) fn rules() -> Result<Vec<(PathBuf, Value)>> {
    let mut all = files(&examples(), "yaml")?;
    all.extend(files(&config("samples"), "yaml")?);
    let mut found = Vec::new();
    for (path, text) in all {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| path.display().to_string())?;
        let rules = documents.into_iter();
        let rules = rules.filter(|document| document["kind"] == "NodeReadinessRule");
        found.extend(rules.map(|rule| (path.clone(), rule)));
    }
    Ok(found)
}

#[test]
fn no_example_or_sample_gates_a_node_in_use_as_it_is_applied() -> Result<()> {
    let rules = rules()?;
    ensure!(rules.len() > 10, "{} rules", rules.len());
    for (file, rule) in rules {
        let spec = &rule["spec"];
        let leaves_them_alone = spec["dryRun"] == true
            || spec["nodegate"]["taintPolicy"] == "remove-only"
            || spec["nodegate"]["existingNodes"] == "Leave";
        ensure!(leaves_them_alone, "{}", file.display());
    }
    Ok(())
}

#[test]
fn rules_of_one_name_are_the_same_in_all_examples_and_samples() -> Result<()> {
    let rules = rules()?;
    let mut known = BTreeMap::new();
    for (file, rule) in &rules {
        let name = rule["metadata"]["name"].as_str();
        let name = name.with_context(|| format!("no name: {}", file.display()))?;
        let (first, spec) = known.entry(name).or_insert((file, &rule["spec"]));
        ensure!(
            **spec == rule["spec"],
            "{name} in {} is another rule than in {}",
            file.display(),
            first.display()
        );
    }
    Ok(())
}

#[test]
fn every_example_is_played_through() -> Result<()> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = files(tests, "rs")?.into_iter();
    let text: String = sources.map(|(_, text)| text).collect();
    let unplayed: BTreeSet<String> = names()?
        .into_iter()
        .filter(|name| {
            let test = format!("fn examples_{}", name.replace('-', "_"));
            let applied = format!("example(\"{name}\")");
            !text.contains(&test) && !text.contains(&applied)
        })
        .collect();
    ensure!(
        unplayed.is_empty(),
        "no test under e2e/tests plays examples/{unplayed:?}"
    );
    Ok(())
}

/// Kinds of whole manifests that the API server of a test does not know.
const ELSEWHERE: [&str; 7] = [
    "Application",
    "HelmRelease",
    "KubeletConfiguration",
    "Kustomization",
    "MachineHealthCheck",
    "NodeHealthCheck",
    "NodePool",
];

#[tokio::test]
async fn an_api_server_takes_every_example_and_every_whole_manifest_in_the_documentation()
-> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.install_definitions(&KARPENTER).await?;
    let file = cluster.folder().join("fenced.yaml");
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
        fs::write(&file, &block.text)?;
        let try_out = ["apply", "--dry-run=server", "--validate=strict"];
        let taken = cluster.kubectl_on(&try_out, &file).await;
        taken.with_context(|| block.place())?;
    }
    ensure!(whole > 0, "no whole manifest was found");
    for name in names()? {
        let folder = examples().join(&name);
        let said = apply(&cluster, &folder).await?;
        // The next one may have a rule of the same name.
        let delete = ["delete", "--wait=false"];
        cluster.kubectl_on(&delete, &folder).await?;
        ensure!(
            said.contains("nodereadinessrule.readiness.node.x-k8s.io/"),
            "examples/{name} has no rule: {said}"
        );
    }
    // Files for some users only, which are in no kustomization.
    for file in [
        "room-first/karpenter-node-pool.yaml",
        "startup-taints/karpenter-node-pool.yaml",
        "your-stack/node-pools.yaml",
        "your-stack/class-rules.yaml",
    ] {
        apply(&cluster, &examples().join(file)).await?;
    }
    apply(&cluster, &config("samples")).await?;
    Ok(())
}
