//! The phases around rules that wait for critical components.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::load;
use crate::run::{Bench, Seen};
use crate::world::{self, Gate};

/// How long the first critical pod of a node that joins takes to get Ready, and the next ones each.
const PODS_READY_AFTER: Duration = Duration::from_millis(150);

impl Bench<'_> {
    /// Nodes join with a startup taint, at a steady rate, and their critical pods get Ready.
    pub(crate) async fn joins(&self) -> Result<Seen> {
        let joins = self.plan.joins;
        let mut ticks = interval(Duration::from_secs(1) / self.plan.joins_per_second);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let started = Instant::now();
        let mut under_way = FuturesUnordered::new();
        let mut begun = 0;
        let mut latencies = Vec::new();
        let mut faults = Vec::new();
        while begun < joins || !under_way.is_empty() {
            tokio::select! {
                _ = ticks.tick(), if begun < joins => {
                    under_way.push(self.join(format!("bench-join-{begun:05}")));
                    begun += 1;
                }
                Some(joined) = under_way.next() => match joined? {
                    Joined::Released(after) => latencies.push(after),
                    Joined::Early(fault) => faults.push(fault),
                    Joined::Missed => {}
                },
            }
        }
        let wall = started.elapsed();
        faults.extend(self.faults(Gate::Startup, |_| false).await?);
        Ok(Seen {
            changes: usize::try_from(joins)?,
            latencies,
            wall,
            faults,
            ..Seen::default()
        })
    }

    async fn join(&self, node: String) -> Result<Joined> {
        world::register(&self.client, &node, Some(Gate::Startup)).await?;
        let pods = self.world.create_pods(&self.client, &node).await?;
        let (last, others) = pods.split_last().context("a node without critical pods")?;
        for pod in others {
            sleep(PODS_READY_AFTER).await;
            load::set_pod_ready(&self.client, pod).await?;
        }
        sleep(PODS_READY_AFTER).await;
        let taint = self.view.look(|sights| sights.taint(&node, Gate::Startup));
        if taint.is_some_and(|taint| !taint.is) {
            let fault = format!("node {node} was released before pod {last} was Ready");
            return Ok(Joined::Early(fault));
        }
        let took = self
            .change(&node, Gate::Startup, last, Change::Ready)
            .await?;
        Ok(took.map_or(Joined::Missed, Joined::Released))
    }

    /// The pods of a critical `DaemonSet` are replaced, on some nodes at a time.
    pub(crate) async fn rollout(&self) -> Result<Seen> {
        let started = Instant::now();
        let nodes = self.world.members.iter().map(|member| member.name.as_str());
        let daemon_set = self.world.daemon_set_name(0);
        let updated = AtomicU32::new(0);
        let replaced = load::each(self.plan.rollout_at_once, nodes, async |node| {
            let [old, new] = [1, 2].map(|generation| self.world.pod_name(0, node, generation));
            let closed = self.change(node, Gate::Critical, &old, Change::End).await?;
            self.world.create_pod(&self.client, 0, node, &new).await?;
            let opened = self
                .change(node, Gate::Critical, &new, Change::Ready)
                .await?;
            let updated = updated.fetch_add(1, Ordering::Relaxed) + 1;
            load::report_rollout(&self.client, &daemon_set, updated).await?;
            Ok([closed, opened])
        })
        .await?;
        let wall = started.elapsed();
        Ok(Seen {
            changes: 2 * self.world.members.len(),
            latencies: replaced.into_iter().flatten().flatten().collect(),
            wall,
            faults: self.faults(Gate::Critical, |_| false).await?,
            ..Seen::default()
        })
    }

    /// Changes a pod and waits until the node's taint is seen to follow; says how much later that was, if it came.
    async fn change(
        &self,
        node: &str,
        gate: Gate,
        pod: &str,
        change: Change,
    ) -> Result<Option<Duration>> {
        match change {
            Change::Ready => load::set_pod_ready(&self.client, pod).await?,
            Change::End => load::delete_pod(&self.client, pod).await?,
        }
        let answered = Instant::now();
        let ready = change == Change::Ready;
        let mut took = None;
        self.view
            .until(self.plan.patience_each, |sights| {
                let pod = sights.pods.get(pod).filter(|pod| pod.is == ready);
                let taint = sights.taint(node, gate).filter(|taint| taint.is != ready);
                // Pods and nodes are two watches, of which one may be behind the other, or behind the answer.
                took = pod.zip(taint).map(|(pod, taint)| {
                    let cause = pod.since.min(answered);
                    taint.since.saturating_duration_since(cause)
                });
                took.is_some()
            })
            .await;
        Ok(took)
    }
}

/// What becomes of a critical pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// It turns Ready.
    Ready,
    /// It is gone.
    End,
}

/// What became of a node that joined.
enum Joined {
    /// It was released, so long after its last pod was Ready.
    Released(Duration),
    /// It was not released in time.
    Missed,
    /// It was released too early, in words.
    Early(String),
}
