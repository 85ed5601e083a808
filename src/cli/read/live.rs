//! What was read, kept up to date: watches go on where the lists have ended, as the controller's own do. Only the Lease is read
//! again and again, every ten seconds: it changes every other second, and nothing is held by it.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Client, ResourceExt};
use tokio::sync::{mpsc, watch as cell};
use tokio::time::sleep;

use super::cluster::Cluster;
use super::needs::Needs;
use super::source::Source;
use super::{Configured, Listed, listed, suspends_all};
use crate::api::names::LEASE;
use crate::cli::failure::Failure;
use crate::cli::snapshot::{Filter, Kind, Leader, Snapshot, Wanted};
use crate::controller::health::Readiness;
use crate::controller::metrics::Metrics;
use crate::controller::watch::{Feeder, Watches};
use crate::engine::io::{Effect, Now, Object, Seen};
use crate::engine::kind::Watch;

/// How often the Lease is read.
const LEASE_PAUSE: Duration = Duration::from_secs(10);
/// How long it takes until everything is read anew where that has failed.
const AGAIN: Duration = Duration::from_secs(5);
/// How many events may wait to be taken in.
const CHANGES: usize = 1024;
/// How many events are taken in at once.
const BATCH: usize = 512;

/// What was read, kept up to date; of a dump, as it is.
pub struct Live<'a> {
    source: &'a Source,
    configured: Configured<'a>,
    wanted: &'a Wanted,
    snapshot: Snapshot,
    stream: Option<Stream>,
    /// Why everything cannot be read anew, though rules ask for more than is watched.
    failure: Option<String>,
}

/// What watches show.
struct Stream {
    seen: mpsc::Receiver<Seen>,
    watches: Watches,
    readiness: cell::Receiver<Readiness>,
    leaders: mpsc::Receiver<Option<Leader>>,
    /// What is read and watched.
    needs: Needs,
    /// Whether rules ask for more by now.
    is_outgrown: bool,
    /// Nobody asks the watches to confirm what they show; they end with this.
    _confirmations: cell::Sender<u64>,
}

impl<'a> Live<'a> {
    /// Reads what is wanted, and watches it from there on.
    ///
    /// # Errors
    /// Where something is missing without which there is nothing to say.
    pub async fn begin(
        source: &'a Source,
        configured: Configured<'a>,
        wanted: &'a Wanted,
    ) -> Result<Self, Failure> {
        let (snapshot, listed) = listed(source, configured.clone(), wanted).await?;
        let stream = match source {
            Source::Cluster(cluster) => Some(Stream::begin(cluster, &snapshot, listed)),
            Source::Folder(_) | Source::Lists(_) | Source::Kept(..) => None,
        };
        Ok(Self {
            source,
            configured,
            wanted,
            snapshot,
            stream,
            failure: None,
        })
    }

    /// Whether it will ever be another.
    pub fn is_live(&self) -> bool {
        self.stream.is_some()
    }

    /// Resolves when something has changed. Whoever stops waiting misses nothing.
    pub async fn changed(&mut self) {
        let Some(stream) = &mut self.stream else {
            return pending().await;
        };
        if stream.is_outgrown {
            let begun = Self::begin(self.source, self.configured.clone(), self.wanted);
            match Box::pin(begun).await {
                Ok(anew) => *self = anew,
                Err(failure) => {
                    self.failure = Some(failure.to_string());
                    sleep(AGAIN).await;
                }
            }
            return;
        }
        tokio::select! {
            Some(seen) = stream.seen.recv() => {
                let mut is_about_rules = seen.watch() == Watch::Rules;
                stream.take(&mut self.snapshot, seen);
                for _ in 1..BATCH {
                    let Ok(seen) = stream.seen.try_recv() else { break };
                    is_about_rules |= seen.watch() == Watch::Rules;
                    stream.take(&mut self.snapshot, seen);
                }
                if is_about_rules {
                    let rules = &self.snapshot.rules;
                    let needs = Needs::of(rules, self.snapshot.classes(), self.wanted);
                    stream.is_outgrown = needs.exceed(&stream.needs);
                }
            }
            Some(leader) = stream.leaders.recv() => self.snapshot.leader = leader,
            Ok(()) = stream.readiness.changed() => {}
        }
    }

