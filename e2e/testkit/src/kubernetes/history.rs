//! Records every state of the nodes from a watch, to catch what must not happen even for a moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::task::JoinHandle;

use crate::kubernetes::state;

/// Watches the nodes until dropped.
#[derive(Debug)]
pub struct NodeHistory {
    seen: Arc<Mutex<Vec<Node>>>,
    watching: JoinHandle<()>,
}

impl NodeHistory {
    /// Starts with the current nodes.
    pub async fn of_nodes(client: &Client) -> Result<Self> {
        let nodes: Api<Node> = Api::all(client.clone());
        let mut events = watcher(nodes, watcher::Config::default()).boxed();
        let mut listed = Vec::new();
        while let Some(event) = events.next().await {
            match event.context("listing and watching the nodes")? {
                Event::InitApply(node) => listed.push(node),
                Event::InitDone => break,
                Event::Init | Event::Apply(_) | Event::Delete(_) => {}
            }
        }
        let seen = Arc::new(Mutex::new(listed));
        let watching = tokio::spawn({
            let seen = seen.clone();
            async move {
                // An interrupted watch resumes from its last event.
                while let Some(event) = events.next().await {
                    if let Ok(Event::Apply(node) | Event::InitApply(node)) = event {
                        lock(&seen).push(node);
                    }
                }
            }
        });
        Ok(Self { seen, watching })
    }

    /// Every state of each node since the start, by name and oldest first, up to the current state of node `node`.
    pub async fn up_to(&self, client: &Client, node: &str) -> Result<BTreeMap<String, Vec<Node>>> {
        let now = state::node(client, node).await?.resource_version();
        crate::kubernetes::eventually(
            "the watch is up to date",
            crate::kubernetes::wait::CATCH_UP,
            async || {
                let seen = lock(&self.seen);
                Ok(seen.iter().any(|seen| seen.resource_version() == now))
            },
        )
        .await?;
        let mut by_name = BTreeMap::<String, Vec<Node>>::new();
        for node in lock(&self.seen).iter() {
            by_name
                .entry(node.name_any())
                .or_default()
                .push(node.clone());
        }
        Ok(by_name)
    }
}

impl Drop for NodeHistory {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

fn lock(seen: &Mutex<Vec<Node>>) -> MutexGuard<'_, Vec<Node>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
