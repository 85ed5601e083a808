//! A snapshot that watches keep current. Only the Lease is polled, every ten seconds: it changes every two seconds, and no
//! decision depends on it.

use std::future::pending;
use std::time::Duration;

use futures::stream::{self, LocalBoxStream, StreamExt};
use jiff::Timestamp;
use kube::runtime::watcher::Event;
use tokio::time::sleep;

use super::builder::{Configured, Needs, SnapshotBuilder, now, suspends_all};
use super::controller::leader;
use super::source::ObjectSource;
use super::watches::Watchers;
use crate::cli::failure::CliError;
use crate::cli::snapshot::{Leader, Snapshot, Wanted};
use crate::cluster::ResourceKind;
use crate::engine::io::{Effect, Object};
use crate::engine::kind::Watch;

/// How often the Lease is read.
const LEASE_PAUSE: Duration = Duration::from_secs(10);
/// How long to wait before everything is re-read after a failure.
const AGAIN: Duration = Duration::from_secs(5);

/// A snapshot that watches keep current; one of a dump never changes.
pub(crate) struct Live<'a> {
    source: &'a ObjectSource,
    configured: Configured<'a>,
    wanted: &'a Wanted,
    builder: SnapshotBuilder<'a>,
    leaders: LocalBoxStream<'a, Option<Leader>>,
    /// Whether the rules now need more than is watched.
    is_outgrown: bool,
    /// Why everything could not be re-read, although the rules need more than is watched.
    failure: Option<String>,
}

impl<'a> Live<'a> {
    /// Reads what is wanted, and watches it from then on.
    pub(crate) async fn begin(
        source: &'a ObjectSource,
        configured: Configured<'a>,
        wanted: &'a Wanted,
    ) -> Result<Self, CliError> {
        let watches = match source {
            ObjectSource::Cluster(cluster) => Some(Watchers::new(cluster)),
            ObjectSource::Memory(_) => None,
        };
        let builder = SnapshotBuilder::read(source, configured.clone(), wanted, watches).await?;
        let leaders = if builder.snapshot.gap(ResourceKind::Leases).is_none() {
            read_leaders(source).boxed_local()
        } else {
            stream::pending().boxed_local()
        };
        Ok(Self {
            source,
            configured,
            wanted,
            builder,
            leaders,
            is_outgrown: false,
            failure: None,
        })
    }

    /// Whether it can change.
    pub(crate) fn is_live(&self) -> bool {
        self.builder.watches.is_some()
    }

    /// Resolves when something has changed. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        let Some(watches) = &mut self.builder.watches else {
            return pending().await;
        };
        if self.is_outgrown {
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
            (watch, shown) = watches.next() => if let Ok(event) = shown {
                self.take(watch, event);
            },
            Some(leader) = self.leaders.next() => self.builder.snapshot.leader = leader,
        }
    }

    /// The snapshot at this time; a dump ignores the time.
    pub(crate) fn at(&mut self, at: Timestamp) -> &Snapshot {
        let is_live = self.is_live();
        let snapshot = &mut self.builder.snapshot;
        if is_live {
            snapshot.at = at;
            snapshot.view.go_on(now(at));
            let suspends_all = suspends_all(snapshot.leader.as_ref(), &snapshot.rules);
            snapshot.view.suspend_all(suspends_all);
            snapshot.view.settle();
        }
        snapshot
    }

    /// Why it is not current.
    pub(crate) fn problem(&self) -> Option<String> {
        let problem = self.builder.watches.as_ref()?.problem().map(str::to_owned);
        problem.or_else(|| self.failure.clone())
    }

    /// Processes a watch event, and starts or stops watches accordingly.
    fn take(&mut self, watch: Watch, event: Event<Object>) {
        let builder = &mut self.builder;
        builder.snapshot.view.go_on(now(Timestamp::now()));
        builder.see(watch, event);
        for order in builder.snapshot.view.orders() {
            match order {
                Effect::Watch(watch, scope) => {
                    let filter = builder.of_scope(watch, &scope);
                    if let Some(watches) = &mut builder.watches {
                        watches.begin(watch, &filter);
                    }
                }
                Effect::Unwatch(watch) => {
                    if let Some(watches) = &mut builder.watches {
                        watches.end(watch);
                    }
                }
                _ => {}
            }
        }
        if watch == Watch::Rules {
            let Snapshot { rules, .. } = &builder.snapshot;
            let needs = Needs::of(rules, builder.snapshot.classes(), self.wanted);
            self.is_outgrown = needs.exceed(&builder.needs);
        }
    }
}

/// Polls the Lease.
fn read_leaders(source: &ObjectSource) -> impl futures::Stream<Item = Option<Leader>> {
    stream::repeat(()).filter_map(async |()| {
        sleep(LEASE_PAUSE).await;
        leader(source).await.ok()
    })
}
