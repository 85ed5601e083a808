//! Last looks: what a decision depends on, read from the API server itself, past all watches.
//!
//! A look at a node costs a request for each kind in doubt that belongs to a node (the Node, its `CSINode`, its pods of each
//! class). What is the same for all nodes (the rules, the `DaemonSet`s of each class) is read once a second at most, however
//! many nodes are looked at.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tracing::debug;

use super::evidence::{ClusterEvidence, List, NodeEvidence};
use super::reconcile::{Done, Reconciler};
use crate::condition::CriticalComponentClass;
use crate::controller::metrics::Metrics;
use crate::engine::RequestError;
use crate::engine::{Backoff, Pauses};
use crate::object::{self, CsiNodeObject, DaemonSetObject, NodeObject, PodObject, RuleObject};
use crate::plan::Doubts;

/// How many nodes are looked at at a time.
const CONCURRENCY: usize = 16;
/// How long a look may take.
const DEADLINE: Duration = Duration::from_secs(8);
/// How long after it was asked for a look counts. It is a part of the age that evidence may have.
const FRESH: Duration = Duration::from_secs(10);
/// How long what is the same for all nodes is not read again.
const SHARED: Duration = Duration::from_secs(1);

/// What one node's look has shown.
#[derive(Debug)]
pub(super) struct Seen {
    /// When it was asked for.
    asked: Instant,
    looked: Doubts,
    node: NodeEvidence,
    cluster: Option<Arc<ClusterEvidence>>,
}

/// What is under way for a node's looks.
#[derive(Debug, Default)]
pub(super) struct LookWork {
    under_way: bool,
    /// What was read last, and when that was asked for.
    had: Option<(Instant, Doubts)>,
    retry: Backoff,
}

impl LookWork {
    /// What was read so recently that there is no doubt about it, unless everything has come into doubt since.
    pub(super) fn fresh(&self, doubted: Option<Instant>, now: Instant) -> Doubts {
        let counts = |asked: Instant| {
            now.saturating_duration_since(asked) <= FRESH
                && doubted.is_none_or(|doubted| doubted <= asked)
        };
        self.had
            .filter(|(asked, _)| counts(*asked))
            .map(|(_, looked)| looked)
            .unwrap_or_default()
    }

    /// Notes what was read, beside what was read before and still counts: as old as the older of the two.
    fn had(&mut self, asked: Instant, looked: Doubts, doubted: Option<Instant>, now: Instant) {
        let before = self.fresh(doubted, now);
        let since = self.had.filter(|_| !before.is_empty());
        let asked = since.map_or(asked, |(before, _)| before.min(asked));
        self.had = Some((asked, looked.and(before)));
    }

    /// What there is of it for another node of the same name: what is under way ends in its own time.
    pub(super) fn for_another_node(&self) -> Self {
        Self {
            under_way: self.under_way,
            ..Self::default()
        }
    }
}

/// Reads what decisions depend on.
#[derive(Clone)]
pub struct Looker {
    client: Client,
    classes: Arc<[CriticalComponentClass]>,
    shared: Arc<Mutex<Option<Arc<ClusterEvidence>>>>,
    metrics: Metrics,
}

impl Looker {
    /// Looks through this client.
    pub fn new(client: Client, classes: &[CriticalComponentClass], metrics: Metrics) -> Self {
        for result in ["answered", "failed"] {
            metrics.last_looks.with_label_values(&[result]);
        }
        Self {
            client,
            classes: classes.into(),
            shared: Arc::default(),
            metrics,
        }
    }

    /// Reads these kinds, of this node.
    async fn look(&self, name: &str, kinds: Doubts) -> Result<Seen, RequestError> {
        let asked = Instant::now();
        let reads = async {
            Ok(Seen {
                asked,
                looked: kinds,
                cluster: if kinds.is_of_the_cluster() {
                    Some(self.cluster(asked).await?)
                } else {
                    None
                },
                node: self.node(name, kinds).await?,
            })
        };
        let seen = tokio::time::timeout(DEADLINE, reads)
            .await
            .unwrap_or(Err(RequestError::TimedOut(DEADLINE)));
        let result = if seen.is_ok() { "answered" } else { "failed" };
        self.metrics.last_looks.with_label_values(&[result]).inc();
        seen
    }