    /// How it is at this time; a dump is as it was.
    pub fn at(&mut self, at: Timestamp) -> &Snapshot {
        if self.stream.is_some() {
            let snapshot = &mut self.snapshot;
            let suspends_all = suspends_all(snapshot.leader.as_ref(), &snapshot.rules);
            snapshot.at = at;
            snapshot.view.go_on(now(at));
            snapshot.view.suspend_all(suspends_all);
            snapshot.view.settle();
        }
        &self.snapshot
    }

    /// What keeps it from being up to date.
    pub fn problem(&self) -> Option<String> {
        let stream = self.stream.as_ref()?;
        let readiness = stream.readiness.borrow();
        let problem = readiness.problems().next().map(str::to_owned);
        problem.or_else(|| self.failure.clone())
    }
}

impl Stream {
    fn begin(cluster: &Cluster, snapshot: &Snapshot, listed: Listed) -> Self {
        let (changes, seen) = mpsc::channel(CHANGES);
        let (confirmations, confirmed) = cell::channel(0);
        let (readiness, problems) = cell::channel(Readiness::default());
        let feeder = Feeder {
            changes,
            confirmations: confirmed,
            readiness,
            metrics: Metrics::new(),
            server: cluster.server().to_owned(),
        };
        let client: &Client = cluster.client();
        let mut watches = Watches::new(client, feeder.clone());
        let mut scopes: BTreeMap<_, _> = listed.scopes;
        for (watch, version) in listed.versions {
            match scopes.remove(&watch) {
                Some(scope) => watches.begin(watch, scope, version),
                None => feeder.spawn(client, snapshot.classes(), watch, version),
            }
        }
        let (sender, leaders) = mpsc::channel(1);
        if snapshot.gap(Kind::Leases).is_none() {
            tokio::spawn(read_leaders(cluster.clone(), sender));
        }
        Self {
            seen,
            watches,
            readiness: problems,
            leaders,
            needs: listed.needs,
            is_outgrown: false,
            _confirmations: confirmations,
        }
    }

    /// Takes in what a watch shows, and watches what follows from it.
    fn take(&mut self, snapshot: &mut Snapshot, seen: Seen) {
        match &seen {
            Seen::Put(Object::Rule(rule)) => {
                let name = rule.name_any();
                snapshot.rules.retain(|it| it.name_any() != name);
                snapshot.rules.push(rule.clone());
            }
            Seen::Gone(Object::Rule(rule)) => {
                let name = rule.name_any();
                snapshot.rules.retain(|it| it.name_any() != name);
            }
            _ => {}
        }
        snapshot.view.go_on(now(Timestamp::now()));
        snapshot.view.see(seen);
        for order in snapshot.view.orders() {
            match order {
                Effect::Watch(watch, scope) => self.watches.begin(watch, scope, None),
                Effect::Unwatch(watch) => self.watches.end(watch),
                _ => {}
            }
        }
    }
}

/// Reads the Lease again and again, until nobody wants to know.
async fn read_leaders(cluster: Cluster, leaders: mpsc::Sender<Option<Leader>>) {
    let filter = Filter::named(LEASE);
    loop {
        sleep(LEASE_PAUSE).await;
        let mut lease: Option<Lease> = None;
        let take = |json: &str| lease = serde_json::from_str(json).ok();
        let read = cluster.each(Kind::Leases, &filter, take).await;
        if read.is_ok() && leaders.send(lease.map(Leader::of)).await.is_err() {
            return;
        }
    }
}

fn now(wall: Timestamp) -> Now {
    Now {
        wall,
        monotonic: Instant::now(),
    }
}
