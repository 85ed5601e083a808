//! The story, step by step. Each step waits for what it announces.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};

use super::cast::{
    BOOTSTRAP, CONTINUOUS, DAEMON_SETS, NAMESPACE, PODS_PER_NODE, RULES, WORKLOADS, workload,
};
use super::record::NodeRecord;
use super::report::{checks, summary};
use super::world::World;
use super::{Show, kubelet};
use crate::stage::{Moment, ask, count, latency};
use nodegate_testbed::Cluster;
use nodegate_testbed::Controller;
use nodegate_testbed::changes::set_pod_ready;
use nodegate_testbed::controller::binary;
use nodegate_testbed::fixtures;

/// The delay between joining nodes.
const BETWEEN_NODES: Duration = Duration::from_millis(1300);

/// The time from a node's registration to Ready.
const NODE_READY_AFTER: Duration = Duration::from_millis(1500);

/// A pause for the viewer.
const A_LOOK: Duration = Duration::from_millis(2500);

/// The measured times of the story.
#[derive(Debug)]
pub(super) struct Ending {
    /// The number of joined nodes.
    pub nodes: usize,
    /// The node whose CNI pod broke.
    pub broken: String,
    /// From the request that broke the pod to the observed taint.
    pub gating: Duration,
    /// The command line's explanation in the meantime.
    pub explained: String,
    /// From the request that made the pod Ready to the observed removal.
    pub release: Duration,
}

/// Installs Nodegate in the cluster, lets this many nodes join, and breaks and repairs one. Leaves the controller in
/// `controller`, for its log and its end. Returns whether all promises were kept.
///
/// # Errors
///
/// When something does not happen in time; the message says what.
pub async fn tell(
    show: &Show,
    cluster: &Cluster,
    controller: &mut Option<Controller>,
    nodes: usize,
) -> Result<bool> {
    let client = cluster.client().await?;
    let steps = Box::pin(async {
        prepare(show, cluster, controller, nodes).await?;
        join(show, &client, nodes).await?;
        break_and_mend(show, cluster, &client, nodes).await
    });
    let nodes = Api::<Node>::all(client.clone());
    let pods = Api::<Pod>::all(client.clone());
    let watches = Box::pin(async {
        tokio::try_join!(
            show.watch(nodes, World::see_node, |_, _| {}),
            show.watch(pods, |world, pod, _| world.see_pod(pod), World::see_pod_go),
            kubelet::register_drivers(show, &client),
        )
        .map(drop)
    });
    let ending = show.tell(steps, watches).await?;
    let checks = checks(&show.world().borrow(), &ending);
    let all_happened = show.end(&checks, summary)?;
    println!(
        "\nWhile {} was held:\n\n{}",
        ending.broken, ending.explained
    );
    let page = binary()?.with_file_name("demo-report.html");
    let page = page.to_string_lossy();
    println!(
        "{}",
        ask(cluster, &["report", "--output-file", &page]).await?
    );
    Ok(all_happened)
}

async fn prepare(
    show: &Show,
    cluster: &Cluster,
    controller: &mut Option<Controller>,
    nodes: usize,
) -> Result<()> {
    *controller = Some(Controller::start(cluster, &[]).await?);
    show.say("Nodegate runs, as its own service account. Its two rules:")?;
    cluster.apply(RULES).await.context("applying the rules")?;
    show.show_manifest(RULES)?;
    cluster
        .apply(DAEMON_SETS)
        .await
        .context("applying the DaemonSets")?;
    cluster
        .apply(&workload(WORKLOADS[0], nodes))
        .await
        .context("applying the workload")?;
    let pods = nodes * PODS_PER_NODE;
    show.until("the workload's pods are there", |world| {
        world.workload.len() == pods
    })
    .await?;
    show.say(&format!(
        "Critical DaemonSets: a CNI, and a CSI driver whose pods say that the node must have it registered. \
         A workload of {} waits for nodes.",
        count(pods, "pod")
    ))
}

