//! What a review looks at beside the rule itself. It is read from the API server for each request: rules are written rarely,
//! and a cache may lack what was written a moment ago. Whoever can reach the webhook can make it read, so it reads little at a
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use kube::api::{ListParams, ObjectList};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, Semaphore};
use tracing::debug;

use crate::causes::with_causes;
use crate::condition::CriticalComponentClass;
use crate::object::{DaemonSet, DaemonSetObject, Node, NodeObject, ObjectKey, RuleObject};
use crate::rule::{CompiledSpec, Rule};

/// How long the list of rules may take: longer than what is only for warnings, shorter than the API server waits.
const RULES_DEADLINE: Duration = Duration::from_secs(5);
/// How long may be spent on what is only for warnings.
const WARNINGS_DEADLINE: Duration = Duration::from_secs(2);
/// How many nodes are looked at.
const NODES: u32 = 500;
/// How many lists may be under way, over all reviews.
const READS: usize = 4;
/// How long other reviews use the labelled `DaemonSet`s that one review has read.
const FRESH: Duration = Duration::from_secs(1);

/// The labelled `DaemonSet`s of each class, in the order of the classes.
type Labelled = Arc<[BTreeMap<ObjectKey, DaemonSet>]>;

/// What is in the cluster beside the rule.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Every rule; the one under review, too, if it is there already.
    pub(super) rules: Vec<Rule>,
    /// Empty where they could not be read.
    pub(super) daemon_sets: Labelled,
    /// The `DaemonSet`s that the rule waits for by name, each if it exists; empty where they could not be read.
    pub(super) named: Vec<(ObjectKey, Option<DaemonSet>)>,
    /// Some nodes, where they could be read.
    pub(super) nodes: Option<NodeSample>,
}

/// Some nodes, and what they report.
#[derive(Debug, Default)]
pub(super) struct NodeSample {
    /// How many there are.
    pub(super) count: usize,
    /// Those of them that the rule selects.
    pub(super) nodes: Vec<Node>,
    /// Whether the rule selects them. Otherwise the rule selects no node today, and these are others.
    pub(super) selected: bool,
    /// Whether there are more that were not looked at.
    pub(super) more: bool,
    /// The condition types that at least one of them has.
    pub(super) condition_types: BTreeSet<String>,
}

pub(super) struct Surveyor {
    client: Client,
    classes: Arc<[CriticalComponentClass]>,
    reads: Semaphore,
    labelled: Mutex<Option<(Instant, Labelled)>>,
}

impl Surveyor {
    pub(super) fn new(client: Client, classes: Arc<[CriticalComponentClass]>) -> Self {
        Self {
            client,
            classes,
            reads: Semaphore::new(READS),
            labelled: Mutex::new(None),
        }
    }

    /// Looks at the cluster around a rule with this spec.
    ///
    /// It is an error, with what to do about it, if the rules cannot be listed. All else is left out where it cannot be read.
    pub(super) async fn survey(&self, spec: &CompiledSpec) -> Result<Surroundings, String> {
        let (rules, daemon_sets, named, nodes) = tokio::join!(
            self.rules(),
            in_time("DaemonSets", self.labelled()),
            in_time("DaemonSets", self.named(spec)),
            in_time("nodes", self.nodes(spec)),
        );
        Ok(Surroundings {
            rules: rules?,
            daemon_sets: daemon_sets.unwrap_or_default(),
            named: named.unwrap_or_default(),
            nodes,
        })
    }

    /// Lists objects, once no more than [`READS`] lists are under way.
    async fn list<K: Clone + Debug + DeserializeOwned>(
        &self,
        api: &Api<K>,
        params: &ListParams,
    ) -> kube::Result<ObjectList<K>> {
        // The semaphore is never closed.
        let _turn = self.reads.acquire().await;
        api.list(params).await
    }

