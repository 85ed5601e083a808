//! The process stalls for longer than its timers run while the nodes recover: it reads before it acts.

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use nodegate_suite::SOON;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::{RuleBuilder, node, rule};
use nodegate_testbed::sights::has_taint;
use nodegate_testbed::{Cluster, Controller, Options, eventually_eq, never};
use serde_json::json;

const STALL: Duration = Duration::from_secs(25);
const READY: &str = "example.com/Ready";

fn key(test: &str) -> String {
    format!("readiness.k8s.io/{test}")
}

fn careful(test: &str) -> RuleBuilder {
    rule(test, &key(test))
        .waits_for(READY)
        .selects("test", test)
}

async fn create_all(client: &Client, test: &str, count: usize) -> Result<Vec<String>> {
    let names: Vec<_> = (0..count).map(|index| format!("{test}-{index}")).collect();
    for name in &names {
        let node = node(name).label("test", test).condition(READY, "True");
        node.create(client).await?;
    }
    Ok(names)
}

async fn turn_all(client: &Client, nodes: &[String], status: &str) -> Result<()> {
    for node in nodes {
        set_node_condition(client, node, READY, status).await?;
    }
    Ok(())
}

async fn count_closed(client: &Client, test: &str, nodes: &[String]) -> Result<usize> {
    let mut closed = 0;
    for node in nodes {
        closed += usize::from(has_taint(client, node, &key(test)).await?);
    }
    Ok(closed)
}

#[tokio::test]
async fn a_process_that_stood_still_reads_before_it_acts() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let controller = Controller::start(&cluster, &[]).await?;
    let grace = careful("grace").nodegate("gracePeriod", json!("20s"));
    grace.create(&client).await?;
    // One node in ten seconds.
    let queue = careful("queue").nodegate("disruption", json!({ "evictionRate": 0.1 }));
    queue.create(&client).await?;
    let in_grace = create_all(&client, "grace", 10).await?;
    let all = create_all(&client, "queue", 14).await?;
    // Too few of the zone to be a disruption.
    let queued = &all[..4];
    tokio::time::sleep(Duration::from_secs(1)).await;
    turn_all(&client, &in_grace, "False").await?;
    turn_all(&client, queued, "False").await?;
    eventually_eq("the first of the queue is closed", SOON, 1, async || {
        count_closed(&client, "queue", queued).await
    })
    .await?;
    cluster.idles();
    controller.pause()?;
    turn_all(&client, &in_grace, "True").await?;
    turn_all(&client, queued, "True").await?;
    tokio::time::sleep(STALL).await;
    controller.resume()?;
    never(
        "a node is closed that has recovered",
        Duration::from_secs(8),
        async || {
            Ok(count_closed(&client, "grace", &in_grace).await? > 0
                || count_closed(&client, "queue", queued).await? > 1)
        },
    )
    .await?;
    eventually_eq("it goes on", SOON, 0, async || {
        count_closed(&client, "queue", queued).await
    })
    .await
}
