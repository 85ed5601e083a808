//! The phases about rules that wait for critical components.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::load;
use crate::measure::Latencies;
use crate::results::Limit;
use crate::run::{Bench, Seen};
use crate::world::{self, Gate, Member, NAMESPACE};
use testkit::nodegate::changes::delete_pod;

/// How long the first critical pod of a joining node takes to become Ready, and each further one.
const PODS_READY_AFTER: Duration = Duration::from_millis(150);

impl Bench<'_> {
    /// Nodes join at a steady rate with a startup taint, and their critical pods become Ready.
    pub(crate) async fn joins(&self) -> Result<Seen> {
        let joins = self.plan.joins;
        let mut ticks = interval(Duration::from_secs(1) / self.plan.joins_per_second);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let started = Instant::now();
        let mut under_way = FuturesUnordered::new();
        let mut begun = 0;
        let mut seen = Seen::default();
        while begun < joins || !under_way.is_empty() {
            tokio::select! {
                _ = ticks.tick(), if begun < joins => {
                    under_way.push(self.join(format!("bench-join-{begun:05}")));
                    begun += 1;
                }
                Some(joined) = under_way.next() => match joined? {
                    Joined::Released(took) => seen.latencies.push(took),
                    Joined::Early(fault) => seen.faults.push(fault),
                    Joined::Missed => {}
                },
            }
        }
        seen.wall = started.elapsed();
        seen.changes = usize::try_from(joins)?;
        let faults = self.faults(Gate::Startup, |_| false).await?;
        seen.faults.extend(faults);
        Ok(seen)
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
            .change(&node, Gate::Startup, last, Change::Ready, left_to_others)
            .await?;
        Ok(took.map_or(Joined::Missed, Joined::Released))
    }

    /// Replaces the pods of a critical `DaemonSet`, on some nodes at a time.
    pub(crate) async fn rollout(&mut self) -> Result<Seen> {
        let mut seen = self
            .replace_pods(Gate::Critical, async |_, _| Ok(()))
            .await?;
        seen.faults = self.faults(Gate::Critical, |_| false).await?;
        self.generation += 1;
        Ok(seen)
    }

    /// Like [`Self::rollout`], but the client itself taints each node as soon as it observes that the pod is gone, and removes
    /// the taint as soon as the next one is Ready: no controller can be faster.
    pub(crate) async fn rollout_by_client(&mut self) -> Result<Limit> {
        let seen = self
            .replace_pods(Gate::Limit, async |member, tainted| {
                load::set_limit_taint(&self.controller, member, tainted).await
            })
            .await?;
        self.generation += 1;
        Ok(Limit {
            wall: seen.wall.as_secs_f64(),
            latencies: Latencies::of(seen.latencies),
        })
    }

    /// Replaces pods; `taint` gates and releases each node.
    async fn replace_pods(
        &self,
        gate: Gate,
        taint: impl AsyncFn(&Member, bool) -> Result<()>,
    ) -> Result<Seen> {
        let started = Instant::now();
        let members = &self.world.members;
        let members = &members[..members.len().min(self.plan.rollout_nodes)];
        let daemon_set = self.world.daemon_set_name(0);
        let updated = AtomicU32::new(0);
        let replaced = load::each(self.plan.rollout_at_once, members, async |member| {
            let node = member.name.as_str();
            let [old, new] = [self.generation, self.generation + 1]
                .map(|generation| self.world.pod_name(0, node, generation));
            let gated = self
                .change(node, gate, &old, Change::End, || taint(member, true))
                .await?;
            self.world.create_pod(&self.client, 0, node, &new).await?;
            let released = self
                .change(node, gate, &new, Change::Ready, || taint(member, false))
                .await?;
            let updated = updated.fetch_add(1, Ordering::Relaxed) + 1;
            load::report_rollout(&self.client, &daemon_set, updated).await?;
            Ok([gated, released])
        })
        .await?;
        Ok(Seen {
            changes: 2 * members.len(),
            wall: started.elapsed(),
            latencies: replaced.into_iter().flatten().flatten().collect(),
            ..Seen::default()
        })
    }

    /// Changes a pod, calls `then`, and waits for the node's taint to follow. Returns how long that took; `None` after a
    /// timeout.
    async fn change<F: Future<Output = Result<()>>>(
        &self,
        node: &str,
        gate: Gate,
        pod: &str,
        change: Change,
        then: impl FnOnce() -> F,
    ) -> Result<Option<Duration>> {
        // Pods and nodes have separate watches, and either may lag behind the other or behind the answer. Only the request
        // marks a moment before which nobody can know of the change.
        let asked = Instant::now();
        match change {
            Change::Ready => load::set_pod_ready(&self.client, pod).await?,
            Change::End => delete_pod(&self.client, NAMESPACE, pod).await?,
        }
        then().await?;
        let ready = change == Change::Ready;
        let mut took = None;
        self.view
            .until(self.plan.patience_each, |sights| {
                let pod = sights.pods.get(pod).filter(|pod| pod.is == ready);
                let taint = sights.taint(node, gate).filter(|taint| taint.is != ready);
                took = pod
                    .and(taint)
                    .map(|taint| taint.since.saturating_duration_since(asked));
                took.is_some()
            })
            .await;
        Ok(took)
    }
}

/// Leaves the taint to the controller.
async fn left_to_others() -> Result<()> {
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Ready,
    End,
}

/// The outcome for one joining node.
enum Joined {
    /// Released in time.
    Released(Duration),
    /// Not released in time.
    Missed,
    /// Released too early; the message says how.
    Early(String),
}
