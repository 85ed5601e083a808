//! The story, step by step. Each step waits for what it announces.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use super::Show;
use super::cast::{CONDITION, LIMITED, RULES, UNLIMITED, ZONES, healthy_node, name};
use super::report::{Ending, checks, summary};
use super::world::{Limited, NodeRecord, World};
use crate::stage::{Moment, count};
use nodegate_testbed::Cluster;
use nodegate_testbed::Controller;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::rules;

/// The delay between failing nodes of the first zone.
const BETWEEN_NODES: Duration = Duration::from_millis(200);

/// The delay between nodes that fail or recover in several zones.
const BETWEEN_ALL: Duration = Duration::from_millis(80);

/// How many nodes of the first zone are closed despite the limit before the other zones fail.
const CLOSED_FIRST: usize = 3;

/// How long nothing may be closed while every zone is disrupted: enough for several nodes at the rule's rate.
const HALT: Duration = Duration::from_secs(8);

/// A pause for the viewer.
const A_LOOK: Duration = Duration::from_secs(2);

/// Installs Nodegate in the cluster, registers this many nodes in each zone, and breaks and repairs their conditions. Leaves
/// the controller in `controller`, for its log and its end. Returns whether all promises were kept.
///
/// # Errors
///
/// When something does not happen in time; the message says what.
pub async fn tell(
    show: &Show,
    cluster: &Cluster,
    controller: &mut Option<Controller>,
    nodes_per_zone: usize,
) -> Result<bool> {
    let client = cluster.client().await?;
    let steps = Box::pin(async {
        prepare(show, cluster, &client, controller, nodes_per_zone).await?;
        one_node(show, &client).await?;
        outage(show, &client, nodes_per_zone).await
    });
    let nodes = Api::<Node>::all(client.clone());
    // The CRD is installed before the controller starts; until then this watch retries.
    let rules = rules(&client);
    let watches = Box::pin(async {
        tokio::try_join!(
            show.watch(nodes, World::see_node, |_, _| {}),
            show.watch(rules, World::see_rule, |_, _| {}),
        )
        .map(drop)
    });
    let ending = show.tell(steps, watches).await?;
    let checks = checks(&show.world().borrow(), &ending);
    show.end(&checks, summary)
}

async fn prepare(
    show: &Show,
    cluster: &Cluster,
    client: &Client,
    controller: &mut Option<Controller>,
    nodes_per_zone: usize,
) -> Result<()> {
    *controller = Some(Controller::start(cluster, &[]).await?);
    show.say(
        "Nodegate runs, as its own service account. Its two rules differ in one field, disruption:",
    )?;
    cluster.apply(RULES).await.context("applying the rules")?;
    show.show_manifest(RULES)?;
    for number in 1..=nodes_per_zone {
        for zone in ZONES {
            healthy_node(zone, number).create(client).await?;
        }
    }
    let nodes = nodes_per_zone * ZONES.len();
    show.until("both rules have seen every node open", |world| {
        let has_seen = |matched, held| matched == nodes as u64 && held == 0;
        world.nodes.len() == nodes
            && has_seen(world.limited.matched, world.limited.held)
            && has_seen(world.unlimited.matched, world.unlimited.held)
    })
    .await?;
    show.say(&format!(
        "{} in {} zones are open: an agent on each reports {CONDITION}, and it is True.",
        count(nodes, "node"),
        ZONES.len()
    ))?;
    tokio::time::sleep(A_LOOK).await;
    Ok(())
}

async fn one_node(show: &Show, client: &Client) -> Result<()> {
    let broken = name(ZONES[1], 1);
    let closed_by_both = |closed: bool| {
        let broken = broken.clone();
        move |world: &World| {
            let node = world.nodes.get(&broken);
            node.is_some_and(|node| node.closed == closed && node.closed_unlimited == closed)
        }
    };
    show.say(&format!(
        "The network of {broken} breaks: one node is closed at once, by either rule."
    ))?;
    set_node_condition(client, &broken, CONDITION, "False").await?;
    show.until("both rules close it", closed_by_both(true))
        .await?;
    tokio::time::sleep(A_LOOK).await;
    set_node_condition(client, &broken, CONDITION, "True").await?;
    show.until("both rules open it", closed_by_both(false))
        .await
}