    async fn node(&self, name: &str, kinds: Doubts) -> Result<NodeEvidence, RequestError> {
        let mut evidence = NodeEvidence::default();
        if kinds.nodes {
            let nodes: Api<NodeObject> = Api::all(self.client.clone());
            evidence.node = Some(nodes.get(name).await?);
        }
        if kinds.csi_nodes {
            let csi_nodes: Api<CsiNodeObject> = Api::all(self.client.clone());
            let this = ListParams::default().fields(&format!("metadata.name={name}"));
            evidence.csi_node = Some(list(csi_nodes, this).await?);
        }
        for (index, class) in self.classes.iter().enumerate() {
            if kinds.has_class(index) {
                let bound = ListParams::default()
                    .labels(&class.selector.to_string())
                    .fields(&format!("spec.nodeName={name}"));
                let pods: Api<PodObject> = match class.namespaces.single() {
                    Some(namespace) => Api::namespaced(self.client.clone(), namespace),
                    None => Api::all(self.client.clone()),
                };
                evidence.pods.push((index, list(pods, bound).await?));
            }
        }
        Ok(evidence)
    }

    /// What is the same for all nodes, as it was when this was asked for or a moment before.
    async fn cluster(&self, asked: Instant) -> Result<Arc<ClusterEvidence>, RequestError> {
        let mut shared = self.shared.lock().await;
        if let Some(known) = &*shared
            && known.asked + SHARED >= asked
        {
            return Ok(known.clone());
        }
        let asked = Instant::now();
        let rules: Api<RuleObject> = Api::all(self.client.clone());
        let daemon_sets = self.classes.iter().map(|class| {
            let daemon_sets: Api<DaemonSetObject> = Api::all(self.client.clone());
            let labelled = ListParams::default().labels(&class.selector.to_string());
            list(daemon_sets, labelled)
        });
        let read = Arc::new(ClusterEvidence {
            asked,
            rules: list(rules, ListParams::default()).await?,
            daemon_sets: try_join_all(daemon_sets).await?,
        });
        *shared = Some(read.clone());
        Ok(read)
    }
}

async fn list<K>(api: Api<K>, params: ListParams) -> Result<List<K>, RequestError>
where
    K: Clone + DeserializeOwned + Debug,
{
    let list = api.list(&params).await?;
    Ok(List {
        version: object::version(list.metadata.resource_version.as_deref()),
        items: list.items,
    })
}

impl Reconciler {
    /// Looks at what the node's plan would go by, unless that is under way. Where too many others are looked at, it waits
    /// for its turn.
    pub(super) fn look_first(&mut self, name: &Arc<str>, kinds: Doubts) {
        let now = Instant::now();
        self.cache.withhold(name);
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        if work.look.under_way {
            return;
        }
        if let Some(at) = work.look.retry.not_before(now) {
            work.wake_at(at, name, &mut self.timers);
            return;
        }
        if self.looks >= CONCURRENCY {
            self.look_queue.insert(name.clone());
            return;
        }
        debug!(node = %name, ?kinds, "looking again before it is decided");
        work.look.under_way = true;
        self.looks += 1;
        let (looker, name) = (self.looker.clone(), name.clone());
        self.in_flight.spawn(async move {
            let result = looker.look(&name, kinds).await;
            (now, Done::Look { name, result })
        });
    }

    pub(super) fn finish_look(&mut self, name: &Arc<str>, mut result: Result<Seen, RequestError>) {
        self.looks -= 1;
        if let Some(next) = self.look_queue.pop_first() {
            self.cache.mark(&next);
        }
        if let Ok(seen) = &mut result {
            if let Some(cluster) = &seen.cluster {
                self.cache.take_in_cluster(cluster, self.now);
            }
            let node = std::mem::take(&mut seen.node);
            self.cache.take_in_node(name, node, self.now);
        }
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        work.look.under_way = false;
        match result {
            Ok(seen) => {
                work.look.retry = Backoff::default();
                work.look
                    .had(seen.asked, seen.looked, self.doubted, Instant::now());
            }
            Err(error) => {
                work.look.retry.failed(Pauses::REFUSED, Instant::now());
                if error.is_refusal() {
                    self.complain(
                        "cannot read again what the node is decided on",
                        name,
                        &error,
                    );
                }
            }
        }
        self.cache.mark(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_counts_for_a_while_and_beside_what_is_read_next() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let of = |mark: fn(&mut Doubts)| {
            let mut doubts = Doubts::default();
            mark(&mut doubts);
            doubts
        };
        let rules = of(|it| it.rules = true);
        let nodes = of(|it| it.nodes = true);
        let mut work = LookWork::default();
        assert!(work.fresh(None, start).is_empty());
        work.had(start, rules, None, start);
        work.had(after(4), nodes, None, after(4));
        assert_eq!(work.fresh(None, after(10)), rules.and(nodes));
        assert!(
            work.fresh(None, after(11)).is_empty(),
            "as old as the older"
        );
        assert!(
            work.fresh(Some(after(1)), after(4)).is_empty(),
            "everything has come into doubt since"
        );
        work.had(after(12), nodes, None, after(12));
        assert_eq!(work.fresh(None, after(20)), nodes);
    }
}
