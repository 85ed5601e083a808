//! The watches: one for each kind of object, filtered by the server, resumed where it broke off, and feeding one
//! channel. Says in words why a watch cannot work and what to do about it.

use std::fmt::Debug;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures::{Stream, StreamExt};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::{info, warn};

use super::cache::{Change, Watch};
use super::health::Readiness;
use super::metrics::Metrics;
use super::writer::{KARPENTER_RBAC, RBAC};
use crate::causes::with_causes;
use crate::condition::{CriticalComponentClass, Namespaces};

/// How long the server may keep a watch open, in seconds. A dead connection is noticed 5 s later.
const WATCH_TIMEOUT: u32 = 50;
/// Longest pause before a watch is tried again, without the jitter, which may double it. Until then nothing is seen of
/// an API server that is back, and a handful of requests a second costs nobody anything.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// How often it is seen whether a resource that the cluster can do without has been installed.
const NOT_INSTALLED_PAUSE: Duration = Duration::from_secs(10);
/// A failure that follows another after this long has nothing to do with it.
const LONG_AGO: Duration = Duration::from_secs(120);

/// Where watches feed what they see, and where they tell how they fare.
#[derive(Debug, Clone)]
pub struct Feeder {
    /// Takes what is seen.
    pub changes: mpsc::Sender<Change>,
    /// Takes what keeps a watch from working.
    pub readiness: watch::Sender<Readiness>,
    /// Counts failures.
    pub metrics: Metrics,
    /// What to call the API server where it cannot be reached.
    pub server: String,
}

/// Starts the watches of Karpenter's objects.
pub fn spawn_karpenter(client: &Client, feeder: &Feeder) {
    feeder.watch(
        Watch::NodeClaims,
        Api::all(client.clone()),
        config(),
        Change::NodeClaim,
    );
    feeder.watch(
        Watch::NodePools,
        Api::all(client.clone()),
        config(),
        Change::NodePool,
    );
}

/// Starts all watches but those of Karpenter's objects. They end when the receiver of the changes is dropped.
pub fn spawn_all(client: &Client, classes: &[CriticalComponentClass], feeder: &Feeder) {
    feeder.watch(
        Watch::Nodes,
        Api::all(client.clone()),
        config(),
        Change::Node,
    );
    feeder.watch(
        Watch::CsiNodes,
        Api::all(client.clone()),
        config(),
        Change::CsiNode,
    );
    feeder.watch(
        Watch::Rules,
        Api::all(client.clone()),
        config(),
        Change::Rule,
    );
    for (index, class) in classes.iter().enumerate() {
        let labelled = config().labels(&class.selector.to_string());
        // Pods that are not bound yet or have ended say nothing about a node: the server leaves them out.
        let bound = labelled
            .clone()
            .fields("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed");
        let pods = api_in(client, &class.namespaces);
        // Everywhere: one that is labelled outside the class's namespaces is told of.
        let daemon_sets = Api::all(client.clone());
        feeder.watch(Watch::Pods(index), pods, bound, move |event| {
            Change::Pod(index, event)
        });
        feeder.watch(
            Watch::DaemonSets(index),
            daemon_sets,
            labelled,
            move |event| Change::DaemonSet(index, event),
        );
    }
}

fn config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_TIMEOUT)
}

/// All namespaces, unless the class covers just one.
fn api_in<K>(client: &Client, namespaces: &Namespaces) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    match namespaces {
        Namespaces::Only(names) if names.len() == 1 => names.first().map_or_else(
            || Api::all(client.clone()),
            |name| Api::namespaced(client.clone(), name),
        ),
        _ => Api::all(client.clone()),
    }
}

impl Feeder {
    fn watch<K>(
        &self,
        kind: Watch,
        api: Api<K>,
        config: watcher::Config,
        change: impl Fn(watcher::Event<K>) -> Change + Send + 'static,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        tokio::spawn(feed(kind, watcher(api, config), change, self.clone()));
    }
}

