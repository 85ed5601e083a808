//! The watches: one for each kind of object, and more as the engine asks for them. The server filters them, they resume where
//! they broke off, and all feed one channel, which also says as of when a view is current. [`WatchCursor`] decides the next
//! request, `source` makes it, and `failure` explains why a watch does not work.

mod failure;
mod source;

use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Fuse};
use kube::core::WatchEvent;
use kube::{Client, Resource};
use prometheus::IntCounter;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tracing::{debug, info, warn};

use super::health::Readiness;
use super::metrics::Metrics;
use crate::condition::ComponentGroup;
use crate::condition::CriticalComponentClass;
use crate::engine::io::{Object, Seen};
use crate::engine::kind::{Scope, Watch};
use crate::engine::watch_cursor::{End, NextRequest, NoVersion, ViewState, WatchCursor};
use crate::engine::{Backoff, Pauses};
use crate::object::{
    CsiNode, DaemonSet, Node, NodeClaim, NodePool, Pod, ResourceSlice, RuleObject, Version, Watched,
};
pub(crate) use failure::Failure;
use source::WatchSource;

/// The pauses before a watch is retried. They are short: until the retry, an API server that is back goes unnoticed, and a few
/// requests a second are cheap.
const PAUSES: Pauses = Pauses::between(Duration::from_millis(50), Duration::from_secs(1));
/// How often to check whether an optional resource has been installed.
const NOT_INSTALLED_PAUSE: Duration = Duration::from_secs(10);

/// The channels that watches write to.
#[derive(Debug, Clone)]
pub(crate) struct Feeder {
    /// Receives what the watches show.
    pub changes: mpsc::Sender<Seen>,
    /// Demands on all watches. A watch that finds the cluster restored from a backup demands a relist.
    pub demands: watch::Sender<Demands>,
    /// Receives the reasons why watches do not work.
    pub readiness: watch::Sender<Readiness>,
    /// Counts failures.
    pub metrics: Metrics,
    /// The API server's address, for error messages.
    pub server: String,
}

/// Demands on all watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Demands {
    /// The time as of which their views must be current, as soon as possible.
    pub as_of: Option<Instant>,
    /// How many relists have been demanded so far.
    pub relists: u64,
}

/// Starts all watches that do not depend on rules, with these optional ones. They end when the receiver of the changes is
/// dropped.
pub(crate) fn spawn_all(
    client: &Client,
    classes: &[CriticalComponentClass],
    optional: &[Watch],
    feeder: &Feeder,
) {
    let of_classes = (0..classes.len())
        .map(ComponentGroup::Class)
        .flat_map(|class| [Watch::Pods(class), Watch::DaemonSets(class)]);
    let optional = optional.iter().copied();
    let all = [Watch::Nodes, Watch::CsiNodes, Watch::Rules];
    for watch in all.into_iter().chain(of_classes).chain(optional) {
        feeder.spawn(client, classes, watch);
    }
}

/// The watches that start and stop while the loop runs.
pub(crate) struct Watches {
    client: Client,
    feeder: Feeder,
    under_way: HashMap<Watch, AbortHandle>,
}

impl Watches {
    pub(crate) fn new(client: &Client, feeder: Feeder) -> Self {
        Self {
            client: client.clone(),
            feeder,
            under_way: HashMap::new(),
        }
    }

    /// Starts a watch. It ends at the latest when the receiver of the changes is dropped.
    pub(crate) fn begin(&mut self, watch: Watch, scope: &Scope) {
        let begun = self.feeder.begin(&self.client, watch, scope);
        self.under_way.insert(watch, begun);
    }

    pub(crate) fn end(&mut self, watch: Watch) {
        if let Some(begun) = self.under_way.remove(&watch) {
            begun.abort();
        }
    }
}

/// The loop has ended, so nobody receives the changes.
struct Stopped;

