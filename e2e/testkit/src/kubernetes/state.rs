//! Reads a cluster's state.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Event, Node, NodeCondition, Pod, Taint};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

pub async fn node(client: &Client, name: &str) -> Result<Node> {
    Api::all(client.clone())
        .get(name)
        .await
        .with_context(|| format!("reading node {name}"))
}

pub async fn taints(client: &Client, name: &str) -> Result<Vec<Taint>> {
    let spec = node(client, name).await?.spec.unwrap_or_default();
    Ok(spec.taints.unwrap_or_default())
}

/// Whether a node has a taint of this key.
pub async fn has_taint(client: &Client, name: &str, key: &str) -> Result<bool> {
    let taints = taints(client, name).await?;
    Ok(taints.iter().any(|taint| taint.key == key))
}

pub async fn node_condition(
    client: &Client,
    name: &str,
    condition_type: &str,
) -> Result<Option<NodeCondition>> {
    let status = node(client, name).await?.status.unwrap_or_default();
    let mut conditions = status.conditions.unwrap_or_default().into_iter();
    Ok(conditions.find(|condition| condition.type_ == condition_type))
}

pub async fn nodes(client: &Client) -> Result<Vec<Node>> {
    let nodes = Api::all(client.clone()).list(&ListParams::default()).await;
    Ok(nodes.context("listing the nodes")?.items)
}

pub fn taints_of(node: &Node) -> impl Iterator<Item = &Taint> {
    let spec = node.spec.iter();
    spec.flat_map(|spec| spec.taints.iter().flatten())
}

/// How many taints of this key a node has; more than one is an error.
pub fn count_taints(node: &Node, key: &str) -> usize {
    taints_of(node).filter(|taint| taint.key == key).count()
}

/// The events about a node, oldest first.
pub async fn events_on(client: &Client, node: &str) -> Result<Vec<Event>> {
    events_about(client, "Node", node).await
}

/// The events about an object of this kind, oldest first.
pub async fn events_about(client: &Client, kind: &str, name: &str) -> Result<Vec<Event>> {
    let about = ListParams::default().fields(&format!(
        "involvedObject.kind={kind},involvedObject.name={name}"
    ));
    let mut events = Api::<Event>::all(client.clone())
        .list(&about)
        .await
        .with_context(|| format!("listing the events about {kind} {name}"))?
        .items;
    // The API server's time of creation has whole seconds, and Events that are sent together may arrive in another order.
    events.sort_by_key(|it| {
        let told = it.event_time.as_ref().map(|time| time.0);
        told.or_else(|| Some(it.creation_timestamp()?.0))
    });
    Ok(events)
}

/// The reasons of the events about an object of this kind, oldest first.
pub async fn reasons_about(client: &Client, kind: &str, name: &str) -> Result<Vec<String>> {
    let events = events_about(client, kind, name).await?;
    Ok(events.into_iter().filter_map(|it| it.reason).collect())
}

pub async fn pods_on(client: &Client, node: &str) -> Result<Vec<Pod>> {
    let bound = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let pods = Api::<Pod>::all(client.clone())
        .list(&bound)
        .await
        .with_context(|| format!("listing the pods on node {node}"))?;
    Ok(pods.items)
}

/// Whether a pod's Ready condition is `True`.
pub fn is_ready(pod: &Pod) -> bool {
    pod.status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
