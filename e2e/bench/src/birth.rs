//! Nodes join among pending pods, with a real scheduler: how many pods are bound to a node before its gate is there, by whoever
//! closes it: the controller, the API server as it creates the node (`config/birth`), or that alone, with no controller.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use nodegate_testbed::fixtures::{node, pod};
use nodegate_testbed::install::config;
use nodegate_testbed::sights::has_taint;
use nodegate_testbed::{Cluster, Options, eventually};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::load::{self, AT_ONCE};
use crate::plan::Plan;
use crate::results::{Births, Early};
use crate::subject::{Recipe, Subject};
use crate::world::Gate;

/// So many pods wait for each node, and so many are the most that it takes.
const PODS_EACH: usize = 2;

/// Where the pods are that wait.
const NAMESPACE: &str = "default";

/// How long the controller or the API server may take to be ready for the first node.
const STARTUP: Duration = Duration::from_secs(60);

/// Longer than the scheduler takes to come to a pod again that it has put off.
const SCHEDULED: Duration = Duration::from_secs(11);

/// Who closes nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Controller,
    Both,
    Policy,
}

/// Measures all three, each with a cluster of its own.
///
/// # Errors
///
/// When it cannot be measured.
pub async fn measure(plan: &Plan, recipe: &Recipe, nodes: usize) -> Result<Births> {
    Ok(Births {
        nodes,
        pods: nodes * PODS_EACH,
        by_controller: early(plan, recipe, nodes, By::Controller).await?,
        by_both: early(plan, recipe, nodes, By::Both).await?,
        by_policy: early(plan, recipe, nodes, By::Policy).await?,
    })
}

/// Has so many nodes join, closed by these.
async fn early(plan: &Plan, recipe: &Recipe, nodes: usize, by: By) -> Result<Early> {
    let options = Options {
        scheduler: true,
        ..Options::api_only()
    };
    let cluster = Cluster::start(options).await?;
    cluster.install().await?;
    recipe.permit(&cluster).await?;
    let client = cluster.client().await?;
    if by != By::Controller {
        let folder = config("birth").to_string_lossy().into_owned();
        cluster.kubectl(&["apply", "-k", &folder]).await?;
    }
    let rule = Gate::Agent.rule().bootstrap_only();
    let rule = if by == By::Policy {
        // As the controller has left it, before it ended.
        rule.finalizer("readiness.node.x-k8s.io/cleanup-taints")
    } else {
        rule
    };
    rule.create(&client).await?;
    let subject = if by == By::Policy {
        None
    } else {
        Some(Subject::start(&cluster, recipe, None).await?)
    };
    until_ready(&client, by).await?;
    let pods = (0..nodes * PODS_EACH).map(|number| format!("waits-{number:05}"));
    load::each(AT_ONCE, pods, async |name| {
        wait_for_a_node(&client, &name).await
    })
    .await?;
    join(&client, plan, nodes).await?;
    sleep(SCHEDULED).await;
    let early = count(&client, nodes).await?;
    if let Some(subject) = subject {
        subject.stop().await?;
    }
    Ok(early)
}

/// Waits until nodes are closed. The node by which that is seen takes no pods.
async fn until_ready(client: &Client, by: By) -> Result<()> {
    if by != By::Controller {
        let only_try = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        eventually("the policy is in force", STARTUP, async || {
            let nodes: Api<Node> = Api::all(client.clone());
            let tried = nodes.create(&only_try, &node("tried").build()).await?;
            let taints = tried.spec.and_then(|spec| spec.taints).unwrap_or_default();
            Ok(taints.iter().any(|taint| taint.key == Gate::Agent.key()))
        })
        .await?;
    }
    node("first").create(client).await?;
    eventually("the first node is closed", STARTUP, async || {
        has_taint(client, "first", Gate::Agent.key()).await
    })
    .await
}

/// A pod that tolerates what every node is born with, and not the rule's taint: it is bound as soon as a node has room.
async fn wait_for_a_node(client: &Client, name: &str) -> Result<()> {
    pod(&format!("{NAMESPACE}/{name}"))
        .tolerate("node.kubernetes.io/not-ready", "NoSchedule")
        .create(client)
        .await?;
    Ok(())
}

/// Nodes register, so many a second, none of them ready.
async fn join(client: &Client, plan: &Plan, nodes: usize) -> Result<()> {
    let mut ticks = interval(Duration::from_secs(1) / plan.joins_per_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let began = Instant::now();
    for number in 0..nodes {
        ticks.tick().await;
        let mut node = node(&format!("joins-{number:05}"));
        for (resource, amount) in [
            ("cpu", "8"),
            ("memory", "32Gi"),
            ("pods", &PODS_EACH.to_string()),
        ] {
            node = node.allocatable(resource, amount);
        }
        node.create(client).await?;
        ensure!(
            began.elapsed() < plan.patience,
            "nodes take too long to join"
        );
    }
    Ok(())
}

/// No node ever gets ready: what is bound was so before the gate was there, or before the scheduler knew of it.
async fn count(client: &Client, nodes: usize) -> Result<Early> {
    let all: Api<Node> = Api::all(client.clone());
    let closed = all.list(&ListParams::default()).await?;
    let is_closed = |node: &&Node| {
        let taints = node
            .spec
            .iter()
            .flat_map(|spec| spec.taints.iter().flatten());
        taints
            .filter(|taint| taint.key == Gate::Agent.key())
            .count()
            == 1
    };
    let closed = closed.iter().filter(is_closed).count();
    // And the first one.
    ensure!(
        closed == nodes + 1,
        "{closed} nodes are closed, not {}",
        nodes + 1
    );
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let pods = pods.list(&ListParams::default()).await?;
    let bound = pods
        .iter()
        .filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref());
    let bound: Vec<&str> = bound.collect();
    Ok(Early {
        pods: bound.len(),
        nodes: bound.iter().collect::<BTreeSet<_>>().len(),
    })
}
