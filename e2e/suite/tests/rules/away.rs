//! Nodes and rules that change while no controller runs. This test has its own cluster.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use nodegate_testbed::changes::{delete_node, delete_rule, set_node_condition};
use nodegate_testbed::fixtures::rules;
use nodegate_testbed::{Cluster, Controller, Options, eventually};
use serde_json::json;

use super::rule::{self, bootstrap, completion, continuous, ownership};
use super::{READY, SOON, annotation, eventually_gated, eventually_open, is_gated, node};

#[tokio::test]
async fn what_changed_while_no_controller_ran_is_made_good() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
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
    delete_rule(&client, "deleted").await?;
    delete_rule(&client, "forced").await?;
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let forced = rules(&client)
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