/// The watch of one kind of object.
struct Feed<Wrap> {
    kind: Watch,
    source: WatchSource,
    /// Wraps an object of this kind for the engine.
    wrap: Wrap,
    feeder: Feeder,
    demands: watch::Receiver<Demands>,
    /// How many demanded relists this watch has begun.
    relists: u64,
    cursor: WatchCursor,
    /// The consistent read that is under way. It may outlast the watch beside it.
    reading: Fuse<BoxFuture<'static, Result<Version, Failure>>>,
    /// The problem that was last reported.
    problem: Option<String>,
    retry: Backoff,
    failures: IntCounter,
    restarts: IntCounter,
}

impl Feeder {
    /// Starts a watch that does not depend on rules. It ends when the receiver of the changes is dropped.
    pub(crate) fn spawn(&self, client: &Client, classes: &[CriticalComponentClass], watch: Watch) {
        let class = watch.group().and_then(ComponentGroup::class);
        let scope = class.map_or_else(Scope::default, |index| classes[index].scope(watch));
        self.begin(client, watch, &scope);
    }

    fn begin(&self, client: &Client, watch: Watch, scope: &Scope) -> AbortHandle {
        let namespace = scope.namespace.as_deref();
        let at = |path| WatchSource::new(client, path, scope.labels(), scope.fields(watch));
        match watch {
            Watch::Nodes => self.watch(
                watch,
                at(Watched::<Node>::url_path(&(), None)),
                Object::Node,
            ),
            Watch::CsiNodes => {
                let csi_nodes = at(Watched::<CsiNode>::url_path(&(), None));
                self.watch(watch, csi_nodes, Object::CsiNode)
            }
            Watch::Rules => self.watch(
                watch,
                at(Watched::<RuleObject>::url_path(&(), None)),
                Object::Rule,
            ),
            Watch::Pods(group) => {
                let pods = at(Watched::<Pod>::url_path(&(), namespace));
                self.watch(watch, pods, move |pod| Object::Pod(group, pod))
            }
            Watch::DaemonSets(group) => {
                let daemon_sets = at(Watched::<DaemonSet>::url_path(&(), namespace));
                let wrap = move |daemon_set| Object::DaemonSet(group, daemon_set);
                self.watch(watch, daemon_sets, wrap)
            }
            Watch::ResourceSlices(group) => {
                let slices = at(Watched::<ResourceSlice>::url_path(&(), None));
                let wrap = move |slice| Object::ResourceSlice(group, slice);
                self.watch(watch, slices, wrap)
            }
            Watch::NodeClaims => {
                let claims = at(Watched::<NodeClaim>::url_path(&(), None));
                self.watch(watch, claims, Object::NodeClaim)
            }
            Watch::NodePools => {
                let pools = at(Watched::<NodePool>::url_path(&(), None));
                self.watch(watch, pools, Object::NodePool)
            }
        }
    }

    fn watch<K, Wrap>(&self, kind: Watch, source: WatchSource, wrap: Wrap) -> AbortHandle
    where
        K: Resource + Clone + DeserializeOwned + Send + 'static,
        Wrap: Fn(K) -> Object + Send + Sync + 'static,
    {
        info!(source = kind.name(), "Starting EventSource");
        let counter = |family: &prometheus::IntCounterVec| family.with_label_values(&[kind.name()]);
        let feed = Feed {
            kind,
            source,
            wrap,
            demands: self.demands.subscribe(),
            relists: self.demands.borrow().relists,
            cursor: WatchCursor::default(),
            reading: Fuse::terminated(),
            problem: None,
            retry: Backoff::default(),
            failures: counter(&self.metrics.watch_failures),
            restarts: counter(&self.metrics.watch_restarts),
            feeder: self.clone(),
        };
        tokio::spawn(feed.run()).abort_handle()
    }
}

