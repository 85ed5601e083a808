//! Whatever a kubelet fills its annotations with: its node is gated and released as any other, and holds up no rule's deletion.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use kube::{Client, ResourceExt};
use nodegate_tests::kubelet::kubelet;
use nodegate_tests::network::OWNER;
use nodegate_tests::rules::delete;
use serde_json::json;
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::{node, rule};
use testkit::nodegate::install::config;
use testkit::nodegate::state::{has_taint, node as read_node};
use testkit::nodegate::{Cluster, Controller, Options, eventually_eq};

use crate::{SOON, in_force, is_refused, patch_node};

const READY: &str = "example.com/Ready";
const TAINTS: [&str; 2] = ["readiness.k8s.io/continuous", "readiness.k8s.io/bootstrap"];
/// The bytes that all annotations of an object may have, as in `ValidateAnnotations` of `apimachinery`.
const MOST_BYTES: usize = 256 << 10;

/// Annotates a node with this many keys.
async fn fill(client: &Client, name: &str, count: usize) -> Result<()> {
    let keys = (0..count).map(|number| (format!("a{number}"), ""));
    let keys: BTreeMap<_, _> = keys.collect();
    let patch = json!({"metadata": {"annotations": keys}});
    patch_node(client, name, &patch).await?;
    Ok(())
}

/// Has the kubelet take all bytes that annotations may have, save for a few that no record fits into.
async fn fill_up(kubelet: &Client, name: &str) -> Result<()> {
    let node = read_node(kubelet, name).await?;
    let known = node.annotations().iter();
    let known: usize = known.map(|(key, value)| key.len() + value.len()).sum();
    let value = "x".repeat(MOST_BYTES - known - 100);
    patch_node(
        kubelet,
        name,
        &json!({"metadata": {"annotations": {"full": value}}}),
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_kubelet_that_fills_its_annotations_evades_no_rule_and_keeps_none() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.apply_path(&config("policy")).await?;
    let client = cluster.client().await?;
    let names = ["full", "crowded", "within-limits"];
    let pool = ("example.com/pool", "filled");
    for name in names {
        node(name).label(pool.0, pool.1).create(&client).await?;
    }
    let own = kubelet(&cluster, "full").await?;
    let forbidden = json!({"metadata": {"annotations": {"nodegate.dev/x": "y"}}});
    in_force(&own, "full", &forbidden).await?;
    fill_up(&own, "full").await?;
    fill(
        &kubelet(&cluster, "within-limits").await?,
        "within-limits",
        990,
    )
    .await?;
    // More than the policy lets the controller change. No kubelet can bring so many under the policy.
    fill(&client, "crowded", 1500).await?;
    let newcomer = kubelet(&cluster, "new").await?;
    let annotated = (0..1500).fold(node("new"), |it, number| {
        it.annotation(&format!("a{number}"), "")
    });
    let tainted = (0..101).fold(node("new"), |it, number| {
        it.taint(&format!("example.com/t{number}"), "NoSchedule")
    });
    for (it, words) in [
        (annotated, "more than 1000"),
        (tainted, "more than 100 taints"),
    ] {
        let refusal = kube::Api::all(newcomer.clone())
            .create(&kube::api::PostParams::default(), &it.build())
            .await;
        is_refused(refusal, "a kubelet may not", words)?;
    }

    let controller = Controller::start(&cluster, &["--max-first-gated=100%"]).await?;
    let continuous = rule("continuous", TAINTS[0])
        .waits_for(READY)
        .selects(pool.0, pool.1);
    let continuous = continuous.create(&client).await?;
    let bootstrap = rule("bootstrap", TAINTS[1])
        .waits_for(READY)
        .bootstrap_only();
    bootstrap.selects(pool.0, pool.1).create(&client).await?;
    let seen = async || {
        let mut seen = Vec::new();
        for name in names {
            for taint in TAINTS {
                seen.push(has_taint(&client, name, taint).await?);
            }
        }
        anyhow::Ok(seen)
    };
    eventually_eq("all are gated", SOON, vec![true; 6], seen).await?;
    let key = format!("{OWNER}{}", continuous.uid().unwrap_or_default());
    eventually_eq(
        "what has room has a record",
        SOON,
        vec![false, false, true],
        async || {
            let mut seen = Vec::new();
            for name in names {
                let node = read_node(&client, name).await?;
                seen.push(node.annotations().contains_key(&key));
            }
            anyhow::Ok(seen)
        },
    )
    .await?;
    for name in names {
        set_node_condition(&client, name, READY, "True").await?;
    }
    eventually_eq("all are released", SOON, vec![false; 6], seen).await?;
    for name in names {
        set_node_condition(&client, name, READY, "False").await?;
    }
    let is_gated_again = async || Ok(seen().await?.into_iter().step_by(2).collect::<Vec<_>>());
    eventually_eq(
        "the continuous rule gates them again",
        SOON,
        vec![true; 3],
        is_gated_again,
    )
    .await?;
    for name in ["continuous", "bootstrap"] {
        delete(&client, name).await?;
    }
    ensure!(seen().await? == [false; 6]);
    ensure!(
        controller.log().contains("more than 1500"),
        "it tells of the records that it cannot write"
    );
    Ok(())
}
