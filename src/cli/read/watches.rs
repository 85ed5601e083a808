//! Watches by kube-runtime, for displays only: they do not track how stale a view may be.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use k8s_openapi::NamespaceResourceScope;
use kube::core::Status;
use kube::runtime::watcher::{self, Config, DefaultBackoff, Event, watcher};
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::builder::kind;
use crate::cluster::{Cluster, Filter, Unreadable};
use crate::controller::watch::explain;
use crate::engine::io::Object;
use crate::engine::kind::Watch;

/// The timeout of a watch, in seconds: a dead connection is noticed soon after it.
const LENGTH: u32 = 15;
/// The longest pause before a failed watch restarts.
const LONGEST: Duration = Duration::from_secs(10);

type WatchStream = BoxStream<'static, watcher::Result<Event<Object>>>;

pub(super) struct Watchers {
    client: Client,
    server: String,
    under_way: BTreeMap<Watch, WatchStream>,
    /// Why watches do not work, by the watched resource.
    problems: BTreeMap<&'static str, String>,
}

impl Watchers {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            client: cluster.client.clone(),
            server: cluster.server.clone(),
            under_way: BTreeMap::new(),
            problems: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, watch: Watch, filter: &Filter) {
        let client = self.client.clone();
        let config = Config {
            label_selector: filter.labels(),
            field_selector: filter.fields(),
            ..Config::default().timeout(LENGTH)
        };
        let events = match watch {
            Watch::Nodes => events(Api::all(client), config, Object::Node),
            Watch::CsiNodes => events(Api::all(client), config, Object::CsiNode),
            Watch::Pods(group) => {
                let wrap = move |pod| Object::Pod(group, pod);
                events(namespaced(client, filter), config, wrap)
            }
            Watch::DaemonSets(group) => {
                let wrap = move |daemon_set| Object::DaemonSet(group, daemon_set);
                events(namespaced(client, filter), config, wrap)
            }
            Watch::ResourceSlices(group) => {
                let wrap = move |slice| Object::ResourceSlice(group, slice);
                events(Api::all(client), config, wrap)
            }
            Watch::Rules => events(Api::all(client), config, Object::Rule),
            Watch::NodeClaims => events(Api::all(client), config, Object::NodeClaim),
            Watch::NodePools => events(Api::all(client), config, Object::NodePool),
        };
        self.under_way.insert(watch, events);
    }

    pub(super) fn end(&mut self, watch: Watch) {
        self.under_way.remove(&watch);
        self.problems.remove(watch.name());
    }

    /// The next event of any watch. Cancel safe.
    pub(super) async fn next(&mut self) -> (Watch, Result<Event<Object>, Unreadable>) {
        let next = poll_fn(|cx| {
            for (watch, events) in &mut self.under_way {
                if let Poll::Ready(Some(shown)) = events.poll_next_unpin(cx) {
                    return Poll::Ready((*watch, shown));
                }
            }
            Poll::Pending
        });
        let (watch, shown) = next.await;
        let name = watch.name();
        let shown = shown.map_err(|error| {
            if let Some(problem) = explain(&error, watch, &self.server) {
                self.problems.insert(name, problem);
            }
            Unreadable::of(kind(watch), &cause(error), &self.server)
        });
        // `Init` only means that the watch is being tried.
        if matches!(&shown, Ok(event) if !matches!(event, Event::Init)) {
            self.problems.remove(name);
        }
        (watch, shown)
    }

    pub(super) fn problem(&self) -> Option<&str> {
        self.problems.values().next().map(String::as_str)
    }
}

fn namespaced<K>(client: Client, filter: &Filter) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match &filter.namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    }
}

/// Lists, then watches. After any error it relists with a pause: the watcher itself would continue silently, and could request
/// an expired version forever.
fn events<K>(
    api: Api<K>,
    config: Config,
    wrap: impl Fn(K) -> Object + Send + Sync + 'static,
) -> WatchStream
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let wrap = move |event| match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(wrap(object)),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(wrap(object)),
        Event::Delete(object) => Event::Delete(wrap(object)),
    };
    let anew = Arc::new(move || watcher(api.clone(), config.clone()).boxed());
    let first = (Some(anew()), DefaultBackoff::default());
    let shown = stream::unfold(first, move |(watch, mut pauses)| {
        let anew = anew.clone();
        async move {
            let mut watch = if let Some(watch) = watch {
                watch
            } else {
                let pause = pauses.next().unwrap_or(LONGEST);
                sleep(pause.min(LONGEST)).await;
                anew()
            };
            let event = watch.next().await?;
            let goes_on = event.is_ok().then_some(watch);
            Some((event, (goes_on, pauses)))
        }
    });
    shown.map_ok(wrap).boxed()
}

fn cause(error: watcher::Error) -> Error {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error,
        watcher::Error::WatchError(status) => Error::Api(status),
        watcher::Error::NoResourceVersion => {
            Error::Api(Status::failure("the list has no version", "").boxed())
        }
    }
}
