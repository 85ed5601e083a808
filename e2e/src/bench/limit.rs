//! The limit: how fast the client itself makes the writes that the controller will have to make.
//!
//! It is meant to be a property of the API server and the machine alone. So no controller runs meanwhile, the writes
//! have the shape of the controller's, the number of them under way is the one that turns out fastest, and the end is the
//! same as in the phases: the moment in which the watch has shown the last of them.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;
use tokio::time::Instant;

use super::load::{self, AT_ONCE};
use super::results::Limits;
use super::view::View;
use super::world::{Gate, Member};

/// How many writes at a time are tried.
const TRIED: [usize; 4] = [8, 16, 32, 64];

/// On how many nodes they are tried. Fewer nodes than that are tainted all, and the best is the limit.
const SAMPLE: usize = 1000;

/// How long the watch may take to show a pass.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures it on these nodes, and leaves them as they are.
///
/// # Errors
///
/// When the API server refuses a write.
pub async fn measure(client: &Client, view: &View, nodes: &[Member]) -> Result<Limits> {
    let client = Limiter { client, view };
    let sample = &nodes[..nodes.len().min(SAMPLE)];
    let mut best: Option<(usize, Duration, Duration)> = None;
    for at_once in TRIED {
        let add = client.taint(sample, true, at_once).await?;
        let remove = client.taint(sample, false, at_once).await?;
        if best.is_none_or(|(_, least_add, least_remove)| add + remove < least_add + least_remove) {
            best = Some((at_once, add, remove));
        }
    }
    let (at_once, mut add, mut remove) = best.unwrap_or((AT_ONCE, Duration::MAX, Duration::MAX));
    if sample.len() < nodes.len() {
        add = client.taint(nodes, true, at_once).await?;
        remove = client.taint(nodes, false, at_once).await?;
    }
    client.taint(nodes, true, at_once).await?;
    let release = client.release(nodes, at_once).await?;
    load::each(AT_ONCE, nodes, async |node| {
        load::set_agent(client.client, &node.name, false).await
    })
    .await?;
    Ok(Limits {
        at_once,
        add: add.as_secs_f64(),
        remove: remove.as_secs_f64(),
        release: release.as_secs_f64(),
    })
}

struct Limiter<'a> {
    client: &'a Client,
    view: &'a View,
}

impl Limiter<'_> {
    /// Taints these nodes or removes the taint, and says how long it took.
    async fn taint(&self, nodes: &[Member], tainted: bool, at_once: usize) -> Result<Duration> {
        let started = Instant::now();
        load::each(at_once, nodes, async |node| {
            load::set_limit_taint(self.client, node, tainted).await
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
            load::set_agent(self.client, &node.name, true).await?;
            load::set_limit_taint(self.client, node, false).await
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