async fn join(show: &Show, client: &Client, nodes: usize) -> Result<()> {
    show.say(&format!(
        "{} join, registering with the taint of rule {}.",
        count(nodes, "node"),
        BOOTSTRAP.rule
    ))?;
    for number in 1..=nodes {
        fixtures::node(&name(number, nodes))
            .taint(BOOTSTRAP.taint, "NoSchedule")
            .ready_after(NODE_READY_AFTER)
            .create(client)
            .await?;
        if number < nodes {
            tokio::time::sleep(BETWEEN_NODES).await;
        }
    }
    show.until("every node is released", |world| {
        world.nodes.len() == nodes && world.released_nodes() == nodes
    })
    .await?;
    let pods = nodes * PODS_PER_NODE;
    show.until("the workload runs", |world| world.running() == pods)
        .await?;
    show.say("Every node is released, and the workload runs.")?;
    tokio::time::sleep(A_LOOK).await;
    Ok(())
}

async fn break_and_mend(
    show: &Show,
    cluster: &Cluster,
    client: &Client,
    nodes: usize,
) -> Result<Ending> {
    let broken = name(nodes.div_ceil(2), nodes);
    let cni_pod = look_at(show, &broken, |node| node.cni_pod.clone())
        .with_context(|| format!("{broken} has no CNI pod"))?;
    let released_or_held = |gated: bool| {
        let broken = broken.clone();
        move |world: &World| {
            let node = world.nodes.get(&broken);
            node.is_some_and(|node| node.is_held() == gated)
        }
    };

    show.say(&format!("The CNI pod of {broken} breaks."))?;
    let cause = show.now();
    set_pod_ready(client, NAMESPACE, &cni_pod, false).await?;
    show.until(&format!("{broken} is gated"), released_or_held(true))
        .await?;
    let gated = look_at(show, &broken, |node| {
        Some(node.gatings.last()?.period.gated)
    });
    let gating = since(cause, gated);
    let first = nodes * PODS_PER_NODE;
    show.say(&format!(
        "Rule {} gated it {} later. Its pods are left alone. Now another workload of {} comes.",
        CONTINUOUS.rule,
        latency(gating),
        count(first, "pod")
    ))?;
    let all = first * WORKLOADS.len();
    cluster
        .apply(&workload(WORKLOADS[1], nodes))
        .await
        .context("applying the second workload")?;
    // The held node's share stays pending.
    show.until("the released nodes have taken their share", |world| {
        world.workload.len() == all && world.running() == all - PODS_PER_NODE
    })
    .await?;
    show.say(&format!(
        "Each released node took its share, and {} wait for {broken}.",
        count(PODS_PER_NODE, "pod")
    ))?;
    let explained = ask(cluster, &["explain", &format!("node/{broken}")]).await?;
    tokio::time::sleep(A_LOOK * 2).await;

    show.say("The CNI pod is Ready again.")?;
    let cause = show.now();
    set_pod_ready(client, NAMESPACE, &cni_pod, true).await?;
    show.until(&format!("{broken} is released"), released_or_held(false))
        .await?;
    let released = look_at(show, &broken, |node| node.gatings.last()?.period.released);
    let release = since(cause, released);
    show.until("the whole workload runs", |world| world.running() == all)
        .await?;
    show.say(&format!(
        "{broken} was released {} later, and the pods that waited went there.",
        latency(release)
    ))?;
    tokio::time::sleep(A_LOOK).await;
    Ok(Ending {
        nodes,
        broken,
        gating,
        explained,
        release,
    })
}

fn look_at<T>(show: &Show, node: &str, look: impl Fn(&NodeRecord) -> Option<T>) -> Option<T> {
    show.world().borrow().nodes.get(node).and_then(look)
}

fn since(cause: Duration, effect: Option<Moment>) -> Duration {
    effect.map_or(Duration::ZERO, |moment| moment.at.saturating_sub(cause))
}

/// The name of a node, padded so that alphabetical order is numerical order.
fn name(number: usize, nodes: usize) -> String {
    let digits = nodes.to_string().len();
    format!("node-{number:0digits$}")
}