    async fn rules(&self) -> Result<Vec<Rule>, String> {
        let api: Api<RuleObject> = Api::all(self.client.clone());
        let params = ListParams::default();
        let listed = tokio::time::timeout(RULES_DEADLINE, self.list(&api, &params)).await;
        let error = match listed {
            Ok(Ok(list)) => {
                return Ok(list
                    .items
                    .into_iter()
                    .map(|rule| Rule::compile(&rule.metadata, rule.spec, &self.classes))
                    .collect());
            }
            Ok(Err(error)) => error,
            Err(_) => {
                let seconds = RULES_DEADLINE.as_secs();
                return Err(format!(
                    "the rules could not be listed within {seconds} s; try again"
                ));
            }
        };
        Err(match error {
            kube::Error::Api(status) if status.code == 403 => format!(
                "the webhook has no permission to list rules ({}): grant it with `kubectl apply -k config/rbac`",
                status.message
            ),
            error => format!("the rules cannot be listed: {}", with_causes(&error)),
        })
    }

    /// The labelled `DaemonSet`s of each class. Reviews at about the same time share what one of them reads.
    async fn labelled(&self) -> kube::Result<Labelled> {
        let mut known = self.labelled.lock().await;
        if let Some((read, labelled)) = &*known
            && read.elapsed() < FRESH
        {
            return Ok(labelled.clone());
        }
        let read = Instant::now();
        let api: Api<DaemonSetObject> = Api::all(self.client.clone());
        let lists = self.classes.iter().map(async |class| {
            let params = ListParams::default().labels(&class.selector.to_string());
            self.list(&api, &params).await
        });
        let by_key = |daemon_set: DaemonSet| (daemon_set.key.clone(), daemon_set);
        let lists = try_join_all(lists).await?.into_iter();
        let objects = lists.map(|list| list.items.into_iter());
        let labelled: Labelled = objects
            .map(|objects| {
                objects
                    .filter_map(|it| it.read().ok().map(by_key))
                    .collect()
            })
            .collect();
        *known = Some((read, labelled.clone()));
        Ok(labelled)
    }

    /// The `DaemonSet`s that the rule waits for by name.
    async fn named(
        &self,
        spec: &CompiledSpec,
    ) -> kube::Result<Vec<(ObjectKey, Option<DaemonSet>)>> {
        let lists = spec.daemon_sets().map(async |key| {
            let api: Api<DaemonSetObject> = Api::namespaced(self.client.clone(), &key.namespace);
            let this = ListParams::default().fields(&format!("metadata.name={}", key.name));
            let found = self.list(&api, &this).await?.items.pop();
            let daemon_set = found.and_then(|object| object.read().ok());
            Ok::<_, kube::Error>((key.clone(), daemon_set))
        });
        try_join_all(lists).await
    }

    /// Some nodes that the rule selects; any nodes where it selects none.
    async fn nodes(&self, spec: &CompiledSpec) -> kube::Result<NodeSample> {
        let api: Api<NodeObject> = Api::all(self.client.clone());
        let some = ListParams::default().limit(NODES);
        let selecting = some.clone().labels(&spec.selector.to_string());
        let selected = self.list(&api, &selecting).await?;
        let is_selected = !selected.items.is_empty();
        let list = if is_selected {
            selected
        } else {
            self.list(&api, &some).await?
        };
        let more = list
            .metadata
            .continue_
            .is_some_and(|token| !token.is_empty());
        let count = list.items.len();
        let nodes: Vec<_> = list
            .items
            .into_iter()
            .filter_map(|node| node.read().ok())
            .collect();
        let conditions = nodes.iter().flat_map(|node| &node.conditions);
        Ok(NodeSample {
            count,
            condition_types: conditions.map(|condition| condition.kind.clone()).collect(),
            nodes: if is_selected { nodes } else { Vec::new() },
            selected: is_selected,
            more,
        })
    }
}

/// What was read within [`WARNINGS_DEADLINE`].
async fn in_time<T>(what: &str, read: impl Future<Output = kube::Result<T>>) -> Option<T> {
    match tokio::time::timeout(WARNINGS_DEADLINE, read).await {
        Ok(Ok(read)) => Some(read),
        Ok(Err(error)) => {
            debug!("no warnings about {what}: {}", with_causes(&error));
            None
        }
        Err(_) => {
            debug!("no warnings about {what}: they were not read in time");
            None
        }
    }
}
