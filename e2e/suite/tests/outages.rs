//! The controller is killed, stopped, paused, or loses its API server, at the worst moment: afterwards every node is as
//! it should be, without anything being done twice.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Client, ResourceExt};
use nodegate_testbed::changes::{
    delete_node, delete_rule, patch_node, patch_rule, remove_node_condition, set_node_condition,
};
use nodegate_testbed::fixtures::{node, rule, rules};
use nodegate_testbed::sights::{
    count_taints, events_on, has_taint, nodes, rule_condition, rule_status,
};
use nodegate_testbed::{Cluster, Controller, Options, Witness, eventually, eventually_eq, never};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

const SOON: Duration = Duration::from_secs(20);
const CONDITION: &str = "example.com/NetworkReady";
const TAINT: &str = "readiness.k8s.io/network";
const OWNER: &str = "nodegate.dev/taint-added-by-";

/// Each test has a cluster of its own, which takes its share of memory: not too many at a time.
static TURNS: Semaphore = Semaphore::const_new(2);

#[tokio::test]
async fn a_controller_killed_in_the_midst_of_its_work_finishes_it_after_the_restart() -> Result<()>
{
    const COUNT: usize = 100;
    let _turn = TURNS.acquire().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    // One node at a time, so that there is a midst.
    let slow = ["--node-concurrent-reconciles=1"];

    let witness = Witness::of_nodes(&client).await?;
    let controller = Controller::start(&cluster, &slow).await?;
    network_rule("network").create(&client).await?;
    eventually("the gating is under way", SOON, async || {
        Ok(count_gated(&client).await? > COUNT / 10)
    })
    .await?;
    controller.kill();
    let gated = count_gated(&client).await?;
    ensure!(gated < COUNT, "it was too fast to be killed in the midst");

    let controller = Controller::start(&cluster, &slow).await?;
    eventually_eq("all nodes are gated", SOON, COUNT, async || {
        count_gated(&client).await
    })
    .await?;

    for index in 0..COUNT / 2 {
        set_node_condition(&client, &name(index), CONDITION, "True").await?;
    }
    controller.kill();
    let gated = count_gated(&client).await?;
    ensure!(gated > COUNT / 2 - 1, "{gated} nodes are gated");
    for index in COUNT / 2..COUNT {
        set_node_condition(&client, &name(index), CONDITION, "True").await?;
    }
    let _controller = Controller::start(&cluster, &slow).await?;
    eventually_eq("all nodes are open", SOON, 0, async || {
        count_gated(&client).await
    })
    .await?;

    for node in nodes(&client).await? {
        ensure!(owners(&node).is_empty(), "{:?}", node.annotations());
    }
    for (name, seen) in witness.up_to(&client, &name(COUNT - 1)).await? {
        let mut taints: Vec<usize> = seen.iter().map(|node| count_taints(node, TAINT)).collect();
        taints.dedup();
        assert_eq!(taints, [0, 1, 0], "{name} is gated and released once");
    }
    Ok(())
}

#[tokio::test]
async fn a_restart_with_nothing_to_do_writes_nothing() -> Result<()> {
    let _turn = TURNS.acquire().await?;
    let cluster = audited().await?;
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
    eventually_eq("the adoption is told", SOON, 1, adoptions).await?;
    for (rule, held) in [
        ("network", 11),
        ("bootstrap", 11),
        ("dry", 0),
        ("conflicted", 11),
    ] {
        eventually_eq(rule, SOON, json!(held), async || {
            Ok(rule_status(&client, rule).await?["heldNodes"].take())
        })
        .await?;
    }
    quiet(&cluster).await?;
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

    // It is not that it does nothing at all.
    set_node_condition(&client, &name(0), CONDITION, "True").await?;
    eventually("the node opens", SOON, async || {
        Ok(!has_taint(&client, &name(0), TAINT).await?)
    })
    .await?;
    drop(controller);
    Ok(())
}

