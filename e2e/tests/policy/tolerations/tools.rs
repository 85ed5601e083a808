//! The tools that people apply `DaemonSet`s with keep what the policy adds: the same manifest again changes no generation, so no pod is
//! rolled, and a dry run finds no drift.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::{Api, Client};
use serde_json::{Value, json};
use testkit::nodegate::Cluster;

use super::{added, all_are_known, cluster, naming, tolerations};

const OWN: &str = "example.com/own";
const MORE: &str = "example.com/more";

/// A tool, and what it does with a manifest, or with a chart.
#[derive(Debug, Clone, Copy)]
enum Tool {
    Kubectl(&'static [&'static str]),
    Helm(&'static [&'static str]),
}

/// `kubectl apply` is what Argo CD does by default, too. With `--server-side=false` Helm 4 sends the three-way patch of Helm 3.
const TOOLS: [(&str, Tool); 6] = [
    ("kubectl", Tool::Kubectl(&["apply"])),
    ("server-side", Tool::Kubectl(&["apply", "--server-side"])),
    (
        "flux",
        Tool::Kubectl(&[
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=kustomize-controller",
        ]),
    ),
    (
        "argo",
        Tool::Kubectl(&[
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=argocd-controller",
        ]),
    ),
    ("helm", Tool::Helm(&["--server-side=true"])),
    ("helm-3", Tool::Helm(&["--server-side=false"])),
];

/// A `DaemonSet` with tolerations of these taints, in a file of a folder in which it is also a chart.
fn written(cluster: &Cluster, name: &str, own: &[&str], label: &str) -> Result<PathBuf> {
    let chart = cluster.folder().join(format!("chart-{name}"));
    let templates = chart.join("templates");
    std::fs::create_dir_all(&templates)?;
    let about = json!({"apiVersion": "v2", "name": name, "version": "1.0.0"});
    std::fs::write(chart.join("Chart.yaml"), about.to_string())?;
    let own = own
        .iter()
        .map(|key| json!({"key": key, "operator": "Exists"}));
    let own: Vec<Value> = own.collect();
    let mut daemon_set = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default", "labels": {"round": label}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example.invalid/main"}]},
            },
        },
    });
    if !own.is_empty() {
        daemon_set["spec"]["template"]["spec"]["tolerations"] = json!(own);
    }
    let file = templates.join("daemon-set.yaml");
    std::fs::write(&file, daemon_set.to_string())?;
    Ok(file)
}

async fn apply(cluster: &Cluster, tool: Tool, name: &str, file: &Path) -> Result<()> {
    match tool {
        Tool::Kubectl(arguments) => cluster.kubectl_on(arguments, file).await,
        Tool::Helm(arguments) => {
            let chart = file.ancestors().nth(2).context("no chart")?;
            let chart = chart.to_string_lossy();
            let install = ["upgrade", "--install", "--namespace=default", name, &chart];
            cluster.helm(&[&install[..], arguments].concat()).await
        }
    }
    .map(drop)
}

/// The object without what every write changes.
fn lasting(mut object: Value) -> Value {
    for field in ["managedFields", "resourceVersion"] {
        object["metadata"][field].take();
    }
    object
}

/// Whether a server-side dry run, as Flux and Argo CD's `ServerSideDiff` do it, differs from what is there.
async fn drifts(cluster: &Cluster, arguments: &[&str], name: &str, file: &Path) -> Result<bool> {
    let try_out = ["--dry-run=server", "-o", "json"];
    let arguments = [arguments, &try_out].concat();
    let predicted = cluster.kubectl_on(&arguments, file);
    let predicted: Value = serde_json::from_str(&predicted.await?)?;
    let there = cluster.types(&format!("get ds/{name} -o json")).await?;
    Ok(lasting(predicted) != lasting(serde_json::from_str(&there)?))
}

async fn read(client: &Client, name: &str) -> Result<(Vec<String>, i64)> {
    let there = Api::<DaemonSet>::default_namespaced(client.clone());
    let found = there.get(name).await?;
    let generation = found.metadata.generation.context("no generation")?;
    Ok((tolerations(&found), generation))
}

#[tokio::test]
async fn what_is_added_stays_whatever_applies_the_daemon_set() -> Result<()> {
    let Some((cluster, client)) = cluster().await? else {
        return Ok(());
    };
    let names = |tool: &str, first: &str| format!("tools-{tool}-{first}");
    for (tool, _) in TOOLS {
        for first in ["own", "none"] {
            let name = names(tool, first);
            // The API server keeps rules in no order.
            for rule in ["a", "b", "c"] {
                let rule = naming(&format!("{name}-{rule}"), &format!("default/{name}"));
                rule.create(&client).await?;
            }
        }
    }
    all_are_known(&client, "tools-last").await?;
    for (tool_name, tool) in TOOLS {
        for (first, own) in [("own", &[OWN][..]), ("none", &[])] {
            let name = names(tool_name, first);
            let expected = |own: &[&str]| {
                let own = own.iter().map(|key| format!("{key}:"));
                let added = ["a", "b", "c"].map(|rule| added(&format!("{name}-{rule}")));
                own.chain(added).collect::<Vec<_>>()
            };
            let file = written(cluster, &name, own, "first")?;
            apply(cluster, tool, &name, &file)
                .await
                .context(tool_name)?;
            assert_eq!(read(&client, &name).await?, (expected(own), 1), "{name}");
            // As it is, and with a change of something else: no pod is rolled.
            for round in ["first", "second"] {
                let file = written(cluster, &name, own, round)?;
                apply(cluster, tool, &name, &file).await.context(round)?;
                assert_eq!(
                    read(&client, &name).await?,
                    (expected(own), 1),
                    "{name}: {round}"
                );
                if let Tool::Kubectl(arguments) = tool {
                    let drifts = drifts(cluster, arguments, &name, &file).await?;
                    assert!(!drifts, "{name}: {round}");
                }
            }
            // With a change of tolerations, also to none.
            for (own, generation) in [(&[OWN, MORE][..], 2), (&[MORE], 3), (&[], 4)] {
                let file = written(cluster, &name, own, "second")?;
                for _ in 0..2 {
                    apply(cluster, tool, &name, &file)
                        .await
                        .with_context(|| format!("{name}: {own:?}"))?;
                    assert_eq!(
                        read(&client, &name).await?,
                        (expected(own), generation),
                        "{name}: {own:?}"
                    );
                }
            }
        }
    }
    Ok(())
}