impl<Wrap> Feed<Wrap> {
    async fn run<K>(mut self)
    where
        K: Resource + Clone + DeserializeOwned + Send + 'static,
        Wrap: Fn(K) -> Object + Send + Sync + 'static,
    {
        // It ends with the loop that it feeds.
        while let Ok(()) = self.step().await {}
    }

    /// Makes the next request and processes its results.
    async fn step<K>(&mut self) -> Result<(), Stopped>
    where
        K: Resource + Clone + DeserializeOwned,
        Wrap: Fn(K) -> Object,
    {
        self.take_demands().await?;
        let result = match self.cursor.next(Instant::now()) {
            NextRequest::List { token } => self.list(token).await?,
            NextRequest::Watch { version, length } => self.watch(&version, length).await?,
        };
        let Err(failure) = result else { return Ok(()) };
        self.failures.inc();
        let end = failure.end();
        self.cursor.ended(end);
        if end == End::Expired {
            self.restarts.inc();
        }
        let is_absent = self.kind.is_optional() && failure.is_not_installed();
        let seen = if is_absent {
            Seen::NotInstalled
        } else {
            Seen::Interrupted
        };
        self.send(seen(self.kind)).await?;
        self.tell(&failure);
        let now = Instant::now();
        let again = if is_absent {
            now + NOT_INSTALLED_PAUSE
        } else {
            self.retry.failed(PAUSES, now)
        };
        tokio::time::sleep_until(again.into()).await;
        Ok(())
    }

    /// Applies the demands; returns whether the current watch must restart for them.
    async fn take_demands(&mut self) -> Result<bool, Stopped> {
        let Demands { as_of, relists } = *self.demands.borrow_and_update();
        if std::mem::replace(&mut self.relists, relists) != relists {
            let view = self.cursor.relist();
            self.restarts.inc();
            self.judge(view).await?;
            return Ok(true);
        }
        Ok(as_of.is_some_and(|as_of| self.cursor.want(as_of)))
    }

    async fn list<K>(&mut self, token: Option<String>) -> Result<Result<(), Failure>, Stopped>
    where
        K: Resource + Clone + DeserializeOwned,
        Wrap: Fn(K) -> Object,
    {
        let is_first = token.is_none();
        let list = match self.source.list::<K>(token).await {
            Ok(list) => list,
            Err(failure) => return Ok(Err(failure)),
        };
        let metadata = list.metadata;
        let is_last = metadata.continue_.as_ref().is_none_or(String::is_empty);
        let Ok(view) = self
            .cursor
            .page(metadata.resource_version, metadata.continue_)
        else {
            return Ok(Err(Failure::NoVersion));
        };
        if is_first {
            self.send(Seen::Init(self.kind)).await?;
        }
        for object in list.items {
            self.send(Seen::Apply((self.wrap)(object))).await?;
        }
        if is_last {
            self.send(Seen::InitDone(self.kind, self.cursor.shown()))
                .await?;
        }
        self.judge(view).await?;
        Ok(Ok(()))
    }

    async fn watch<K>(
        &mut self,
        version: &str,
        length: Duration,
    ) -> Result<Result<(), Failure>, Stopped>
    where
        K: Resource + DeserializeOwned,
        Wrap: Fn(K) -> Object,
    {
        let read_at = tokio::time::Instant::now() + self.cursor.read_after();
        let mut read_due = pin!(tokio::time::sleep_until(read_at).fuse());
        let events = tokio::select! {
            Ok(()) = self.demands.changed() => {
                self.take_demands().await?;
                return Ok(Ok(()));
            }
            events = self.source.watch::<K>(version, length) => events,
        };
        let mut events = match events {
            Ok(events) => events,
            Err(failure) => return Ok(Err(failure)),
        };
        loop {
            tokio::select! {
                Ok(()) = self.demands.changed() => if self.take_demands().await? {
                    return Ok(Ok(()));
                },
                () = &mut read_due => if self.cursor.begin_read(Instant::now()) {
                    let source = self.source.clone();
                    self.reading = async move { source.version().await }.boxed().fuse();
                },
                read = &mut self.reading => match read {
                    Ok(version) => {
                        let view = self.cursor.read(version);
                        self.judge(view).await?;
                    }
                    Err(failure) => {
                        debug!(watch = %self.kind.name(), "cannot see whether the view is current: {failure:?}");
                        self.cursor.read_failed();
                    }
                },
                event = events.next() => match event {
                    Ok(Some(event)) => {
                        if let Err(failure) = self.take(event).await? {
                            return Ok(Err(failure));
                        }
                    }
                    Ok(None) if self.cursor.ended(End::Closed(events.ran())) == ViewState::Unchanged => {
                        self.works();
                        self.retry = Backoff::default();
                        return Ok(Ok(()));
                    }
                    Ok(None) => return Ok(Err(Failure::BrokenOff)),
                    Err(failure) => return Ok(Err(failure)),
                },
            }
        }
    }