#[tokio::test]
async fn told_to_end_it_finishes_the_writes_under_way_and_tells_of_them() -> Result<()> {
    const COUNT: usize = 100;
    let _turn = TURNS.acquire().await?;
    let cluster = audited().await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let controller = Controller::start(&cluster, &["--node-concurrent-reconciles=4"]).await?;
    network_rule("network").create(&client).await?;
    eventually("the gating is under way", SOON, async || {
        Ok(count_gated(&client).await? > COUNT / 10)
    })
    .await?;
    let asked = Instant::now();
    let status = controller.stop().await?;
    let took = asked.elapsed();
    assert_eq!(status.code(), Some(0));
    ensure!(took < Duration::from_secs(4), "it took {took:?} to end");
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

#[tokio::test]
async fn an_api_server_that_goes_away_is_waited_for() -> Result<()> {
    const COUNT: usize = 150;
    let _turn = TURNS.acquire().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let mut controller = Controller::start(&cluster, &["--node-concurrent-reconciles=1"]).await?;
    network_rule("network").create(&client).await?;
    eventually("the gating is under way", SOON, async || {
        Ok(count_gated(&client).await? > COUNT / 10)
    })
    .await?;
    cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(12)).await;
    ensure!(
        controller.log().contains("waiting for it with all writes"),
        "it was too fast to be interrupted: {}",
        controller.log()
    );
    cluster.start_api_server().await?;
    let back = Instant::now();
    eventually_eq("all nodes are gated", SOON, COUNT, async || {
        count_gated(&client).await
    })
    .await?;
    println!(
        "last effect {:?} after the API server is back",
        back.elapsed()
    );

    for index in 0..COUNT {
        set_node_condition(&client, &name(index), CONDITION, "True").await?;
        if index == COUNT / 2 {
            cluster.restart_api_server().await?;
        }
    }
    let back = Instant::now();
    eventually_eq("all nodes are open", SOON, 0, async || {
        count_gated(&client).await
    })
    .await?;
    println!("all open {:?} after the last change", back.elapsed());

    eventually_eq(
        "nothing is left of the failures",
        SOON,
        json!([0, 0, COUNT]),
        async || {
            let status = rule_status(&client, "network").await?;
            Ok(json!([
                status["failedNodeCount"],
                status["heldNodes"],
                status["matchedNodes"]
            ]))
        },
    )
    .await?;
    assert_eq!(
        rule_status(&client, "network").await?["failedNodes"],
        Value::Null
    );
    for node in nodes(&client).await? {
        ensure!(owners(&node).is_empty(), "{:?}", node.annotations());
    }
    ensure!(controller.exited()?.is_none(), "it had to be restarted");
    ensure!(controller.is_ready().await);
    Ok(())
}

