//! What a review looks at beside the rule itself, read from the API server for each request: rules are written rarely,
//! and a cache may not have what was written a moment ago.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::try_join_all;
use kube::api::ListParams;
use kube::{Api, Client};
use tracing::debug;

use crate::causes::with_causes;
use crate::condition::CriticalComponentClass;
use crate::object::{DaemonSet, DaemonSetObject, Node, NodeObject, ObjectKey, RuleObject};
use crate::rule::{CompiledSpec, Rule};

/// How long the rules may take to list. Longer than what is only for warnings, shorter than what the API server waits.
const RULES_DEADLINE: Duration = Duration::from_secs(5);
/// How long may be spent on what is only for warnings.
const WARNINGS_DEADLINE: Duration = Duration::from_secs(2);
/// How many nodes are looked at.
const NODES: u32 = 500;

/// What is in the cluster beside the rule.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// Every rule, the one under review among them where it is there already.
    pub rules: Vec<Rule>,
    /// The labelled `DaemonSet`s of each class, in the order of the classes; none where they could not be read.
    pub daemon_sets: Vec<BTreeMap<ObjectKey, DaemonSet>>,
    /// The `DaemonSet`s that the rule waits for by name, each if there is one; none where they could not be read.
    pub named: Vec<(ObjectKey, Option<DaemonSet>)>,
    /// Some nodes, where they could be read.
    pub nodes: Option<NodeSample>,
}

/// Some nodes, and what they report.
#[derive(Debug, Default)]
pub struct NodeSample {
    /// How many there are.
    pub count: usize,
    /// Those of them that the rule selects.
    pub nodes: Vec<Node>,
    /// Whether the rule selects them. Otherwise it selects none that is there today, and these are others.
    pub selected: bool,
    /// Whether there are more that were not looked at.
    pub more: bool,
    /// The condition types that at least one of them has.
    pub condition_types: BTreeSet<String>,
}

/// Looks at the cluster around a rule with this spec.
///
/// # Errors
/// When the rules cannot be listed; says why, and what to do. Everything else is left out where it cannot be read.
pub async fn find(
    client: &Client,
    classes: &[CriticalComponentClass],
    spec: &CompiledSpec,
) -> Result<Surroundings, String> {
    let (rules, daemon_sets, named, nodes) = tokio::join!(
        rules(client, classes),
        in_time("DaemonSets", daemon_sets(client, classes)),
        in_time("DaemonSets", named(client, spec)),
        in_time("nodes", nodes(client, spec)),
    );
    Ok(Surroundings {
        rules: rules?,
        daemon_sets: daemon_sets.unwrap_or_default(),
        named: named.unwrap_or_default(),
        nodes,
    })
}

async fn rules(client: &Client, classes: &[CriticalComponentClass]) -> Result<Vec<Rule>, String> {
    let api: Api<RuleObject> = Api::all(client.clone());
    let params = ListParams::default();
    let listed = tokio::time::timeout(RULES_DEADLINE, api.list(&params)).await;
    let error = match listed {
        Ok(Ok(list)) => {
            return Ok(list
                .items
                .into_iter()
                .map(|rule| Rule::compile(&rule.metadata, rule.spec, classes))
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

async fn daemon_sets(
    client: &Client,
    classes: &[CriticalComponentClass],
) -> kube::Result<Vec<BTreeMap<ObjectKey, DaemonSet>>> {
    let api: Api<DaemonSetObject> = Api::all(client.clone());
    let lists = classes.iter().map(|class| {
        let (api, params) = (
            &api,
            ListParams::default().labels(&class.selector.to_string()),
        );
        async move { api.list(&params).await }
    });
    let by_key = |daemon_set: DaemonSet| (daemon_set.key.clone(), daemon_set);
    Ok(try_join_all(lists)
        .await?
        .into_iter()
        .map(|list| {
            list.items
                .into_iter()
                .filter_map(|object| object.read().ok().map(by_key))
                .collect()
        })
        .collect())
}

/// The `DaemonSet`s that the rule waits for by name.
async fn named(
    client: &Client,
    spec: &CompiledSpec,
) -> kube::Result<Vec<(ObjectKey, Option<DaemonSet>)>> {
    let lists = spec.daemon_sets().map(async |key| {
        let api: Api<DaemonSetObject> = Api::namespaced(client.clone(), &key.namespace);
        let this = ListParams::default().fields(&format!("metadata.name={}", key.name));
        let found = api.list(&this).await?.items.pop();
        let daemon_set = found.and_then(|object| object.read().ok());
        Ok::<_, kube::Error>((key.clone(), daemon_set))
    });
    try_join_all(lists).await
}

/// Nodes that the rule selects, or where there is none, any.
async fn nodes(client: &Client, spec: &CompiledSpec) -> kube::Result<NodeSample> {
    let api: Api<NodeObject> = Api::all(client.clone());
    let some = ListParams::default().limit(NODES);
    let selected = api
        .list(&some.clone().labels(&spec.selector.to_string()))
        .await?;
    let is_selected = !selected.items.is_empty();
    let list = if is_selected {
        selected
    } else {
        api.list(&some).await?
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

/// What could be read in time.
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
