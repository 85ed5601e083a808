//! The watches: one for each kind of object, and more as the engine wants them, filtered by the server, resumed where they broke
//! off, and feeding one channel, with word of when the view that they give is up to date and when it is not.
//!
//! | file | what it does |
//! |---|---|
//! | `course` | what to ask for next, and what the view is worth (pure) |
//! | `source` | the requests |
//! | `failure` | why a watch does not work, in words |

mod course;
mod failure;
mod source;

use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use kube::core::WatchEvent;
use kube::{Client, Resource};
use prometheus::IntCounter;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tracing::{debug, info, warn};

use super::health::Readiness;
use super::metrics::Metrics;
use crate::condition::CriticalComponentClass;
use crate::engine::io::{Object, Seen};
use crate::engine::kind::{Scope, Watch};
use crate::engine::{Backoff, Pauses};
use crate::object::{
    CsiNodeObject, DaemonSetObject, NodeClaimObject, NodeObject, NodePoolObject, PodObject,
    RuleObject,
};
use course::{Course, End, Question, View};
use failure::Failure;
use source::WatchSource;

/// The pauses before a watch is tried again. Until then nothing is seen of an API server that is back, and a handful of
/// requests a second costs nobody anything.
const PAUSES: Pauses = Pauses::between(Duration::from_millis(50), Duration::from_secs(1));
/// How often it is seen whether a resource that the cluster can do without has been installed.
const NOT_INSTALLED_PAUSE: Duration = Duration::from_secs(10);
/// Pods that are not bound yet or have ended say nothing about a node: the server leaves them out.
const BOUND: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/// Where watches feed what they see, and where they tell how they fare.
#[derive(Debug, Clone)]
pub struct Feeder {
    /// Takes what is seen.
    pub changes: mpsc::Sender<Seen>,
    /// Which confirmation is wanted: whenever the number grows, every watch finds out at once whether it has shown all
    /// there is, rather than when the next sign of life is due.
    pub confirmations: watch::Receiver<u64>,
    /// Takes what keeps a watch from working.
    pub readiness: watch::Sender<Readiness>,
    /// Counts failures.
    pub metrics: Metrics,
    /// What to call the API server where it cannot be reached.
    pub server: String,
}

/// Starts all watches, those of Karpenter's objects where wanted. They end when the receiver of the changes is dropped.
pub fn spawn_all(
    client: &Client,
    classes: &[CriticalComponentClass],
    with_karpenter: bool,
    feeder: &Feeder,
) {
    let of_classes =
        (0..classes.len()).flat_map(|class| [Watch::Pods(class), Watch::DaemonSets(class)]);
    let karpenters = [Watch::NodeClaims, Watch::NodePools];
    let karpenters = karpenters.into_iter().filter(|_| with_karpenter);
    let all = [Watch::Nodes, Watch::CsiNodes, Watch::Rules];
    for watch in all.into_iter().chain(of_classes).chain(karpenters) {
        feeder.spawn(client, classes, watch, None);
    }
}

/// The watches that are begun and ended while the loop runs.
pub struct Watches {
    client: Client,
    feeder: Feeder,
    under_way: HashMap<Watch, AbortHandle>,
}

impl Watches {
    /// None yet.
    pub fn new(client: &Client, feeder: Feeder) -> Self {
        Self {
            client: client.clone(),
            feeder,
            under_way: HashMap::new(),
        }
    }

    /// Begins a watch, after this version where that has been listed already. It ends with the receiver of the changes, if
    /// not before.
    pub fn begin(&mut self, watch: Watch, scope: Scope, after: Option<String>) {
        let begun = match (watch, scope) {
            (Watch::Pods(cohort), Scope::Pods(namespace, selector)) => {
                let path = PodObject::url_path(&(), Some(&namespace));
                let pods = WatchSource::new(&self.client, path)
                    .labels(selector.to_string())
                    .fields(BOUND);
                let wrap = move |pod| Object::Pod(cohort, pod);
                self.feeder.watch(watch, pods, after, wrap)
            }
            (Watch::DaemonSets(cohort), Scope::DaemonSet(key)) => {
                let path = DaemonSetObject::url_path(&(), Some(&key.namespace));
                let daemon_set = WatchSource::new(&self.client, path)
                    .fields(&format!("metadata.name={}", key.name));
                let wrap = move |daemon_set| Object::DaemonSet(cohort, daemon_set);
                self.feeder.watch(watch, daemon_set, after, wrap)
            }
            (watch, scope) => unreachable!("{watch:?} is not of {scope:?}"),
        };
        self.under_way.insert(watch, begun);
    }

    /// Ends a watch.
    pub fn end(&mut self, watch: Watch) {
        if let Some(begun) = self.under_way.remove(&watch) {
            begun.abort();
        }
    }
}

/// The loop has ended: nobody takes what the watches show.
struct Stopped;

/// One kind's watch.
struct Feed<Wrap> {
    kind: Watch,
    source: WatchSource,
    /// What an object of this kind is to the engine.
    wrap: Wrap,
    feeder: Feeder,
    course: Course,
    /// Why it does not work, as it was told last.
    problem: Option<String>,
    retry: Backoff,
    failures: IntCounter,
    restarts: IntCounter,
}

