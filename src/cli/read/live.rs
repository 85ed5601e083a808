//! A snapshot that watches by kube-runtime keep current. They do not track how stale it may be: this is for displays only. Only
//! the Lease is polled, every ten seconds: it changes every two seconds, and no decision depends on it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, LocalBoxStream, StreamExt};
use jiff::Timestamp;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use tokio::time::sleep;

use super::builder::{Configured, due, now, snapshot};
use super::controller::leader;
use super::source::ObjectSource;
use crate::failure::CliError;
use crate::snapshot::{Depth, Leader, Snapshot, Wanted};
use nodegate_cluster::{Events, ResourceKind, events, explain};
use nodegate_core::condition::Watch;
use nodegate_core::selector::Filter;
use nodegate_engine::io::{Effect, Seen};

const LEASE_PAUSE: Duration = Duration::from_secs(10);

/// A snapshot that watches keep current; one of a dump never changes.
pub(crate) struct Live<'a> {
    source: &'a ObjectSource,
    snapshot: Snapshot,
    watches: BTreeMap<Watch, Events>,
    problems: BTreeMap<Watch, String>,
    leaders: LocalBoxStream<'a, Option<Leader>>,
}

impl<'a> Live<'a> {
    /// Reads everything that decides about nodes, and watches it from then on.
    pub(crate) async fn begin(
        source: &'a ObjectSource,
        configured: Configured,
    ) -> Result<Self, CliError> {
        let mut live = Self {
            source,
            snapshot: snapshot(source, configured, &Wanted::status()).await?,
            watches: BTreeMap::new(),
            problems: BTreeMap::new(),
            leaders: stream::pending().boxed_local(),
        };
        // No watch keeps this current.
        live.snapshot.kept_out.clear();
        if live.snapshot.gap(ResourceKind::Leases).is_none() {
            let leaders = stream::repeat(()).filter_map(async |()| {
                sleep(LEASE_PAUSE).await;
                leader(source).await.ok()
            });
            live.leaders = leaders.boxed_local();
        }
        for (watch, scope) in std::mem::take(&mut live.snapshot.listed) {
            if live.snapshot.gap(watch.resource()).is_none() {
                live.watch(watch, &scope);
            }
        }
        Ok(live)
    }

    fn watch(&mut self, watch: Watch, scope: &Filter) {
        if let ObjectSource::Cluster(cluster) = self.source {
            let events = events(&cluster.client, watch, scope).default_backoff();
            self.watches.insert(watch, events.boxed());
        }
    }

    /// Resolves when something has changed. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        let watches = self.watches.iter_mut();
        let events = watches.map(|(watch, events)| events.map(move |event| (*watch, event)));
        let next = async { stream::select_all(events).next().await };
        tokio::select! {
            Some((watch, event)) = next => self.take(watch, event),
            Some(leader) = self.leaders.next() => self.snapshot.leader = leader,
        }
    }

    /// The snapshot as of now, and why it is not up to date.
    pub(crate) fn read(&mut self) -> (&Snapshot, Option<&String>) {
        let snapshot = &mut self.snapshot;
        snapshot.at = Timestamp::now();
        snapshot.view.now = now(snapshot.at);
        snapshot.prepare();
        (snapshot, self.problems.values().next())
    }

    /// Processes what a watch shows, and starts or stops watches accordingly.
    fn take(&mut self, watch: Watch, seen: watcher::Result<Seen>) {
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                if let ObjectSource::Cluster(cluster) = self.source
                    && let Some(problem) = explain(&error, watch, &cluster.server)
                {
                    self.problems.insert(watch, problem);
                }
                return;
            }
        };
        // `Init` only means that the watch is being tried.
        if !matches!(seen, Seen::Init(..)) {
            self.problems.remove(&watch);
        }
        let view = &mut self.snapshot.view;
        view.now = now(Timestamp::now());
        // It only tells how far the watch has come.
        if matches!(seen, Seen::Progress(..)) {
            return;
        }
        view.apply(seen);
        let orders = view.orders();
        if orders.is_empty() && watch != Watch::Rules {
            return;
        }
        for order in orders {
            match order {
                Effect::Watch(watch, scope) => self.snapshot.unlisted.push((watch, scope)),
                Effect::Unwatch(watch) => drop(self.watches.remove(&watch)),
                _ => {}
            }
        }
        for (watch, scope) in due(&mut self.snapshot, Depth::Decisions) {
            self.watch(watch, &scope);
        }
    }
}
