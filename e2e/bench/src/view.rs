//! The observed state of nodes and pods, with times: causes and effects are both observed here, by the same clock.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1 as core;
use kube::api::{ApiResource, Object};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::world::{AGENT_READY, Gate, LABEL, NAMESPACE};

/// A boolean, and since when it has its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag {
    pub is: bool,
    /// When it was first observed.
    pub since: Instant,
}

impl Flag {
    fn new(is: bool, since: Instant) -> Self {
        Self { is, since }
    }

    /// Updates the value, and returns it if it changed.
    fn set(&mut self, is: bool, now: Instant) -> Option<bool> {
        if self.is == is {
            return None;
        }
        *self = Self::new(is, now);
        Some(is)
    }
}

/// The observed state of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeSight {
    /// Whether its agent is ready.
    pub agent: Flag,
    /// Whether it has the taint of each gate, in the order of [`Gate::ALL`].
    taints: [Flag; Gate::ALL.len()],
}

impl NodeSight {
    pub(crate) fn taint(&self, gate: Gate) -> Flag {
        self.taints[gate as usize]
    }
}

/// The observed state of everything.
#[derive(Debug, Default)]
pub(crate) struct Sights {
    /// The nodes.
    pub nodes: HashMap<String, NodeSight>,
    /// Whether each pod is Ready; false for one that is gone.
    pub pods: HashMap<String, Flag>,
    /// How many nodes have the taint of each gate.
    tainted: [usize; Gate::ALL.len()],
    /// How many nodes have a ready agent.
    pub agents: usize,
}

impl Sights {
    /// How many nodes have a gate's taint.
    pub(crate) fn tainted(&self, gate: Gate) -> usize {
        self.tainted[gate as usize]
    }

    /// Whether a node has a gate's taint, and since when; `None` for a node not yet observed.
    pub(crate) fn taint(&self, node: &str, gate: Gate) -> Option<Flag> {
        self.nodes.get(node).map(|node| node.taint(gate))
    }

    fn see_node(&mut self, node: &NodeObject, now: Instant) {
        let new = || NodeSight {
            agent: Flag::new(false, now),
            taints: [Flag::new(false, now); Gate::ALL.len()],
        };
        let sight = self.nodes.entry(node.name_any()).or_insert_with(new);
        count(
            &mut self.agents,
            sight
                .agent
                .set(is_true(node.status.as_ref(), AGENT_READY), now),
        );
        for gate in Gate::ALL {
            let change = sight.taints[gate as usize].set(has_taint(node, gate), now);
            count(&mut self.tainted[gate as usize], change);
        }
    }

    fn see_pod(&mut self, name: String, ready: bool, now: Instant) {
        let flag = self.pods.entry(name).or_insert(Flag::new(false, now));
        flag.set(ready, now);
    }
}

/// Updates a count of set flags after a change of one.
fn count(set: &mut usize, change: Option<bool>) {
    match change {
        Some(true) => *set += 1,
        Some(false) => *set -= 1,
        None => {}
    }
}

/// Watches until dropped.
#[derive(Debug)]
pub(crate) struct View {
    sights: watch::Sender<Sights>,
    watching: [JoinHandle<()>; 2],
}

impl View {
    /// Watches the benchmark's nodes and pods.
    pub(crate) fn open(client: &Client) -> Self {
        let sights = watch::Sender::new(Sights::default());
        let nodes =
            Api::<NodeObject>::all_with(client.clone(), &ApiResource::erase::<core::Node>(&()));
        let pods = ApiResource::erase::<core::Pod>(&());
        let pods = Api::<PodObject>::namespaced_with(client.clone(), NAMESPACE, &pods);
        let watching = [
            tokio::spawn(follow(
                nodes,
                sights.clone(),
                |sights, event, now| match event {
                    Event::Apply(node) | Event::InitApply(node) => sights.see_node(&node, now),
                    Event::Delete(_) | Event::Init | Event::InitDone => {}
                },
            )),
            tokio::spawn(follow(
                pods,
                sights.clone(),
                |sights, event, now| match event {
                    Event::Apply(pod) | Event::InitApply(pod) => {
                        sights.see_pod(pod.name_any(), is_true(pod.status.as_ref(), "Ready"), now);
                    }
                    Event::Delete(pod) => sights.see_pod(pod.name_any(), false, now),
                    Event::Init | Event::InitDone => {}
                },
            )),
        ];
        Self { sights, watching }
    }

    /// Waits until `settled` returns true. Returns false after a timeout.
    pub(crate) async fn until(
        &self,
        patience: Duration,
        settled: impl FnMut(&Sights) -> bool,
    ) -> bool {
        let mut sights = self.sights.subscribe();
        let mut settled = settled;
        let seen = sights.wait_for(|sights| settled(sights));
        tokio::time::timeout(patience, seen)
            .await
            .is_ok_and(|seen| seen.is_ok())
    }

    /// Evaluates `look` on the current state.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Sights) -> T) -> T {
        look(&self.sights.borrow())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.watching.iter().for_each(JoinHandle::abort);
    }
}

/// A node's decoded fields: fewer of them make the client faster.
type NodeObject = Object<NodeSpec, Status>;

/// A pod's decoded fields.
type PodObject = Object<PodSpec, Status>;

#[derive(Debug, Clone, Deserialize)]
struct NodeSpec {
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Debug, Clone, Deserialize)]
struct Taint {
    key: String,
}

#[derive(Debug, Clone, Deserialize)]
struct PodSpec {}

#[derive(Debug, Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// Whether a condition of an object's status is `True`.
fn is_true(status: Option<&Status>, kind: &str) -> bool {
    let conditions = status.into_iter().flat_map(|status| &status.conditions);
    let mut found = conditions.filter(|condition| condition.kind == kind);
    found.any(|condition| condition.status == "True")
}

async fn follow<K>(
    api: Api<K>,
    sights: watch::Sender<Sights>,
    see: impl Fn(&mut Sights, Event<K>, Instant),
) where
    K: kube::Resource + Clone + Debug + Send + serde::de::DeserializeOwned + 'static,
{
    let events = watcher(api, watcher::Config::default().labels(LABEL));
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let now = Instant::now();
        match event {
            Ok(event) => sights.send_modify(|sights| see(sights, event, now)),
            // The watcher restarts by itself; this keeps it from spinning.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

fn has_taint(node: &NodeObject, gate: Gate) -> bool {
    let taints = &node.spec.taints;
    taints.iter().any(|taint| taint.key == gate.key())
}
