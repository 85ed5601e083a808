//! The controller ends in various ways and is started again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use nodegate_suite::PROMPTLY;
use nodegate_suite::gates::eventually_open;
use nodegate_suite::network::{
    CONDITION, TAINT, count_gated, create_nodes, create_nodes_from, name, network_rule, owners,
};
use nodegate_suite::rest::at_rest;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::{node, rule};
use nodegate_testbed::sights::{count_taints, events_on, nodes, rule_status};
use nodegate_testbed::{Cluster, Controller, Options, eventually, eventually_eq, never};
use serde_json::json;

#[tokio::test]
async fn a_restart_with_nothing_to_do_writes_nothing() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, 10, "False").await?;
    create_nodes_from(&client, 10..20, "True").await?;
    node("adopted")
        .label("network", "yes")
        .taint(TAINT, "NoSchedule")
        .create(&client)
        .await?;
    let controller = Controller::start(&cluster, &[]).await?;
    let waits = |name: &str, key: &str| rule(name, key).waits_for(CONDITION);
    network_rule("network").create(&client).await?;
    waits("bootstrap", "readiness.k8s.io/bootstrap")
        .bootstrap_only()
        .create(&client)
        .await?;
    waits("dry", "readiness.k8s.io/dry")
        .dry_run()
        .create(&client)
        .await?;
    waits("conflicted", "readiness.k8s.io/bootstrap")
        .create(&client)
        .await?;
    let adoptions = async || {
        let events = events_on(&client, "adopted").await?;
        let adopted = |reason: &Option<String>| reason.as_deref() == Some("TaintAdopted");
        Ok(events.iter().filter(|event| adopted(&event.reason)).count())
    };
    eventually_eq("the adoption is told", PROMPTLY, 1, adoptions).await?;
    for (rule, held) in [
        ("network", 11),
        ("bootstrap", 11),
        ("dry", 0),
        ("conflicted", 11),
    ] {
        eventually_eq(rule, PROMPTLY, json!(held), async || {
            Ok(rule_status(&client, rule).await?["nodegate"]["heldNodes"].take())
        })
        .await?;
    }
    cluster.idles();
    at_rest(&cluster, "").await?;
    let status = controller.stop().await?;
    ensure!(status.success(), "it ended with {status}");

    let before = cluster.controllers_writes().len();
    let controller = Controller::start(&cluster, &[]).await?;
    never("something is written", Duration::from_secs(3), async || {
        Ok(cluster.controllers_writes().get(before).cloned())
    })
    .await
    .with_context(|| format!("{:?}", cluster.controllers_writes().split_off(before)))?;
    assert_eq!(adoptions().await?, 1);

    // It still works.
    set_node_condition(&client, &name(0), CONDITION, "True").await?;
    eventually_open(&client, &name(0), TAINT).await?;
    drop(controller);
    Ok(())
}

#[tokio::test]
async fn told_to_end_it_finishes_the_writes_under_way_and_tells_of_them() -> Result<()> {
    const COUNT: usize = 400;
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let controller = Controller::start(&cluster, &["--node-concurrent-reconciles=2"]).await?;
    network_rule("network").create(&client).await?;
    eventually("the gating is under way", PROMPTLY, async || {
        Ok(count_gated(&client).await? > 0)
    })
    .await?;
    let asked = Instant::now();
    let status = controller.stop().await?;
    let took = asked.elapsed();
    assert_eq!(status.code(), Some(0));
    ensure!(took < Duration::from_secs(10), "it took {took:?} to end");
    println!("ended {took:?} after SIGTERM");

    let gated = count_gated(&client).await?;
    ensure!(gated < COUNT, "it was too fast to be stopped in the midst");
    let mut told = 0;
    for node in nodes(&client).await? {
        let is_gated = count_taints(&node, TAINT) == 1;
        assert_eq!(
            owners(&node).len(),
            usize::from(is_gated),
            "{}",
            node.name_any()
        );
        told += events_on(&client, &node.name_any()).await?.len();
    }
    assert_eq!(
        told, gated,
        "each change has its event, those at the end too"
    );
    let writes = cluster.controllers_writes();
    let writes = writes.iter().filter(|write| write.changed_a_node());
    assert_eq!(writes.count(), gated);
    Ok(())
}