#[tokio::test]
async fn a_controller_that_was_paused_clobbers_nothing() -> Result<()> {
    const COUNT: usize = 20;
    let _turn = TURNS.acquire().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let controller = Controller::start(&cluster, &[]).await?;
    network_rule("network").create(&client).await?;
    eventually_eq("all nodes are gated", SOON, COUNT, async || {
        count_gated(&client).await
    })
    .await?;

    // Some changes reach it just before the pause, so that writes are under way.
    for index in 0..COUNT / 2 {
        set_node_condition(&client, &name(index), CONDITION, "True").await?;
    }
    controller.pause()?;
    for index in 0..COUNT {
        let taints = nodegate_testbed::sights::taints(&client, &name(index)).await?;
        let mut taints = json!(taints);
        let foreign = json!({"key": "example.com/foreign", "effect": "NoSchedule"});
        taints
            .as_array_mut()
            .context("taints are a list")?
            .push(foreign);
        let patch = json!({
            "metadata": {"annotations": {"example.com/foreign": "kept"}},
            "spec": {"taints": taints},
        });
        patch_node(&client, &name(index), &patch).await?;
    }
    // Back and forth: what counts is what is there in the end.
    for index in 0..COUNT {
        let status = if index % 2 == 0 { "True" } else { "False" };
        set_node_condition(&client, &name(index), CONDITION, status).await?;
    }
    delete_node(&client, &name(0)).await?;
    create_nodes_from(&client, 0..1, "False").await?;
    delete_node(&client, &name(1)).await?;
    create_nodes_from(&client, 1..2, "True").await?;
    delete_node(&client, &name(2)).await?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    controller.resume()?;

    let expected = |index: usize| index == 0 || (index > 2 && index % 2 == 1);
    let gated: Vec<String> = (0..COUNT)
        .filter(|&index| expected(index))
        .map(name)
        .collect();
    let seen = async || {
        let mut nodes = nodes(&client).await?;
        nodes.retain(|node| count_taints(node, TAINT) > 0);
        Ok(nodes.iter().map(ResourceExt::name_any).collect())
    };
    eventually_eq("every node is as it should be", SOON, gated.clone(), seen).await?;
    never("it changes its mind", Duration::from_secs(1), async || {
        Ok(seen().await? != gated)
    })
    .await?;
    for node in nodes(&client).await? {
        let foreign = usize::from(![name(0), name(1)].contains(&node.name_any()));
        assert_eq!(
            count_taints(&node, "example.com/foreign"),
            foreign,
            "{}",
            node.name_any()
        );
        assert_eq!(
            node.annotations().contains_key("example.com/foreign"),
            foreign == 1
        );
        assert_eq!(
            owners(&node).len(),
            count_taints(&node, TAINT),
            "{}",
            node.name_any()
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_taints_of_a_rule_whose_finalizer_was_forced_away_are_lifted() -> Result<()> {
    let _turn = TURNS.acquire().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let controller = Controller::start(&cluster, &[]).await?;
    let mut running = Some(controller);
    for while_down in [true, false] {
        create_nodes(&client, 5, "False").await?;
        node("adopted")
            .label("network", "yes")
            .taint(TAINT, "NoSchedule")
            .create(&client)
            .await?;
        network_rule("network").create(&client).await?;
        eventually_eq("all nodes are gated", SOON, 6, async || {
            count_gated(&client).await
        })
        .await?;

        if while_down && let Some(controller) = running.take() {
            controller.kill();
        }
        // Both at once would be refused; the order in which people do it.
        patch_rule(
            &client,
            "network",
            &json!({"metadata": {"finalizers": null}}),
        )
        .await?;
        delete_rule(&client, "network").await?;
        if while_down {
            // Down, nobody puts the finalizer back.
            ensure!(rules(&client).get_opt("network").await?.is_none());
            running = Some(Controller::start(&cluster, &[]).await?);
        } else {
            // Running, it may have put the finalizer back; force it away again if so.
            eventually("the rule is gone", SOON, async || {
                let patch = json!({"metadata": {"finalizers": null}});
                let patch = Patch::Merge(&patch);
                let params = PatchParams::default();
                let _ = rules(&client).patch("network", &params, &patch).await;
                Ok(rules(&client).get_opt("network").await?.is_none())
            })
            .await?;
        }
        eventually("its own taints are lifted", SOON, async || {
            let mut nodes = nodes(&client).await?;
            nodes.retain(|node| node.name_any() != "adopted");
            Ok(nodes
                .iter()
                .all(|node| count_taints(node, TAINT) == 0 && owners(node).is_empty()))
        })
        .await?;
        if while_down {
            never(
                "the other's taint goes",
                Duration::from_secs(1),
                async || Ok(!has_taint(&client, "adopted", TAINT).await?),
            )
            .await?;
        }
        for node in nodes(&client).await? {
            delete_node(&client, &node.name_any()).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_node_stays_closed_while_one_rule_takes_over_from_another() -> Result<()> {
    const COUNT: usize = 20;
    let _turn = TURNS.acquire().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let mut running = Some(Controller::start(&cluster, &[]).await?);
    network_rule("rule-0").create(&client).await?;
    eventually_eq("all nodes are gated", SOON, COUNT, async || {
        count_gated(&client).await
    })
    .await?;
    let witness = Witness::of_nodes(&client).await?;
    // Down, running, and running with some time in between.
    for (turn, (down, pause)) in [(true, 0), (false, 0), (false, 1500)]
        .into_iter()
        .enumerate()
    {
        if down && let Some(controller) = running.take() {
            controller.kill();
        }
        let (old, new) = (format!("rule-{turn}"), format!("rule-{}", turn + 1));
        network_rule(&new).create(&client).await?;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        delete_rule(&client, &old).await?;
        if down {
            running = Some(Controller::start(&cluster, &[]).await?);
        }
        eventually("the old rule is gone", SOON, async || {
            Ok(rules(&client).get_opt(&old).await?.is_none())
        })
        .await?;
        eventually_eq(
            "the new rule holds all nodes",
            SOON,
            json!([COUNT, "False"]),
            async || {
                let held = rule_status(&client, &new).await?["heldNodes"].take();
                let conflicted =
                    rule_condition(&client, &new, "Conflicted").await?["status"].take();
                Ok(json!([held, conflicted]))
            },
        )
        .await?;
        let uid = rules(&client).get(&new).await?.uid().unwrap_or_default();
        eventually("the new rule owns the taints", SOON, async || {
            let nodes = nodes(&client).await?;
            Ok(nodes
                .iter()
                .all(|node| owners(node) == [format!("{OWNER}{uid}")]))
        })
        .await?;
    }
    let seen = witness.up_to(&client, &name(COUNT - 1)).await?;
    for seen in seen.values().flatten() {
        assert_eq!(count_taints(seen, TAINT), 1, "{} was open", seen.name_any());
    }

    // The last rule has no heir.
    delete_rule(&client, "rule-3").await?;
    eventually_eq("all nodes are open", SOON, 0, async || {
        count_gated(&client).await
    })
    .await
}

#[tokio::test]
async fn nodes_that_join_during_warm_up_are_gated() -> Result<()> {
    const COUNT: usize = 200;
    let _turn = TURNS.acquire().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    network_rule("network").create(&client).await?;
    let joining = tokio::spawn({
        let client = client.clone();
        async move { create_nodes(&client, COUNT, "False").await }
    });
    let controller = Controller::start(&cluster, &[]).await?;
    joining.await??;
    eventually_eq("all nodes are gated", SOON, COUNT, async || {
        count_gated(&client).await
    })
    .await?;
    for index in 0..COUNT {
        remove_node_condition(&client, &name(index), CONDITION).await?;
    }
    never(
        "a node opens for want of a condition",
        Duration::from_secs(1),
        async || Ok(count_gated(&client).await? != COUNT),
    )
    .await?;
    drop(controller);
    Ok(())
}

/// A rule that closes nodes labelled `network` until their network is ready.
fn network_rule(name: &str) -> nodegate_testbed::fixtures::RuleBuilder {
    rule(name, TAINT)
        .waits_for(CONDITION)
        .selects("network", "yes")
}

fn name(index: usize) -> String {
    format!("node-{index:03}")
}

async fn create_nodes(client: &Client, count: usize, status: &str) -> Result<()> {
    create_nodes_from(client, 0..count, status).await
}

async fn create_nodes_from(
    client: &Client,
    indices: std::ops::Range<usize>,
    status: &str,
) -> Result<()> {
    for index in indices {
        node(&name(index))
            .label("network", "yes")
            .condition(CONDITION, status)
            .create(client)
            .await?;
    }
    Ok(())
}

/// How many nodes have the taint. A node that has it twice is an error.
async fn count_gated(client: &Client) -> Result<usize> {
    let mut gated = 0;
    for node in nodes(client).await? {
        let taints = count_taints(&node, TAINT);
        ensure!(
            taints <= 1,
            "{} has the taint {taints} times",
            node.name_any()
        );
        gated += taints;
    }
    Ok(gated)
}

/// The annotations that say who added a taint.
fn owners(node: &Node) -> Vec<String> {
    let keys = node.annotations().keys();
    keys.filter(|key| key.starts_with(OWNER)).cloned().collect()
}

async fn audited() -> Result<Cluster> {
    Cluster::start(Options {
        audit: true,
        ..Options::api_only()
    })
    .await
}

/// Waits until the controller has written nothing for two seconds.
async fn quiet(cluster: &Cluster) -> Result<()> {
    let mut last = (0, Instant::now());
    eventually("the controller comes to rest", SOON, async || {
        let writes = cluster.controllers_writes().len();
        if writes != last.0 {
            last = (writes, Instant::now());
        }
        Ok(last.1.elapsed() > Duration::from_secs(2))
    })
    .await
}
