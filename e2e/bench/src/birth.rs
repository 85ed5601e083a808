//! Nodes join while pods are pending, with a real scheduler. Counts the pods that are bound to a node before it is closed by
//! the controller, by the API server as it creates the node (`config/birth`), or by the API server without a controller.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use nodegate_testbed::fixtures::{node, pod};
use nodegate_testbed::install::config;
use nodegate_testbed::sights::{self, has_taint};
use nodegate_testbed::{Cluster, Options, eventually};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::load::{self, AT_ONCE};
use crate::plan::Plan;
use crate::results::{Births, Early};
use crate::subject::{Recipe, Subject};
use crate::world::Gate;

/// The number of pending pods per node, and the most that a node takes.
const PODS_EACH: usize = 2;

/// The namespace of the pending pods.
const NAMESPACE: &str = "default";

/// How long the controller or the API server may take until it closes nodes.
const STARTUP: Duration = Duration::from_secs(60);

/// Longer than the scheduler's back-off for a pod.
const SCHEDULED: Duration = Duration::from_secs(11);

/// What closes nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Controller,
    Both,
    Policy,
}

/// Measures all three, each in its own cluster.
///
/// # Errors
///
/// When it cannot be measured.
pub(crate) async fn measure(plan: &Plan, recipe: &Recipe, nodes: usize) -> Result<Births> {
    Ok(Births {
        nodes,
        pods: nodes * PODS_EACH,
        by_controller: early(plan, recipe, nodes, By::Controller).await?,
        by_both: early(plan, recipe, nodes, By::Both).await?,
        by_policy: early(plan, recipe, nodes, By::Policy).await?,
    })
}

/// Lets this many nodes join, closed by `by`.
async fn early(plan: &Plan, recipe: &Recipe, nodes: usize, by: By) -> Result<Early> {
    let options = Options {
        scheduler: true,
        reuse: false,
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
        // As a controller leaves it when it ends.
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
    cluster.idles();
    sleep(SCHEDULED).await;
    let early = count(&client, nodes).await?;
    if let Some(subject) = subject {
        subject.stop().await?;
    }
    Ok(early)
}

/// Waits until nodes are closed. The node that shows it takes no pods.
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

/// A pod that tolerates the initial taints of every node, but not the rule's: it is bound as soon as a node has room.
async fn wait_for_a_node(client: &Client, name: &str) -> Result<()> {
    pod(&format!("{NAMESPACE}/{name}"))
        .tolerate("node.kubernetes.io/not-ready", "NoSchedule")
        .create(client)
        .await?;
    Ok(())
}

/// Registers nodes at the plan's rate, none of them Ready.
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

/// Counts the early pods. No node ever becomes Ready, so every bound pod was bound before the gate, or before the scheduler
/// observed it.
async fn count(client: &Client, nodes: usize) -> Result<Early> {
    let all: Api<Node> = Api::all(client.clone());
    let closed = all.list(&ListParams::default()).await?;
    let is_closed = |node: &&Node| sights::count_taints(node, Gate::Agent.key()) == 1;
    let closed = closed.iter().filter(is_closed).count();
    // Including the first one.
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
