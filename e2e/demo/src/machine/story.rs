//! The story, step by step. Each step waits for what it announces.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::{Api, Client};
use kube_realnode::RealNode;
use kube_realnode::components::{self, create, create_workload, driver, network};
use kube_realnode::node::Setup;
use nodegate_testbed::fixtures::daemon_set;
use nodegate_testbed::{Cluster, Controller};

use super::Show;
use super::cast::{CNI, CSI, DRIVER, GATE, JOINING, NETWORK, RULES, WORKLOAD};
use super::report::{Ending, checks, summary};
use super::world::World;
use crate::stage::latency;

/// A pause for the viewer.
const A_LOOK: Duration = Duration::from_millis(2500);

/// Installs Nodegate in the cluster, starts a node, kills its network and reboots it. Returns whether all promises were kept.
///
/// # Errors
///
/// When something does not happen in time; the message says what.
pub async fn tell(
    show: &Show,
    cluster: &Cluster,
    controller: &mut Option<Controller>,
) -> Result<bool> {
    let client = cluster.client().await?;
    let steps = Box::pin(async {
        *controller = Some(Controller::start(cluster, &[]).await?);
        let mut node = prepare(show, cluster, &client).await?;
        join(show, &mut node).await?;
        let closing = lose_network(show, &node).await?;
        let reboot = reboot(show, &mut node).await?;
        anyhow::Ok(Ending { closing, reboot })
    });
    let watches = Box::pin(async {
        tokio::try_join!(
            show.watch(Api::<Node>::all(client.clone()), World::see_node, |_, _| {}),
            show.watch(
                Api::<Pod>::all(client.clone()),
                |world, pod, _| world.see_pod(pod),
                World::see_pod_go,
            ),
            show.watch(
                Api::<CSINode>::all(client.clone()),
                |world, node, _| world.see_drivers(node),
                |_, _| {},
            ),
            show.watch(
                Api::<Event>::all(client.clone()),
                |world, event, _| world.see_event(event),
                |_, _| {},
            ),
        )
        .map(drop)
    });
    let ending = show.tell(steps, watches).await?;
    let checks = checks(&show.world().borrow(), &ending);
    show.end(&checks, summary)
}

async fn prepare(show: &Show, cluster: &Cluster, client: &Client) -> Result<RealNode> {
    show.say("Nodegate runs. Its two rules:")?;
    cluster.apply(RULES).await.context("applying the rules")?;
    show.show_manifest(RULES)?;
    let critical = |name: &str| {
        let set = daemon_set(&format!("kube-system/{name}"));
        set.critical().tolerate_everything()
    };
    create(client, &network(critical(CNI).build())?).await?;
    let csi = critical(CSI).wait_for_csi_driver("disk", DRIVER);
    create(client, &driver(csi.build(), DRIVER)?).await?;
    create_workload(client, WORKLOAD.0, WORKLOAD.1).await?;
    show.say(
        "A CNI and a CSI driver are critical, and a workload waits for a node. containerd starts.",
    )?;
    let setup = Setup::default().taint(&format!("{GATE}{JOINING}"), "NoSchedule");
    RealNode::prepare(cluster, setup).await
}

async fn join(show: &Show, node: &mut RealNode) -> Result<()> {
    show.say(&format!(
        "The kubelet starts, and registers its node with the taint of rule {JOINING}."
    ))?;
    node.start_kubelet()?;
    show.until("the node is there", |world| world.registered)
        .await?;
    show.until("the network is Ready", |world| {
        world.network_ready.is_some()
    })
    .await?;
    show.until("the driver is registered", |world| world.driver.is_some())
        .await?;
    show.until("the node is open", World::is_open).await?;
    all_run(show).await?;
    show.say("The node is open, and the workload runs.")?;
    tokio::time::sleep(A_LOOK).await;
    Ok(())
}

async fn lose_network(show: &Show, node: &RealNode) -> Result<Duration> {
    show.say(
        "The network's process is killed. The kubelet starts it again at once, within the rule's grace period.",
    )?;
    node.kill(components::NETWORK)?;
    show.until("it has been started again", |world| {
        world.of(CNI).any(|pod| pod.restarts == 1 && pod.ready)
    })
    .await?;
    tokio::time::sleep(A_LOOK).await;
    show.say("It is killed again. This time the kubelet lets it wait, for longer than that.")?;
    let cause = show.now();
    node.kill(components::NETWORK)?;
    show.until("the node closes", |world| world.is_closed_by(NETWORK))
        .await?;
    let closing = show.now().saturating_sub(cause);
    show.say(&format!(
        "Rule {NETWORK} closed the node {} later. Its pods are left alone.",
        latency(closing)
    ))?;
    show.until("the node is open", World::is_open).await?;
    show.say("The network is back, and the node open.")?;
    tokio::time::sleep(A_LOOK).await;
    Ok(closing)
}

async fn reboot(show: &Show, node: &mut RealNode) -> Result<Duration> {
    show.say("The power is cut: kubelet, containerd and every process of every pod are gone.")?;
    node.go_down()?;
    tokio::time::sleep(A_LOOK).await;
    show.say("It is back. The kubelet finds its node registered, without a taint.")?;
    let cause = show.now();
    node.come_up().await?;
    show.until("the kubelet tells of the reboot", |world| world.rebooted)
        .await?;
    show.until("the node closes", |world| {
        let of_rule = world.gatings.iter().filter(|gating| gating.rule == JOINING);
        of_rule.count() == 2
    })
    .await?;
    show.until("the node is open", World::is_open).await?;
    let took = show.now().saturating_sub(cause);
    all_run(show).await?;
    show.say(&format!(
        "Rule {JOINING} closed it again until its pods were back: open {} after the power was.",
        latency(took)
    ))?;
    tokio::time::sleep(A_LOOK).await;
    Ok(took)
}

async fn all_run(show: &Show) -> Result<()> {
    let wanted = WORKLOAD.1 as usize;
    show.until("the workload runs", |world| world.running() == wanted)
        .await
}
