//! One burst of pods in its own cluster: a real control plane with scheduler and node lifecycle, a real Karpenter, and kwok as
//! the kubelets of its nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use nodegate_testbed::fixtures::{daemon_set, kwok_node_class, node_claims, node_pool, pod};
use nodegate_testbed::karpenter::Karpenter;
use nodegate_testbed::sights::is_ready;
use nodegate_testbed::{Cluster, Controller, ControllerManager, Options};
use tokio::time::{Instant, sleep};

use super::{Burst, Run, Seen, Setup};
use crate::load::{self, AT_ONCE};

/// The critical component, by the name that rules use.
pub(super) const COMPONENT: &str = "kube-system.agent";

/// How long a set-up may take to become effective.
pub(super) const STARTUP: Duration = Duration::from_secs(60);

/// The interval of polls.
const POLL: Duration = Duration::from_millis(100);

/// Longer than Karpenter takes from an unschedulable pod to a claim, with its batch window of a second.
const SETTLED: Duration = Duration::from_secs(8);

/// The timeout for the last pod.
const PATIENCE: Duration = Duration::from_secs(300);

/// Heartbeats come well within the node's grace period.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Measures one burst.
///
/// # Errors
///
/// When something does not start, or pods do not run in time.
pub async fn run(burst: &Burst, setup: Setup) -> Result<Run> {
    let options = Options {
        controller_manager: ControllerManager::Complete,
        kwok: Some(HEARTBEAT),
        ..Options::full()
    };
    let cluster = Cluster::start(options).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    let _karpenter = Karpenter::start(&cluster, &[]).await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    daemon_set(&COMPONENT.replacen('.', "/", 1))
        .tolerate_everything()
        .ready_after(Duration::from_secs(burst.ready_in))
        .create(&client)
        .await?;
    setup.install(&cluster).await?;
    let class = kwok_node_class(Duration::from_secs(burst.boots_in));
    let pool = setup.pool(node_pool("default")).build();
    cluster.apply(&format!("{class}\n---\n{pool}")).await?;

    let began = Instant::now();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let names = (0..burst.pods).map(|number| format!("burst-{number:03}"));
    load::each(AT_ONCE, names, async |name| {
        pods.create(&PostParams::default(), &one_of_many(&name))
            .await?;
        Ok(())
    })
    .await?;
    watch(&client, burst, setup, began).await
}

/// A pod that requests slightly more than a core: three fit on a node.
fn one_of_many(name: &str) -> Pod {
    let mut pod = pod(name).build();
    let requests = BTreeMap::from([("cpu".to_owned(), Quantity("1200m".to_owned()))]);
    if let Some(spec) = &mut pod.spec {
        spec.containers[0].resources = Some(ResourceRequirements {
            requests: Some(requests),
            ..ResourceRequirements::default()
        });
    }
    pod
}

/// Polls until all pods run and no more nodes come.
async fn watch(client: &Client, burst: &Burst, setup: Setup, began: Instant) -> Result<Run> {
    let mut course: Vec<Seen> = Vec::new();
    let mut early = BTreeSet::new();
    let mut last = None;
    let mut changed = Instant::now();
    loop {
        let (claims, running) = look(client, &mut early).await?;
        let at = (began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let seen = Seen {
            at,
            claims,
            running,
        };
        let before = course.last().map(|seen| (seen.claims, seen.running));
        if before != Some((claims, running)) {
            course.push(seen);
            changed = Instant::now();
        }
        if running == burst.pods {
            last.get_or_insert(at);
        }
        if let Some(last) = last
            && changed.elapsed() > SETTLED
        {
            return Ok(Run {
                setup,
                launched: claims,
                early: early.len(),
                last,
                course,
            });
        }
        ensure!(
            began.elapsed() < PATIENCE,
            "after {PATIENCE:?} {running} of {} pods run, on {claims} NodeClaims",
            burst.pods
        );
        sleep(POLL).await;
    }
}

/// Counts the `NodeClaim`s and the running pods of the burst. Pods on a node whose component is not Ready in the same list are
/// added to `early`.
async fn look(client: &Client, early: &mut BTreeSet<String>) -> Result<(usize, usize)> {
    let pods: Api<Pod> = Api::all(client.clone());
    let pods = pods.list(&ListParams::default()).await?;
    let claims = node_claims(client).list(&ListParams::default()).await?;
    let node_of = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let (agents, burst): (Vec<Pod>, Vec<Pod>) = pods
        .into_iter()
        .partition(|pod| pod.namespace().as_deref() == Some("kube-system"));
    let open: BTreeSet<_> = agents
        .iter()
        .filter(|pod| is_ready(pod))
        .filter_map(node_of)
        .collect();
    for pod in &burst {
        if node_of(pod).is_some_and(|node| !open.contains(&node)) {
            early.insert(pod.name_any());
        }
    }
    let running = burst.iter().filter(|pod| is_ready(pod)).count();
    Ok((claims.items.len(), running))
}