    /// Passes on a watch event.
    async fn take<K>(&mut self, event: WatchEvent<K>) -> Result<Result<(), Failure>, Stopped>
    where
        K: Resource,
        Wrap: Fn(K) -> Object,
    {
        let (object, seen): (K, fn(Object) -> Seen) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, Seen::Apply),
            WatchEvent::Deleted(object) => (object, Seen::Delete),
            WatchEvent::Bookmark(bookmark) => {
                return self.saw(Some(bookmark.metadata.resource_version)).await;
            }
            WatchEvent::Error(status) => return Ok(Err(Failure::Refused(status))),
        };
        let version = object.meta().resource_version.clone();
        self.send(seen((self.wrap)(object))).await?;
        self.saw(version).await
    }

    /// Records that everything up to this version has been shown.
    async fn saw(&mut self, version: Option<String>) -> Result<Result<(), Failure>, Stopped> {
        match self.cursor.saw(version) {
            Ok(view) => {
                self.works();
                self.judge(view).await?;
                Ok(Ok(()))
            }
            Err(NoVersion) => Ok(Err(Failure::NoVersion)),
        }
    }

    /// Reports a change in how current the view is.
    async fn judge(&mut self, view: ViewState) -> Result<(), Stopped> {
        match view {
            ViewState::Unchanged => Ok(()),
            ViewState::Current(as_of) => {
                self.works();
                let version = self.cursor.shown();
                self.send(Seen::Current(self.kind, as_of, version)).await
            }
            ViewState::Interrupted => self.send(Seen::Interrupted(self.kind)).await,
            ViewState::Restored => {
                warn!(
                    watch = %self.kind.name(),
                    "versions go backwards: the cluster was restored from a backup; everything is listed again"
                );
                let relist = |demands: &mut Demands| demands.relists += 1;
                self.feeder.demands.send_modify(relist);
                Ok(())
            }
        }
    }

    async fn send(&mut self, seen: Seen) -> Result<(), Stopped> {
        let sent = self.feeder.changes.send(seen).await;
        sent.map_err(|_| Stopped)
    }

    /// Reports why the watch does not work, unless it already has.
    fn tell(&mut self, failure: &Failure) {
        let kind = self.kind;
        let Some(problem) = failure.explain(kind, &self.feeder.server) else {
            debug!(watch = %kind.name(), "{failure:?}; going on");
            return;
        };
        if self.problem.as_ref() == Some(&problem) {
            return;
        }
        warn!(watch = %kind.name(), "{problem}; trying again");
        self.feeder
            .readiness
            .send_modify(|readiness| readiness.set_problem(kind, problem.clone()));
        self.problem = Some(problem);
    }

    /// Clears the problem after the watch has shown something.
    fn works(&mut self) {
        let kind = self.kind;
        if self.problem.take().is_some() {
            info!(watch = %kind.name(), "watch works again");
            self.feeder
                .readiness
                .send_modify(|readiness| readiness.clear_problem(kind));
        }
    }
}