async fn feed<K>(
    kind: Watch,
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send,
    change: impl Fn(watcher::Event<K>) -> Change + Send,
    feeder: Feeder,
) {
    let failures = feeder
        .metrics
        .watch_failures
        .with_label_values(&[kind.name()]);
    let restarts = feeder
        .metrics
        .watch_restarts
        .with_label_values(&[kind.name()]);
    let mut has_started = false;
    let pauses = ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(MAX_PAUSE)
        .with_jitter()
        .without_max_times();
    let mut pause = pauses.build();
    let mut problem: Option<String> = None;
    let mut failed_at: Option<Instant> = None;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                // Also after a failure that is nothing to talk about.
                if matches!(event, watcher::Event::Init)
                    && std::mem::replace(&mut has_started, true)
                {
                    restarts.inc();
                }
                if matches!(event, watcher::Event::Init) && problem.is_some() {
                    // The list that follows may still fail.
                } else if problem.take().is_some() {
                    pause = pauses.build();
                    info!(watch = %kind.name(), "watch works again");
                    feeder
                        .readiness
                        .send_modify(|readiness| readiness.clear_problem(kind));
                }
                if feeder.changes.send(change(event)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                failures.inc();
                // A watch that works again says nothing until something happens: this is a new failure.
                if failed_at.is_some_and(|at| at.elapsed() > LONG_AGO) {
                    pause = pauses.build();
                    problem = None;
                }
                failed_at = Some(Instant::now());
                if kind == Watch::Nodes
                    && feeder.changes.send(Change::NodesInterrupted).await.is_err()
                {
                    return;
                }
                let not_installed = kind.not_installed(&error);
                let is_optional = not_installed.is_some();
                if let Some(change) = not_installed
                    && feeder.changes.send(change).await.is_err()
                {
                    return;
                }
                let explained = explain(kind, &error, &feeder.server);
                // A watch that merely has to be resumed is nothing to talk about.
                if let Some(explained) = explained
                    && problem.as_ref() != Some(&explained)
                {
                    warn!(watch = %kind.name(), "{explained}; trying again");
                    feeder
                        .readiness
                        .send_modify(|readiness| readiness.set_problem(kind, explained.clone()));
                    problem = Some(explained);
                }
                let pause = if is_optional {
                    NOT_INSTALLED_PAUSE
                } else {
                    pause.next().unwrap_or(MAX_PAUSE)
                };
                tokio::time::sleep(pause).await;
            }
        }
    }
}

impl Watch {
    /// What is watched, as the API calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::CsiNodes => "csinodes.storage.k8s.io",
            Self::Pods(_) => "pods",
            Self::DaemonSets(_) => "daemonsets.apps",
            Self::Rules => "nodereadinessrules.readiness.node.x-k8s.io",
            Self::NodeClaims => "nodeclaims.karpenter.sh",
            Self::NodePools => "nodepools.karpenter.sh",
        }
    }

    /// The folder of manifests that grants what the watch needs.
    fn rbac(self) -> &'static str {
        match self {
            Self::NodeClaims | Self::NodePools => KARPENTER_RBAC,
            _ => RBAC,
        }
    }

    /// What it means for the cache that the cluster has no such resource, where it can do without.
    fn not_installed(self, error: &watcher::Error) -> Option<Change> {
        let (watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status)) = error
        else {
            return None;
        };
        match self {
            Self::NodeClaims if status.code == 404 => Some(Change::NoNodeClaims),
            Self::NodePools if status.code == 404 => Some(Change::NoNodePools),
            _ => None,
        }
    }
}

/// Why a watch fails, and what to do about it; `None` where resuming it is all there is to do.
fn explain(kind: Watch, error: &watcher::Error, server: &str) -> Option<String> {
    let name = kind.name();
    let error = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error,
        watcher::Error::WatchError(status) if status.code == 410 => return None,
        watcher::Error::WatchError(status) => {
            return Some(format!("cannot watch {name}: {}", status.message));
        }
        watcher::Error::NoResourceVersion => {
            return Some(format!("{name} cannot be watched on this API server"));
        }
    };
    Some(match error {
        kube::Error::Api(status) => match status.code {
            404 if kind == Watch::Rules => format!(
                "the CustomResourceDefinition {name} is not installed: install it with `kubectl apply -k config/crd`"
            ),
            404 if matches!(kind, Watch::NodeClaims | Watch::NodePools) => format!(
                "the CustomResourceDefinition {name} is not installed: no NodeClaim can be deleted until Karpenter is installed"
            ),
            401 => format!(
                "the API server does not know who we are ({}): check the kubeconfig's credentials",
                status.message
            ),
            403 => format!(
                "no permission to list and watch {name} ({}): grant it with `kubectl apply -k {}`",
                status.message,
                kind.rbac()
            ),
            410 => return None,
            _ => format!("cannot watch {name}: {}", status.message),
        },
        kube::Error::SerdeError(error) => {
            format!("cannot understand the API server's {name}: {error}")
        }
        error => format!(
            "cannot reach the API server at {server} to watch {name}: {} (check that it runs, and that the kubeconfig names the right server)",
            with_causes(error)
        ),
    })
}
