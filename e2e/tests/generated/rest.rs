//! Whether the controller comes to rest, by what the API server and the controller itself count.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use testkit::nodegate::audit::{Follower, Write};
use testkit::nodegate::fetch;

/// How long the controller has to be quiet: statuses are written at most once a second.
const QUIET: Duration = Duration::from_secs(1);
/// How long it is then observed.
const OBSERVED: Duration = Duration::from_secs(1);
/// Until when it has to be quiet.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// How often a node and a rule may be evaluated together while nothing happens.
const EVALUATIONS: f64 = 5.0;
/// How many writes a finding shows.
const SHOWN: usize = 30;

/// Observes the controller.
#[derive(Debug)]
pub(crate) struct Observer {
    pub writes: Follower,
    pub metrics: SocketAddr,
}

/// Counts of the controller.
#[derive(Debug)]
struct Counts {
    evaluations: f64,
    refused: f64,
}

impl Observer {
    /// Waits until the controller writes nothing, and sees that it does next to nothing. `pairs`: how many pairs of a node and
    /// a rule there are.
    pub(crate) async fn rest(&mut self, pairs: usize) -> Result<()> {
        let mut last = VecDeque::new();
        let (began, mut quiet) = (Instant::now(), Instant::now());
        let mut before = None;
        loop {
            tokio::time::sleep(POLL).await;
            let news = self.news()?;
            if !news.is_empty() {
                (quiet, before) = (Instant::now(), None);
                last.extend(news);
                last.drain(..last.len().saturating_sub(SHOWN));
            }
            if began.elapsed() > PATIENCE {
                bail!(
                    "the controller does not come to rest within {PATIENCE:?}; its last writes: {last:#?}"
                );
            }
            match &before {
                None if quiet.elapsed() > QUIET => before = Some(self.counts().await?),
                Some(before) if quiet.elapsed() > QUIET + OBSERVED => {
                    return check(before, &self.counts().await?, pairs);
                }
                _ => {}
            }
        }
    }

    /// New writes, except those by which an instance stays the leader.
    fn news(&mut self) -> Result<Vec<Write>> {
        let mut news = self.writes.news()?;
        news.retain(|write| write.resource != "leases");
        Ok(news)
    }

    async fn counts(&self) -> Result<Counts> {
        let (status, text) = fetch::get(self.metrics, "/metrics").await?;
        ensure!(status == 200, "{status}: {text}");
        let sum = |name: &str, label: &str| {
            let series = text
                .lines()
                .filter(|line| line.starts_with(name) && line.contains(label));
            let values = series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
            values.sum()
        };
        Ok(Counts {
            evaluations: sum("node_readiness_evaluation_duration_seconds_count", ""),
            refused: ["node", "conditions", "finalizers", "status"]
                .iter()
                .map(|object| {
                    let labels = format!("object=\"{object}\",reason=\"refused\"");
                    sum("nodegate_write_failures_total", &labels)
                })
                .sum(),
        })
    }
}

fn check(before: &Counts, after: &Counts, pairs: usize) -> Result<()> {
    let evaluations = after.evaluations - before.evaluations;
    let pairs = f64::from(u32::try_from(pairs.max(1))?);
    ensure!(
        evaluations <= EVALUATIONS * pairs,
        "{evaluations} evaluations while nothing happens, of {pairs} pairs of a node and a rule"
    );
    ensure!(
        after.refused < 0.5,
        "the API server has refused {} writes",
        after.refused
    );
    Ok(())
}
