//! etcd is restored from a backup while the controller runs. Revisions are used again, and a watch from before shows nothing
//! and ends regularly.

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use nodegate_tests::gates::{eventually_gated, eventually_released};
use nodegate_tests::rules::{create_rule, key};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::{node, rule};
use testkit::nodegate::state::{count_taints, nodes};
use testkit::nodegate::{Cluster, Controller, Options, never};

use super::scene::NETWORK;

/// Longer than the controller takes to act on an event.
const SETTLED: Duration = Duration::from_secs(5);

#[tokio::test]
async fn after_a_restored_backup_everything_is_listed_anew() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    create_rule(&client, "network", &key("network"), NETWORK).await?;
    node("kept")
        .condition(NETWORK, "False")
        .create(&client)
        .await?;
    let mut controller = Controller::start(&cluster, &[]).await?;
    eventually_gated(&client, "kept", &key("network")).await?;
    cluster.back_up_store().await?;

    set_node_condition(&client, "kept", NETWORK, "True").await?;
    eventually_released(&client, "kept", &key("network")).await?;
    let lost = rule("lost", &key("lost")).waits_for("example.com/Never");
    lost.create(&client).await?;
    eventually_gated(&client, "kept", &key("lost")).await?;
    write_often(&client).await?;
    cluster.restore_store().await?;
    controller.ensure_running()?;
    cluster.idles();

    set_node_condition(&client, "kept", NETWORK, "True").await?;
    node("new")
        .condition(NETWORK, "False")
        .create(&client)
        .await?;
    eventually_released(&client, "kept", &key("network")).await?;
    eventually_gated(&client, "new", &key("network")).await?;
    // Uses up all revisions from before: any watch would show later ones.
    write_often(&client).await?;
    write_often(&client).await?;
    let lost = async || {
        let nodes = nodes(&client).await?;
        Ok(nodes.iter().any(|it| count_taints(it, &key("lost")) > 0))
    };
    never("a rule counts that is not there", SETTLED, lost).await?;
    set_node_condition(&client, "new", NETWORK, "True").await?;
    eventually_released(&client, "new", &key("network")).await
}

async fn write_often(client: &Client) -> Result<()> {
    for _ in 0..100 {
        set_node_condition(client, "kept", NETWORK, "True").await?;
    }
    Ok(())
}
