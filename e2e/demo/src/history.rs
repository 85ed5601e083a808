//! What has been seen of the cluster: every state of its nodes and pods, from watches.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Instant;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use testkit::nodegate::state::{count_taints, is_ready};

use crate::manifests::{TAINTS, WORKLOADS};

/// Every state so far, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub nodes: Vec<(Moment, Node)>,
    pub pods: Vec<(Moment, Pod)>,
    /// When the CSI driver was registered on each node.
    pub registered: BTreeMap<String, Moment>,
}

/// When something happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The revision of the store. All objects are in one etcd here, so it orders all writes.
    pub revision: u64,
    pub at: Instant,
}

impl Moment {
    /// That of an object's last change.
    pub(crate) fn of(object: &impl ResourceExt, at: Instant) -> Self {
        let revision = object.resource_version();
        let revision = revision.and_then(|it| it.parse().ok()).unwrap_or_default();
        Self { revision, at }
    }
}

/// A period in which a node had a rule's taint.
#[derive(Debug)]
pub(crate) struct Period {
    pub gated: Moment,
    pub released: Option<Moment>,
}

impl History {
    /// The periods in which each node was held, by the node's name.
    pub(crate) fn held(&self) -> BTreeMap<String, Vec<Period>> {
        let mut held = BTreeMap::<String, Vec<Period>>::new();
        for (moment, node) in &self.nodes {
            let is_held = TAINTS.iter().any(|taint| count_taints(node, taint) > 0);
            let periods = held.entry(node.name_any()).or_default();
            let open = periods.last_mut().filter(|it| it.released.is_none());
            match open {
                Some(period) if !is_held => period.released = Some(*moment),
                None if is_held => periods.push(Period {
                    gated: *moment,
                    released: None,
                }),
                _ => {}
            }
        }
        held
    }

    /// How many nodes are not held.
    pub(crate) fn released(&self) -> usize {
        let is_released = |periods: &Vec<Period>| periods.iter().all(|it| it.released.is_some());
        let held = self.held();
        held.values().filter(|it| is_released(it)).count()
    }

    /// When a pod of this app was first Ready on a node.
    pub(crate) fn ready(&self, app: &str, node: &str) -> Option<Moment> {
        let is_it = |pod: &Pod| app_of(pod) == app && node_of(pod) == Some(node) && is_ready(pod);
        let mut pods = self.pods.iter();
        pods.find(|(_, pod)| is_it(pod)).map(|(moment, _)| *moment)
    }

    /// The states of the workloads' pods, each with the pod's name.
    pub(crate) fn workload(&self) -> impl Iterator<Item = (String, Moment, &Pod)> {
        let of_workload = |(_, pod): &&(Moment, Pod)| WORKLOADS.contains(&app_of(pod));
        let pods = self.pods.iter().filter(of_workload);
        pods.map(|(moment, pod)| (pod.name_any(), *moment, pod))
    }

    /// The workloads' pods as they are now.
    pub(crate) fn workload_now(&self) -> Vec<&Pod> {
        let latest: BTreeMap<String, &Pod> =
            self.workload().map(|(name, _, pod)| (name, pod)).collect();
        latest.into_values().collect()
    }

    /// How many of the workloads' pods are Ready.
    pub(crate) fn running(&self) -> usize {
        let pods = self.workload_now().into_iter();
        pods.filter(|pod| is_ready(pod)).count()
    }
}

fn app_of(pod: &Pod) -> &str {
    pod.labels().get("app").map_or("", String::as_str)
}

/// The node that a pod is bound to.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Records what happens until dropped.
pub(crate) async fn record(client: &Client, history: &RefCell<History>) {
    futures::join!(
        watch(client, |node| history.borrow_mut().nodes.push(node)),
        watch(client, |pod| history.borrow_mut().pods.push(pod)),
    );
}

async fn watch<K>(client: &Client, see: impl Fn((Moment, K)))
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let objects = Api::<K>::all(client.clone());
    let mut events = pin!(watcher(objects, Config::default()).default_backoff());
    // An interrupted watch resumes from its last event.
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
            see((Moment::of(&object, Instant::now()), object));
        }
    }
}
