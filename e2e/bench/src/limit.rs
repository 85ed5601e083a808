//! The limit: how fast the client itself makes the writes that the controller will have to make.
//!
//! It is meant to be a property of the API server and the machine alone. So no controller runs meanwhile, the writes
//! have the shape of the controller's and are made with its account, the number of them under way is the one that turns
//! out fastest, and the end is the same as in the phases: the moment in which the watch has shown the last of them.
//! Since a machine is not always equally fast, it is measured right before what is compared with it.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;
use tokio::time::Instant;

use crate::load::{self, AT_ONCE};
use crate::plan::Phase;
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
}

/// Seconds for all nodes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// To taint them.
    add: f64,
    /// To untaint them.
    remove: f64,
    /// To turn all conditions `True` and untaint them.
    release: f64,
}

impl Limits {
    /// What no controller could beat in a phase; `None` for one that does not go as fast as it can.
    #[must_use]
    pub fn of(&self, phase: Phase) -> Option<f64> {
        match phase {
            Phase::Gate => Some(self.add),
            Phase::Release => Some(self.release),
            Phase::Delete => Some(self.remove),
            _ => None,
        }
    }
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

    /// Measures it with so many writes at a time, and leaves the nodes as they are.
    ///
    /// # Errors
    ///
    /// When the API server refuses a write.
    pub async fn measure(&self, nodes: &[Member], at_once: usize) -> Result<Limits> {
        let add = self.taint(nodes, true, at_once).await?;
        let remove = self.taint(nodes, false, at_once).await?;
        self.taint(nodes, true, at_once).await?;
        let release = self.release(nodes, at_once).await?;
        load::each(AT_ONCE, nodes, async |node| {
            load::set_agent(self.reporter, &node.name, false).await
        })
        .await?;
        Ok(Limits {
            add: add.as_secs_f64(),
            remove: remove.as_secs_f64(),
            release: release.as_secs_f64(),
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
