//! Late nodes as the controllers see them that remediate nodes by a condition. The manifests are those of `docs/repair.md`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use nodegate_tests::gates::eventually_released;
use nodegate_tests::pages;
use nodegate_tests::{SOON, has_words};
use serde_json::{Value, json};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::definitions::CLUSTER_API;
use testkit::nodegate::{Controller, eventually, never, state};

use super::{
    A_WHILE, READY, claim, eventually_deleted, eventually_told, key, late, own_cluster, rule,
};

/// The manifest of this kind on the page.
fn manifest(kind: &str) -> Result<(String, Value)> {
    let blocks = pages::yaml()?.into_iter();
    let mut of_page = blocks.filter(|block| block.page == "docs/repair.md");
    let block = of_page.find(|block| block.text.contains(&format!("kind: {kind}\n")));
    let text = block
        .with_context(|| format!("no {kind} on the page"))?
        .text;
    let manifest = serde_saphyr::from_str(&text)?;
    Ok((text, manifest))
}

/// For which of these conditions a remediator finds the node unhealthy at this time, as medik8s and Cluster API do: by type, status
/// and how long it has been so.
fn unhealthy<'a>(node: &'a Node, conditions: &Value, at: Timestamp) -> Option<&'a NodeCondition> {
    let known = node.status.as_ref()?.conditions.as_ref()?;
    let asked = conditions.as_array()?;
    known.iter().find(|condition| {
        asked.iter().any(|asked| {
            let lasts = match (&asked["duration"], &asked["timeoutSeconds"]) {
                (Value::String(text), _) => text.parse().ok(),
                (_, seconds) => seconds.as_i64().map(SignedDuration::from_secs),
            };
            let since = condition.last_transition_time.as_ref();
            let is_due = since
                .zip(lasts)
                .is_some_and(|(since, lasts)| since.0 + lasts <= at);
            asked["type"] == condition.type_ && asked["status"] == condition.status && is_due
        })
    })
}

#[tokio::test]
async fn a_late_node_is_unhealthy_to_other_controllers_for_as_long_as_it_is_held() -> Result<()> {
    let (_, medik8s) = manifest("NodeHealthCheck")?;
    let (text, cluster_api) = manifest("MachineHealthCheck")?;
    let conditions = [
        &medik8s["spec"]["unhealthyConditions"],
        &cluster_api["spec"]["checks"]["unhealthyNodeConditions"],
    ];
    let (cluster, client) = own_cluster().await?;
    cluster.install_definitions(&CLUSTER_API).await?;
    cluster.apply(&text).await?;
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    let repaired = [
        ("reported", "None"),
        ("replaced", "DeleteNodeClaim"),
        ("without-a-claim", "DeleteNodeClaim"),
        ("held-back", "None"),
    ];
    for (name, action) in repaired {
        let mut rule = rule(name, action);
        if name == "held-back" {
            let limited = json!({"readinessTTL": "1m", "maxUnhealthy": 0});
            rule = rule.nodegate("repair", limited);
        }
        let rule = rule.create(&client).await?;
        if name == "replaced" {
            claim(name, name).create(&client).await?;
        }
        // A zone in which every node is late is left alone.
        let zone = "topology.kubernetes.io/zone";
        let late = late(name, name, &rule).label(zone, name);
        late.create(&client).await?;
    }

    let found = async |name: &str, after: Duration| {
        let node = state::node(&client, name).await?;
        let at = Timestamp::now() + after;
        let found = conditions.map(|asked| unhealthy(&node, asked, at).cloned());
        ensure!(found[0] == found[1], "they differ about {name}: {found:?}");
        anyhow::Ok(found[0].clone())
    };
    let later = Duration::from_secs(3600);
    let mut since = Vec::new();
    for name in ["reported", "replaced", "without-a-claim"] {
        let what = format!("{name} is unhealthy");
        let condition = eventually(&what, SOON, async || found(name, later).await).await?;
        let message = condition.message.unwrap_or_default();
        let expected =
            format!("Rule '{name}' holds this node. The node should have been ready by ");
        ensure!(message.starts_with(&expected), "{message}");
        has_words(&message, READY)?;
        ensure!(
            found(name, Duration::ZERO).await?.is_none(),
            "{name} has not been late for so long"
        );
        since.push(condition.last_transition_time.context("a time")?);
    }
    eventually_told(&client, "held-back", "NodeNotReadyInTime", SOON).await?;
    never("held-back is unhealthy", A_WHILE, async || {
        Ok(found("held-back", later).await?.is_some())
    })
    .await?;

    // Another message is no transition, and a claim that is being deleted changes nothing until the node is gone.
    set_node_condition(&client, "reported", READY, "False").await?;
    eventually("the message changes", SOON, async || {
        let condition = found("reported", later).await?;
        let condition = condition.context("it is unhealthy no more")?;
        ensure!(condition.last_transition_time.as_ref() == Some(&since[0]));
        let message = condition.message.unwrap_or_default();
        Ok(message.contains("is False"))
    })
    .await?;
    eventually_deleted(&client, "replaced", SOON).await?;
    let condition = found("replaced", later).await?;
    let still = condition.and_then(|it| it.last_transition_time);
    ensure!(still.as_ref() == Some(&since[1]), "{still:?}");

    set_node_condition(&client, "reported", READY, "True").await?;
    eventually_released(&client, "reported", &key("reported")).await?;
    eventually("it goes with the taint", SOON, async || {
        Ok(found("reported", later).await?.is_none())
    })
    .await
}
