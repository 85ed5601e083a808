//! Others write the same nodes at the same time, or recreate them. No taint gets lost, and every node ends in the right state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use nodegate_suite::PROMPTLY;
use nodegate_suite::network::{CONDITION, TAINT, create_node, name, network_rule, owners};
use nodegate_testbed::changes::{delete_node, set_node_condition};
use nodegate_testbed::sights::{count_taints, node as read_node, nodes, rule_status};
use nodegate_testbed::{Cluster, Controller, Options, Witness, eventually_eq, never};
use serde_json::{Value, json};

const THEIRS: &str = "example.com/theirs";

/// Faults 180 and 292 of the Node Readiness Controller.
#[tokio::test]
async fn two_controllers_that_write_a_nodes_taints_lose_none() -> Result<()> {
    const COUNT: usize = 4;
    const FLIPS: usize = 60;
    let (cluster, _controller) = start().await?;
    let client = cluster.client().await?;
    for index in 0..COUNT {
        create_node(&client, &name(index), "False").await?;
    }
    let witness = Witness::of_nodes(&client).await?;
    let going = Arc::new(AtomicBool::new(true));
    let writes = Arc::new(AtomicUsize::new(0));
    let mut others = Vec::new();
    for index in 0..COUNT {
        let other = compete(client.clone(), name(index), going.clone(), writes.clone());
        others.push(tokio::spawn(other));
    }
    for flip in 0..FLIPS {
        // Each node in turn, first met and then unmet.
        let met = (flip / COUNT).is_multiple_of(2);
        let status = if met { "True" } else { "False" };
        set_node_condition(&client, &name(flip % COUNT), CONDITION, status).await?;
    }
    for index in 0..COUNT {
        let status = if index % 2 == 0 { "True" } else { "False" };
        set_node_condition(&client, &name(index), CONDITION, status).await?;
    }
    let expected: Vec<usize> = (0..COUNT).map(|index| index % 2).collect();
    let gated = async || {
        let nodes = nodes(&client).await?;
        Ok(nodes.iter().map(|node| count_taints(node, TAINT)).collect())
    };
    eventually_eq(
        "right in the midst of it",
        PROMPTLY,
        expected.clone(),
        gated,
    )
    .await?;
    going.store(false, Ordering::Relaxed);
    for other in others {
        other.await??;
    }
    println!(
        "{} writes of the other controller",
        writes.load(Ordering::Relaxed)
    );
    ensure!(
        writes.load(Ordering::Relaxed) > 5 * COUNT,
        "too little of a competition"
    );
    eventually_eq("right in the end", PROMPTLY, expected, gated).await?;
    for index in 0..COUNT {
        let seen = witness.up_to(&client, &name(index)).await?;
        let seen = seen.get(&name(index)).context("a node that was not seen")?;
        check_history(seen)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_node_re_created_under_its_name_gets_nothing_that_was_meant_for_the_earlier_one()
-> Result<()> {
    const TURNOVERS: usize = 30;
    let (cluster, _controller) = start().await?;
    let client = cluster.client().await?;
    let nodes: Api<Node> = Api::all(client.clone());
    let witness = Witness::of_nodes(&client).await?;
    for turn in 0..TURNOVERS {
        // The first node is deleted while the controller is about to close or open it, or just after.
        create_node(&client, "phoenix", "False").await?;
        tokio::time::sleep(Duration::from_millis(turn as u64 % 8)).await;
        if turn % 3 == 0 {
            set_node_condition(&client, "phoenix", CONDITION, "True").await?;
        }
        delete_node(&client, "phoenix").await?;
        let ready = turn % 2 == 0;
        create_node(&client, "phoenix", if ready { "True" } else { "False" }).await?;
        let expected = (usize::from(!ready), usize::from(!ready));
        let state = async || {
            let node = nodes.get("phoenix").await?;
            Ok((count_taints(&node, TAINT), owners(&node).len()))
        };
        eventually_eq(
            "the later one is as it should be",
            PROMPTLY,
            expected,
            state,
        )
        .await?;
        never("it changes", Duration::from_millis(100), async || {
            Ok(state().await? != expected)
        })
        .await?;
        if ready {
            let uid = nodes.get("phoenix").await?.uid();
            let seen = witness.up_to(&client, "phoenix").await?;
            let mut seen = seen.values().flatten().filter(|node| node.uid() == uid);
            ensure!(
                seen.all(|node| count_taints(node, TAINT) == 0),
                "turn {turn}: a ready node got a taint"
            );
        }
        delete_node(&client, "phoenix").await?;
    }
    eventually_eq(
        "the rule forgets it",
        PROMPTLY,
        json!([0, 0, Value::Null]),
        async || {
            let status = rule_status(&client, "network").await?;
            Ok(json!([
                status["nodegate"]["matchedNodes"],
                status["nodegate"]["failedNodeCount"],
                status["failedNodes"]
            ]))
        },
    )
    .await
}

/// A cluster with a controller, and a rule that waits for the network.
async fn start() -> Result<(Cluster, Controller)> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let controller = Controller::start(&cluster, &[]).await?;
    network_rule("network")
        .create(&cluster.client().await?)
        .await?;
    Ok((cluster, controller))
}

/// Another controller: it adds its taint to the node and removes it again, each time by writing the whole node with the version
/// that it read. In the end its taint stays.
async fn compete(
    client: Client,
    name: String,
    going: Arc<AtomicBool>,
    writes: Arc<AtomicUsize>,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut add = true;
    while going.load(Ordering::Relaxed) || !add {
        let mut node = read_node(&client, &name).await?;
        let taints = node
            .spec
            .get_or_insert_default()
            .taints
            .get_or_insert_default();
        let is_there = taints.iter().any(|taint| taint.key == THEIRS);
        ensure!(
            is_there != add,
            "somebody else changed the other controller's taint"
        );
        if add {
            taints.push(Taint {
                key: THEIRS.to_owned(),
                effect: "NoSchedule".to_owned(),
                ..Taint::default()
            });
        } else {
            taints.retain(|taint| taint.key != THEIRS);
        }
        node.metadata.managed_fields = None;
        let sequence = writes.load(Ordering::Relaxed).to_string();
        node.annotations_mut().insert(THEIRS.to_owned(), sequence);
        match nodes.replace(&name, &PostParams::default(), &node).await {
            Ok(_) => {
                writes.fetch_add(1, Ordering::Relaxed);
                add = !add;
            }
            // Nodegate or a reporter was first.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
        // About the speed of a busy controller; without a pause nobody else could write.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Checks that each write changed only its own writer's taint, and that ownership follows our taint.
fn check_history(seen: &[Node]) -> Result<()> {
    for pair in seen.windows(2) {
        let changed = |key: &str| count_taints(&pair[0], key) != count_taints(&pair[1], key);
        let both = changed(TAINT) && changed(THEIRS);
        ensure!(!both, "one write changed the taints of both: {pair:#?}");
        for key in [TAINT, THEIRS] {
            ensure!(count_taints(&pair[1], key) <= 1, "twice: {:#?}", pair[1]);
        }
        ensure!(
            owners(&pair[1]).len() == count_taints(&pair[1], TAINT),
            "taint and ownership differ: {:#?}",
            pair[1]
        );
    }
    Ok(())
}