impl Feeder {
    /// Starts a watch that does not depend on rules, after this version where that has been listed already. It ends when the
    /// receiver of the changes is dropped.
    pub fn spawn(
        &self,
        client: &Client,
        classes: &[CriticalComponentClass],
        watch: Watch,
        after: Option<String>,
    ) {
        let at = |path| WatchSource::new(client, path);
        match watch {
            Watch::Nodes => {
                let nodes = at(NodeObject::url_path(&(), None));
                self.watch(watch, nodes, after, Object::Node)
            }
            Watch::CsiNodes => {
                let csi_nodes = at(CsiNodeObject::url_path(&(), None));
                self.watch(watch, csi_nodes, after, Object::CsiNode)
            }
            Watch::Rules => {
                let rules = at(RuleObject::url_path(&(), None));
                self.watch(watch, rules, after, Object::Rule)
            }
            Watch::Pods(index) => {
                let class = &classes[index];
                let pods = at(PodObject::url_path(&(), class.namespaces.single()))
                    .labels(class.selector.to_string())
                    .fields(BOUND);
                self.watch(watch, pods, after, move |pod| Object::Pod(index, pod))
            }
            // Everywhere: one that is labelled outside the class's namespaces is told of.
            Watch::DaemonSets(index) => {
                let daemon_sets = at(DaemonSetObject::url_path(&(), None))
                    .labels(classes[index].selector.to_string());
                let wrap = move |daemon_set| Object::DaemonSet(index, daemon_set);
                self.watch(watch, daemon_sets, after, wrap)
            }
            Watch::NodeClaims => {
                let claims = at(NodeClaimObject::url_path(&(), None));
                self.watch(watch, claims, after, Object::NodeClaim)
            }
            Watch::NodePools => {
                let pools = at(NodePoolObject::url_path(&(), None));
                self.watch(watch, pools, after, Object::NodePool)
            }
        };
    }

    fn watch<K, Wrap>(
        &self,
        kind: Watch,
        source: WatchSource,
        after: Option<String>,
        wrap: Wrap,
    ) -> AbortHandle
    where
        K: Resource + Clone + DeserializeOwned + Send + 'static,
        Wrap: Fn(K) -> Object + Send + Sync + 'static,
    {
        let counter = |family: &prometheus::IntCounterVec| family.with_label_values(&[kind.name()]);
        let feed = Feed {
            kind,
            source,
            wrap,
            course: after.map_or_else(Course::new, Course::after),
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

    /// Makes the next request and takes in all that comes of it.
    async fn step<K>(&mut self) -> Result<(), Stopped>
    where
        K: Resource + Clone + DeserializeOwned,
        Wrap: Fn(K) -> Object,
    {
        let wanted = *self.feeder.confirmations.borrow_and_update();
        let result = match self.course.next(wanted) {
            Question::List { token } => self.list(token).await?,
            Question::Watch { version, length } => self.watch(&version, length).await?,
        };
        let Err(failure) = result else { return Ok(()) };
        self.failures.inc();
        let end = failure.end();
        self.course.ended(end);
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
        let Ok(view) = self
            .course
            .page(metadata.resource_version, metadata.continue_)
        else {
            return Ok(Err(Failure::NoVersion));
        };
        if is_first {
            self.send(Seen::Listing(self.kind)).await?;
        }
        for object in list.items {
            self.send(Seen::Put((self.wrap)(object))).await?;
        }
        if view != View::Unchanged {
            self.send(Seen::Synced(self.kind)).await?;
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
        // Asked for again: this one cannot give the confirmation that is wanted.
        let mut confirmations = self.feeder.confirmations.clone();
        let mut asked_again = pin!(async move {
            if confirmations.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        let events = tokio::select! {
            () = &mut asked_again => return Ok(Ok(())),
            events = self.source.watch::<K>(version, length) => events,
        };
        let mut events = match events {
            Ok(events) => events,
            Err(failure) => return Ok(Err(failure)),
        };
        loop {
            let event = tokio::select! {
                () = &mut asked_again => return Ok(Ok(())),
                event = events.next() => event,
            };
            match event {
                Ok(Some(event)) => {
                    if let Err(failure) = self.take(event).await? {
                        return Ok(Err(failure));
                    }
                }
                Ok(None) => {
                    let view = self.course.ended(End::Closed {
                        ran: events.ran(),
                        quiet: events.quiet(),
                    });
                    if view == View::Interrupted {
                        return Ok(Err(Failure::BrokenOff));
                    }
                    self.judge(view).await?;
                    return Ok(Ok(()));
                }
                Err(failure) => return Ok(Err(failure)),
            }
        }
    }

    /// Takes in what a watch shows.
    async fn take<K>(&mut self, event: WatchEvent<K>) -> Result<Result<(), Failure>, Stopped>
    where
        K: Resource,
        Wrap: Fn(K) -> Object,
    {
        let (object, seen): (K, fn(Object) -> Seen) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, Seen::Put),
            WatchEvent::Deleted(object) => (object, Seen::Gone),
            WatchEvent::Bookmark(bookmark) => {
                let view = self.course.bookmark(bookmark.metadata.resource_version);
                self.judge(view).await?;
                return Ok(Ok(()));
            }
            WatchEvent::Error(status) => return Ok(Err(Failure::Refused(status))),
        };
        match object.meta().resource_version.clone() {
            Some(version) if !version.is_empty() => self.course.saw(version),
            _ => return Ok(Err(Failure::NoVersion)),
        }
        self.works();
        self.send(seen((self.wrap)(object))).await?;
        Ok(Ok(()))
    }

    /// Tells of a view that is up to date.
    async fn judge(&mut self, view: View) -> Result<(), Stopped> {
        let View::Confirmed(confirmation) = view else {
            return Ok(());
        };
        self.works();
        self.retry = Backoff::default();
        self.send(Seen::Confirmed(self.kind, confirmation)).await
    }

    async fn send(&self, seen: Seen) -> Result<(), Stopped> {
        let sent = self.feeder.changes.send(seen).await;
        sent.map_err(|_| Stopped)
    }

    /// Tells why the watch does not work, unless it has been told.
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

    /// Notes that something has been seen.
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