async fn outage(show: &Show, client: &Client, nodes_per_zone: usize) -> Result<Ending> {
    let nodes = nodes_per_zone * ZONES.len();
    let [first, others @ ..] = ZONES;
    show.say(&format!(
        "A bad release of the agent reaches zone {first}, node after node: it reports False, and the nodes are fine."
    ))?;
    let first_broken = show.now();
    for number in 1..=nodes_per_zone {
        set_node_condition(client, &name(first, number), CONDITION, "False").await?;
        tokio::time::sleep(BETWEEN_NODES).await;
    }
    show.until(
        "the zone is closed without a limit, and not with it",
        |world| {
            let closed = |is_so: fn(&NodeRecord) -> bool| {
                world.of_zone(first).filter(|node| is_so(node)).count()
            };
            closed(|node| node.closed_unlimited) == nodes_per_zone
                && closed(|node| node.closed) >= CLOSED_FIRST
                && closed(NodeRecord::waits) > 0
        },
    )
    .await?;
    show.say(&format!(
        "Rule {UNLIMITED} closed the zone as fast as the conditions turned. Rule {LIMITED} closed a node at a time, none \
         while most of the zone was out, and goes on slowly now that all of it is: a whole zone may really be down, and \
         others have room."
    ))?;
    show.keep_picture()?;
    tokio::time::sleep(A_LOOK).await;

    show.say("The release reaches the other zones. Some agents say Unknown.")?;
    let others_broken = show.now();
    for number in 1..=nodes_per_zone {
        for zone in others {
            let status = if number % 2 == 0 { "Unknown" } else { "False" };
            set_node_condition(client, &name(zone, number), CONDITION, status).await?;
            tokio::time::sleep(BETWEEN_ALL).await;
        }
    }
    show.until(
        "every node is closed without a limit, and the rule with one says that it stops",
        |world| {
            let limited = world.limited.limited.as_ref();
            world.count(|node| node.closed_unlimited) == nodes
                && limited.is_some_and(Limited::is_halt)
        },
    )
    .await?;
    let (halted, since) = (last_halt(show)?, show.now());
    show.say(&format!(
        "That every node of every zone broke is less likely than that whoever reports on them did: rule {LIMITED} closes \
         nothing more. There is still room for pods."
    ))?;
    show.keep_picture()?;
    tokio::time::sleep(HALT).await;
    let waited = show.world().borrow().count(NodeRecord::waits);
    let halt = show.now().saturating_sub(since);
    show.say("The release is rolled back.")?;
    mend(show, client, nodes_per_zone).await?;
    Ok(Ending {
        nodes,
        broken: [first_broken, others_broken, others_broken],
        halted,
        halt,
        waited,
    })
}

fn last_halt(show: &Show) -> Result<Moment> {
    let halted = show.world().borrow().limited.halted;
    halted.context("the rule never said that every zone is disrupted")
}

async fn mend(show: &Show, client: &Client, nodes_per_zone: usize) -> Result<()> {
    for number in 1..=nodes_per_zone {
        for zone in ZONES {
            set_node_condition(client, &name(zone, number), CONDITION, "True").await?;
            tokio::time::sleep(BETWEEN_ALL).await;
        }
    }
    show.until(
        "every node is open, and none is held back any more",
        |world| {
            let limited = world.limited.limited.as_ref();
            world.count(|node| node.closed || node.closed_unlimited) == 0
                && limited.is_some_and(|limited| !limited.holds_back)
        },
    )
    .await?;
    show.say("Every node is open again, at once: lifting taints is never limited.")?;
    show.keep_picture()?;
    tokio::time::sleep(A_LOOK).await;
    Ok(())
}
