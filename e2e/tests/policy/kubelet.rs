//! Kubelets are kept from Nodegate's annotations, and from nothing else.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use nodegate_e2e::fixtures::node;
use nodegate_e2e::{Cluster, eventually, sights};
use serde_json::{Value, json};

use crate::{SOON, cluster, crowd};

/// Runs kubectl as the kubelet of a node.
async fn kubelet(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    const AS: [&str; 3] = [
        "--as=system:node:its-own",
        "--as-group=system:nodes",
        "--as-group=system:authenticated",
    ];
    cluster.kubectl(&[&AS, arguments].concat()).await
}

#[tokio::test]
async fn a_kubelet_may_not_write_what_nodegate_has_on_record() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    let completed = "readiness.k8s.io/bootstrap-completed-x";
    let owned = "nodegate.dev/taint-added-by-x";
    let due = "nodegate.dev/ready-deadline-x";
    node("its-own")
        .annotation(completed, "{}")
        .create(&client)
        .await?;
    crowd(&client, "its-own").await?;
    eventually("the policy is in force", SOON, async || {
        let forged = [
            "annotate",
            "node",
            "its-own",
            "nodegate.dev/x=y",
            "--dry-run=server",
        ];
        Ok(kubelet(cluster, &forged).await.is_err())
    })
    .await?;

    for (key, value) in [
        (owned, json!("{}")),
        (due, json!("2026-01-01T00:00:00Z")),
        (completed, json!("true")),
        (completed, Value::Null),
        ("readiness.k8s.io/bootstrap-completed-rule", json!("{}")),
    ] {
        let patch = json!({"metadata": {"annotations": {key: value}}}).to_string();
        for subresource in ["", "status"] {
            let subresource = format!("--subresource={subresource}");
            let patch = [
                "patch",
                "node",
                "its-own",
                "--type=merge",
                "-p",
                &patch,
                &subresource,
            ];
            let Err(refusal) = kubelet(cluster, &patch).await else {
                anyhow::bail!("{key}={value} was not refused");
            };
            let refusal = format!("{refusal:#}");
            let words = format!("a kubelet may not write the annotation {key}");
            ensure!(refusal.contains(&words), "{refusal}");
        }
    }
    for arguments in [
        vec!["annotate", "node", "its-own", "example.com/mine=yes"],
        vec!["label", "node", "its-own", "example.com/mine=yes"],
        vec![
            "patch",
            "node",
            "its-own",
            "--subresource=status",
            "-p",
            r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#,
        ],
    ] {
        kubelet(cluster, &arguments).await?;
    }
    // Nobody else is held to anything.
    let by_hand = format!("{completed}-");
    cluster
        .kubectl(&["annotate", "node", "its-own", &by_hand])
        .await?;
    let node = sights::node(&client, "its-own").await?;
    ensure!(!node.annotations().contains_key(completed));
    Ok(())
}
