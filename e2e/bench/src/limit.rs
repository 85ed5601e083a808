//! The limit: how fast the client itself makes the writes that the controller will have to make.
//!
//! It depends only on the API server and the machine. No controller runs in the meantime, the writes have the shape of the
//! controller's and use its account, and their concurrency is the fastest one found. A phase and its limit end at the same
//! point: when the watch has shown the last write. As the speed of a machine varies, the limit is measured right before its
//! phase.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;

use crate::load::{self, AT_ONCE};
use crate::plan::Phase;
use crate::results::Limit;
use crate::run::Bench;
use crate::world::{Gate, Member};

/// The tried numbers of concurrent writes.
const TRIED: [usize; 4] = [8, 16, 32, 64];

/// The most nodes to try them on.
const SAMPLE: usize = 1000;

/// How long the watch may take to show all writes.
const PATIENCE: Duration = Duration::from_secs(300);

impl Bench<'_> {
    /// Finds the client's fastest number of concurrent writes.
    pub(crate) async fn fastest(&self) -> Result<usize> {
        let nodes = &self.world.members;
        let sample = &nodes[..nodes.len().min(SAMPLE)];
        let mut best = (AT_ONCE, Duration::MAX);
        for at_once in TRIED {
            let took = self.taint_by_client(sample, true, at_once).await?
                + self.taint_by_client(sample, false, at_once).await?;
            if took < best.1 {
                best = (at_once, took);
            }
        }
        Ok(best.0)
    }

    /// Measures the limits of the phases over all nodes, which end up as they were.
    pub(crate) async fn limits(&self) -> Result<BTreeMap<Phase, Limit>> {
        let (nodes, at_once) = (&self.world.members, self.at_once);
        let gate = self.taint_by_client(nodes, true, at_once).await?;
        let delete = self.taint_by_client(nodes, false, at_once).await?;
        self.taint_by_client(nodes, true, at_once).await?;
        let release = self.release_by_client().await?;
        load::each(AT_ONCE, nodes, async |node| {
            load::set_agent(&self.client, &node.name, false).await
        })
        .await?;
        let limits = [
            (Phase::Gate, gate),
            (Phase::Delete, delete),
            (Phase::Release, release),
        ];
        let limit = |wall: Duration| Limit {
            wall: wall.as_secs_f64(),
            latencies: None,
        };
        Ok(limits.map(|(phase, wall)| (phase, limit(wall))).into())
    }

    /// Adds the taint to these nodes or removes it, and returns the duration.
    async fn taint_by_client(
        &self,
        nodes: &[Member],
        tainted: bool,
        at_once: usize,
    ) -> Result<Duration> {
        let started = Instant::now();
        load::each(at_once, nodes, async |node| {
            load::set_limit_taint(&self.controller, node, tainted).await
        })
        .await?;
        let expected = if tainted { nodes.len() } else { 0 };
        self.all_seen(expected).await?;
        Ok(started.elapsed())
    }

    /// Sets all nodes' conditions to `True`, removes each one's taint right after, and returns the duration.
    async fn release_by_client(&self) -> Result<Duration> {
        let started = Instant::now();
        load::each(self.at_once, &self.world.members, async |node| {
            load::set_agent(&self.client, &node.name, true).await?;
            load::set_limit_taint(&self.controller, node, false).await
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
