//! The limit: how fast the client itself makes the writes that the controller will have to make.
//!
//! It is meant to be a property of the API server and the machine alone. So no controller runs meanwhile, the writes
//! have the shape of the controller's and are made with its account, the number of them under way is the one that turns
//! out fastest, and the end is the same as in the phases: the moment in which the watch has shown the last of them.
//! Since a machine is not always equally fast, it is measured right before what is compared with it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;
use tokio::time::Instant;

use crate::load::{self, AT_ONCE};
use crate::plan::Phase;
use crate::results::Limit;
use crate::subject::cpu_of;
use crate::view::View;
use crate::world::{Gate, Member};

/// How many writes at a time are tried.
const TRIED: [usize; 4] = [8, 16, 32, 64];

/// On how many nodes they are tried, at most.
const SAMPLE: usize = 1000;

/// How long the watch may take to show a pass.
const PATIENCE: Duration = Duration::from_secs(300);

/// What makes the writes, and what shows them.
pub struct Limiter<'a> {
    /// What turns conditions `True`.
    pub reporter: &'a Client,
    /// What taints: with the controller's account and rights.
    pub controller: &'a Client,
    /// What shows it.
    pub view: &'a View,
    /// The API server's process.
    pub api_server: u32,
}

impl Limiter<'_> {
    /// How many writes at a time are fastest.
    ///
    /// # Errors
    ///
    /// When the API server refuses a write.
    pub async fn find(&self, nodes: &[Member]) -> Result<usize> {
        let sample = &nodes[..nodes.len().min(SAMPLE)];
        let mut best = (AT_ONCE, Duration::MAX);
        for at_once in TRIED {
            let took = self.taint(sample, true, at_once).await?
                + self.taint(sample, false, at_once).await?;
            if took < best.1 {
                best = (at_once, took);
            }
        }
        Ok(best.0)
    }

    /// Measures what no controller could beat in the phases over all nodes, with so many writes at a time, and leaves the
    /// nodes as they are.
    ///
    /// # Errors
    ///
    /// When the API server refuses a write.
    pub async fn measure(
        &self,
        nodes: &[Member],
        at_once: usize,
    ) -> Result<BTreeMap<Phase, Limit>> {
        let gate = self.cost(self.taint(nodes, true, at_once)).await?;
        let delete = self.cost(self.taint(nodes, false, at_once)).await?;
        self.taint(nodes, true, at_once).await?;
        let release = self.cost(self.release(nodes, at_once)).await?;
        load::each(AT_ONCE, nodes, async |node| {
            load::set_agent(self.reporter, &node.name, false).await
        })
        .await?;
        Ok(BTreeMap::from([
            (Phase::Gate, gate),
            (Phase::Delete, delete),
            (Phase::Release, release),
        ]))
    }

    /// What something costs that says itself how long it took.
    async fn cost(&self, work: impl Future<Output = Result<Duration>>) -> Result<Limit> {
        let before = cpu_of(self.api_server)?;
        let wall = work.await?;
        Ok(Limit {
            wall: wall.as_secs_f64(),
            latencies: None,
            api_server_cpu: Some(
                cpu_of(self.api_server)?
                    .saturating_sub(before)
                    .as_secs_f64(),
            ),
        })
    }

    /// Taints these nodes or removes the taint, and says how long it took.
    async fn taint(&self, nodes: &[Member], tainted: bool, at_once: usize) -> Result<Duration> {
        let started = Instant::now();
        load::each(at_once, nodes, async |node| {
            load::set_limit_taint(self.controller, node, tainted).await
        })
        .await?;
        let expected = if tainted { nodes.len() } else { 0 };
        self.all_seen(expected).await?;
        Ok(started.elapsed())
    }

    /// Turns these nodes' conditions `True` and removes each one's taint right after, and says how long it took.
    async fn release(&self, nodes: &[Member], at_once: usize) -> Result<Duration> {
        let started = Instant::now();
        load::each(at_once, nodes, async |node| {
            load::set_agent(self.reporter, &node.name, true).await?;
            load::set_limit_taint(self.controller, node, false).await
        })
        .await?;
        self.all_seen(0).await?;
        Ok(started.elapsed())
    }

    async fn all_seen(&self, expected: usize) -> Result<()> {
        let seen = self
            .view
            .until(PATIENCE, |sights| sights.tainted(Gate::Limit) == expected);
        ensure!(seen.await, "the watch did not show the client's own writes");
        Ok(())
    }
}
