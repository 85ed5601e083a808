//! Kubelets are kept from Nodegate's annotations, and from nothing else.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use nodegate_suite::kubelet::kubelet;
use nodegate_testbed::fixtures::node;
use nodegate_testbed::sights;
use serde_json::{Value, json};

use crate::{cluster, condition, crowd, in_force, is_refused, patch_node, patch_status};

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
    let kubelet = kubelet(cluster, "its-own").await?;
    let annotated = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
    in_force(
        &kubelet,
        "its-own",
        &annotated("nodegate.dev/x", json!("y")),
    )
    .await?;
    for (key, value) in [
        (owned, json!("{}")),
        (due, json!("2026-01-01T00:00:00Z")),
        (completed, json!("true")),
        (completed, Value::Null),
        ("readiness.k8s.io/bootstrap-completed-rule", json!("{}")),
    ] {
        let patch = annotated(key, value);
        for refusal in [
            patch_node(&kubelet, "its-own", &patch).await,
            patch_status(&kubelet, "its-own", &patch).await,
        ] {
            is_refused(refusal, "a kubelet may not write the annotation", key)?;
        }
    }
    let own = annotated("example.com/mine", json!("yes"));
    patch_node(&kubelet, "its-own", &own).await?;
    patch_status(&kubelet, "its-own", &condition("Ready", "True")).await?;
    // Nobody else is held to anything.
    patch_node(&client, "its-own", &annotated(completed, Value::Null)).await?;
    let node = sights::node(&client, "its-own").await?;
    ensure!(!node.annotations().contains_key(completed));
    Ok(())
}
