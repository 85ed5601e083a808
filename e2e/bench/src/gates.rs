//! The phases about a rule that waits for a reported condition.

use std::time::Duration;

use anyhow::Result;
use kube::api::DeleteParams;
use tokio::time::{Instant, sleep};

use crate::churn::Churn;
use crate::load;
use crate::plan::Phase;
use crate::run::{Bench, Seen};
use crate::world::{Gate, Member};
use testkit::nodegate::fixtures::rules;

/// How often to check whether a rule is gone.
const POLL: Duration = Duration::from_millis(10);

/// The pause between flips, so that none delays the next.
const PAUSE: Duration = Duration::from_millis(25);

impl Phase {
    /// The gate of this phase.
    pub(crate) fn gate(self) -> Gate {
        match self {
            Self::Joins => Gate::Startup,
            Self::Rollout => Gate::Critical,
            _ => Gate::Agent,
        }
    }
}

impl Bench<'_> {
    pub(crate) async fn gate(&self) -> Result<Seen> {
        let all = self.world.members.len();
        let started = Instant::now();
        Gate::Agent.rule().create(&self.client).await?;
        let view = &self.view;
        view.until(self.plan.patience, |sights| {
            sights.tainted(Gate::Agent) == all
        })
        .await;
        let wall = started.elapsed();
        Ok(Seen {
            changes: all,
            latencies: self.changes_since(started, true),
            wall,
            faults: self.faults(Gate::Agent, |_| true).await?,
            ..Seen::default()
        })
    }

    pub(crate) async fn release(&self) -> Result<Seen> {
        let started = Instant::now();
        load::each(self.at_once, &self.world.members, async |node| {
            load::set_agent(&self.client, &node.name, true).await
        })
        .await?;
        let view = &self.view;
        view.until(self.plan.patience, |sights| {
            sights.tainted(Gate::Agent) == 0
        })
        .await;
        let wall = started.elapsed();
        let latencies = view.look(|sights| {
            let nodes = sights.nodes.values();
            nodes
                .filter(|node| !node.taint(Gate::Agent).is)
                .map(|node| node.taint(Gate::Agent).since - node.agent.since)
                .collect()
        });
        Ok(Seen {
            changes: self.world.members.len(),
            latencies,
            wall,
            faults: self.faults(Gate::Agent, |_| false).await?,
            ..Seen::default()
        })
    }

    pub(crate) async fn flip(&self) -> Result<Seen> {
        let started = Instant::now();
        let (mut own, mut latencies) = (Vec::new(), Vec::new());
        let flips = usize::try_from(self.plan.flips)?;
        for node in spread(&self.world.members).take(flips) {
            if let Some((seen, followed)) = self.flip_one(&node.name).await? {
                own.push(seen);
                latencies.push(followed);
            }
            sleep(PAUSE).await;
        }
        let wall = started.elapsed();
        let unready = self.view.look(|sights| sights.nodes.len() - sights.agents);
        let mut faults = Vec::new();
        let tainted = self.view.look(|sights| sights.tainted(Gate::Agent));
        if tainted != unready {
            faults.push(format!(
                "{unready} agents are not ready, but {tainted} nodes are held"
            ));
        }
        Ok(Seen {
            changes: flips,
            latencies,
            wall,
            own,
            faults,
        })
    }

    /// The times from the client's write until it observes the condition, and from then until the taint follows.
    async fn flip_one(&self, node: &str) -> Result<Option<(Duration, Duration)>> {
        let ready = self.view.look(|sights| {
            let node = sights.nodes.get(node);
            node.is_some_and(|node| node.agent.is)
        });
        let asked = Instant::now();
        load::set_agent(&self.client, node, !ready).await?;
        let mut took = None;
        self.view
            .until(self.plan.patience_each, |sights| {
                let node = sights.nodes.get(node);
                took = node
                    .filter(|node| node.agent.is != ready && node.taint(Gate::Agent).is == ready)
                    .map(|node| (node.agent.since, node.taint(Gate::Agent).since))
                    .map(|(seen, followed)| (seen - asked, followed - seen));
                took.is_some()
            })
            .await;
        Ok(took)
    }

    pub(crate) async fn flip_under_churn(&self) -> Result<Seen> {
        let nodes = self.world.members.iter().map(|member| &member.name);
        // The pods of a `DaemonSet` that no rollout replaces.
        let pods = nodes.clone().map(|node| self.world.pod_name(1, node, 1));
        let churn = Churn::start(
            self.client.clone(),
            nodes.cloned().collect(),
            pods.collect(),
            self.plan.churn_per_second,
        );
        let mut seen = self.flip().await?;
        seen.faults.extend(churn.stop());
        Ok(seen)
    }

    pub(crate) async fn idle(&self) -> Result<Seen> {
        sleep(self.plan.idle).await;
        Ok(Seen {
            wall: self.plan.idle,
            faults: self.faults(Gate::Agent, |_| false).await?,
            ..Seen::default()
        })
    }

    pub(crate) async fn delete(&self) -> Result<Seen> {
        let started = Instant::now();
        let gone = self.remove(Gate::Agent).await?;
        let wall = started.elapsed();
        let mut faults = self.faults(Gate::Agent, |_| false).await?;
        if !gone {
            faults.push("the rule is still there".to_owned());
        }
        Ok(Seen {
            changes: self.world.members.len(),
            latencies: self.changes_since(started, false),
            wall,
            faults,
            ..Seen::default()
        })
    }

    /// Deletes a gate's rule and waits until its taints and the rule itself are gone. Returns false after a timeout.
    pub(crate) async fn remove(&self, gate: Gate) -> Result<bool> {
        let started = Instant::now();
        rules(&self.client)
            .delete(gate.rule_name(), &DeleteParams::default())
            .await?;
        let view = &self.view;
        view.until(self.plan.patience, |sights| sights.tainted(gate) == 0)
            .await;
        while self.has_rule(gate).await? {
            if started.elapsed() > self.plan.patience {
                return Ok(false);
            }
            sleep(POLL).await;
        }
        Ok(true)
    }

    pub(crate) async fn restart(&mut self) -> Result<Seen> {
        self.stop_controller().await?;
        let started = Instant::now();
        self.start_controller().await?;
        let wall = started.elapsed();
        self.rest().await?;
        Ok(Seen {
            wall,
            faults: self.faults(Gate::Agent, |_| true).await?,
            ..Seen::default()
        })
    }

    pub(crate) async fn catch_up(&mut self) -> Result<Seen> {
        let changed = self.world.members[self.world.members.len() / 2]
            .name
            .clone();
        self.stop_controller().await?;
        load::set_agent(&self.client, &changed, true).await?;
        let started = Instant::now();
        self.start_controller().await?;
        let released = self.view.until(self.plan.patience, |sights| {
            let taint = sights.taint(&changed, Gate::Agent);
            taint.is_some_and(|taint| !taint.is)
        });
        released.await;
        let latency = self.view.look(|sights| {
            let taint = sights.taint(&changed, Gate::Agent);
            let released = taint.filter(|taint| !taint.is);
            released.map(|taint| taint.since - started)
        });
        Ok(Seen {
            changes: 1,
            latencies: latency.into_iter().collect(),
            wall: latency.unwrap_or_else(|| started.elapsed()),
            faults: self.faults(Gate::Agent, |node| node != changed).await?,
            ..Seen::default()
        })
    }

    /// The time from a moment until each node got or lost the taint of the agent's rule.
    fn changes_since(&self, moment: Instant, tainted: bool) -> Vec<Duration> {
        self.view.look(|sights| {
            let taints = sights.nodes.values().map(|node| node.taint(Gate::Agent));
            taints
                .filter(|taint| taint.is == tainted && taint.since >= moment)
                .map(|taint| taint.since - moment)
                .collect()
        })
    }
}

/// Cycles through these nodes in a fixed, scattered order.
fn spread(nodes: &[Member]) -> impl Iterator<Item = &Member> {
    // A prime that divides no usual number of nodes, so that a cycle covers all of them.
    const STRIDE: usize = 7919;
    (0..).map(|turn: usize| &nodes[turn * STRIDE % nodes.len()])
}
