//! Nodes that change while no controller runs, or while one starts. These tests have their own clusters.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use nodegate_testbed::changes::{delete_node, set_node_condition};
use nodegate_testbed::{Cluster, Controller, Options, eventually, sights};
use serde_json::json;

use super::rule::{self, bootstrap, completion, continuous, ownership};
use super::{
    READY, SOON, annotation, eventually_gated, eventually_open, is_gated, key, node, requests,
};

const OPTIONS: Options = Options::api_only().audited();

/// Fault 253 of the Node Readiness Controller.
#[tokio::test]
async fn a_node_that_joins_during_warm_up_is_gated() -> Result<()> {
    let cluster = Cluster::start(OPTIONS).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    bootstrap("warm-up").create(&client).await?;
    let mut nodes = Vec::new();
    for round in 0..3 {
        let is_ready = AtomicBool::new(false);
        let joining = async {
            let mut joined = Vec::new();
            while !is_ready.load(Ordering::Relaxed) {
                let name = format!("warm-up-{round}-{}", joined.len());
                node("warm-up", &name).create(&client).await?;
                joined.push(name);
            }
            anyhow::Ok(joined)
        };
        let starting = async {
            let controller = Controller::start(&cluster, &[]).await;
            is_ready.store(true, Ordering::Relaxed);
            controller
        };
        let (joined, controller) = tokio::join!(joining, starting);
        let controller = controller?;
        nodes.extend(joined?);
        for name in &nodes {
            eventually_gated(&client, name, "warm-up").await?;
        }
        controller.kill();
    }
    assert!(nodes.len() > 3, "{} nodes joined", nodes.len());
    Ok(())
}

#[tokio::test]
async fn what_changed_while_no_controller_ran_is_made_good() -> Result<()> {
    let cluster = Cluster::start(OPTIONS).await?;
    let controller = Controller::start(&cluster, &[]).await?;
    let client = cluster.client().await?;
    for name in ["met", "forced", "deleted", "steady"] {
        continuous(name).create(&client).await?;
        node(name, name).create(&client).await?;
        eventually_gated(&client, name, name).await?;
    }
    let again = bootstrap("again").create(&client).await?;
    let ready = node("again", "again").condition(READY, "True");
    ready.create(&client).await?;
    eventually("the bootstrap is complete", SOON, async || {
        annotation(&client, "again", &completion(&again)).await
    })
    .await?;
    assert!(controller.stop().await?.success());

    set_node_condition(&client, "met", READY, "True").await?;
    rule::start_deletion(&client, "deleted").await?;
    rule::start_deletion(&client, "forced").await?;
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let forced = rule::rules(&client)
        .patch("forced", &PatchParams::default(), &none)
        .await?;
    delete_node(&client, "again").await?;
    node("again", "again").create(&client).await?;

    let _controller = Controller::start(&cluster, &[]).await?;
    eventually_open(&client, "met", "met").await?;
    eventually_open(&client, "deleted", "deleted").await?;
    rule::eventually_gone(&client, "deleted").await?;
    // Its finalizer was removed by force, so only the annotation on the node records the taint's owner.
    eventually_open(&client, "forced", "forced").await?;
    assert_eq!(
        annotation(&client, "forced", &ownership(&forced)).await?,
        None
    );
    eventually_gated(&client, "again", "again").await?;
    assert!(is_gated(&client, "steady", "steady").await?);
    Ok(())
}

#[tokio::test]
async fn a_rule_that_was_there_before_the_first_controller_adopts_and_says_so() -> Result<()> {
    let cluster = Cluster::start(OPTIONS).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    continuous("earlier").create(&client).await?;
    let registers = node("earlier", "earlier").taint(&key("earlier"), "NoSchedule");
    registers.create(&client).await?;
    // Times are in whole seconds: this separates nodes that exist at the start from later ones.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let _controller = Controller::start(&cluster, &[]).await?;
    let said = eventually("the adoption is told", SOON, async || {
        Ok(sights::events_on(&client, "earlier").await?.pop())
    })
    .await?;
    assert_eq!(said.reason.as_deref(), Some("TaintAdopted"));
    Ok(())
}

#[tokio::test]
async fn a_restart_writes_and_says_nothing_again() -> Result<()> {
    let cluster = Cluster::start(OPTIONS).await?;
    let limit = ["--status-node-limit=5"];
    let controller = Controller::start(&cluster, &limit).await?;
    let client = cluster.client().await?;
    continuous("restart").create(&client).await?;
    rule::eventually_observed(&client, "restart").await?;
    let adopted = node("restart", "restart-adopted").taint(&key("restart"), "NoSchedule");
    adopted.create(&client).await?;
    for number in 0..4 {
        let name = format!("restart-held-{number}");
        node("restart", &name).create(&client).await?;
        let name = format!("restart-a-open-{number}");
        let open = node("restart", &name).condition(READY, "True");
        open.create(&client).await?;
    }
    rule::eventually_counts(&client, "restart", [9, 5, 4]).await?;
    eventually("the adoption is told", SOON, async || {
        Ok(sights::events_on(&client, "restart-adopted").await?.len() == 1)
    })
    .await?;
    requests::at_rest(&cluster, "restart").await?;
    let status = rule::status(&client, "restart").await?;
    let listed = status["nodeEvaluations"].as_array().into_iter().flatten();
    let listed: Vec<_> = listed.map(|listed| &listed["nodeName"]).collect();
    let held = ["adopted", "held-0", "held-1", "held-2", "held-3"];
    assert_eq!(
        listed,
        held.map(|name| json!(format!("restart-{name}")))
            .iter()
            .collect::<Vec<_>>()
    );

    let before = requests::writes(&cluster, "restart")?;
    assert!(controller.stop().await?.success());
    // Times are in whole seconds: this separates earlier nodes from later ones.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let controller = Controller::start(&cluster, &limit).await?;
    node("restart", "new").create(&client).await?;
    eventually_gated(&client, "new", "restart").await?;
    rule::eventually_counts(&client, "restart", [10, 6, 4]).await?;
    let after = requests::writes(&cluster, "restart")?;
    let written: Vec<_> = after[before.len()..]
        .iter()
        .map(|write| &*write.resource)
        .collect();
    assert!(
        written
            .iter()
            .all(|resource| *resource == "nodereadinessrules/status"),
        "{written:?}"
    );
    assert_eq!(
        sights::events_on(&client, "restart-adopted").await?.len(),
        1
    );
    assert!(controller.stop().await?.success());
    let rule = rule::rules(&client).get("restart").await?;
    assert_eq!(rule.finalizers(), [rule::FINALIZER]);
    Ok(())
}
