//! Rules and nodes are created, changed and deleted while the controller is down or has just started.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use nodegate_suite::network::{
    CONDITION, OWNER, TAINT, count_gated, create_nodes, name, network_rule, owners,
};
use nodegate_suite::{PROMPTLY, turn};
use nodegate_testbed::changes::{delete_node, delete_rule, patch_rule, remove_node_condition};
use nodegate_testbed::fixtures::{node, rules};
use nodegate_testbed::sights::{count_taints, has_taint, nodes, rule_condition, rule_status};
use nodegate_testbed::{Cluster, Controller, Options, Witness, eventually, eventually_eq, never};
use serde_json::json;

#[tokio::test]
async fn the_taints_of_a_rule_whose_finalizer_was_forced_away_are_lifted() -> Result<()> {
    let _turn = turn().await?;
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
        eventually_eq("all nodes are gated", PROMPTLY, 6, async || {
            count_gated(&client).await
        })
        .await?;

        if while_down && let Some(controller) = running.take() {
            controller.kill();
        }
        // Both in one patch would be refused; people do it in this order.
        patch_rule(
            &client,
            "network",
            &json!({"metadata": {"finalizers": null}}),
        )
        .await?;
        delete_rule(&client, "network").await?;
        if while_down {
            // While it is down, nobody restores the finalizer.
            ensure!(rules(&client).get_opt("network").await?.is_none());
            running = Some(Controller::start(&cluster, &[]).await?);
        } else {
            // A running controller may have restored the finalizer: remove it again.
            eventually("the rule is gone", PROMPTLY, async || {
                let patch = json!({"metadata": {"finalizers": null}});
                let patch = Patch::Merge(&patch);
                let params = PatchParams::default();
                let _ = rules(&client).patch("network", &params, &patch).await;
                Ok(rules(&client).get_opt("network").await?.is_none())
            })
            .await?;
        }
        eventually("its own taints are lifted", PROMPTLY, async || {
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
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let mut running = Some(Controller::start(&cluster, &[]).await?);
    network_rule("rule-0").create(&client).await?;
    eventually_eq("all nodes are gated", PROMPTLY, COUNT, async || {
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
        eventually("the old rule is gone", PROMPTLY, async || {
            Ok(rules(&client).get_opt(&old).await?.is_none())
        })
        .await?;
        eventually_eq(
            "the new rule holds all nodes",
            PROMPTLY,
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
        eventually("the new rule owns the taints", PROMPTLY, async || {
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

    // No rule takes over from the last one.
    delete_rule(&client, "rule-3").await?;
    eventually_eq("all nodes are open", PROMPTLY, 0, async || {
        count_gated(&client).await
    })
    .await
}

/// Fault 253 of the Node Readiness Controller.
#[tokio::test]
async fn nodes_that_join_during_warm_up_are_gated() -> Result<()> {
    const COUNT: usize = 200;
    let _turn = turn().await?;
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
    eventually_eq("all nodes are gated", PROMPTLY, COUNT, async || {
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
