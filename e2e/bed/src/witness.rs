//! Every state that the nodes went through, as a watch shows it: for what must not happen even for a moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use tokio::task::JoinHandle;

use crate::sights;

/// Watches the nodes until it is dropped.
#[derive(Debug)]
pub struct Witness {
    seen: Arc<Mutex<Vec<Node>>>,
    watching: JoinHandle<Result<()>>,
}

impl Witness {
    /// Starts with the nodes as they are now.
    ///
    /// # Errors
    ///
    /// When they cannot be listed and watched.
    pub async fn of_nodes(client: &Client) -> Result<Self> {
        let nodes: Api<Node> = Api::all(client.clone());
        let list = nodes.list(&kube::api::ListParams::default()).await;
        let list = list.context("listing the nodes")?;
        let version = list.metadata.resource_version.unwrap_or_default();
        let events = nodes.watch(&WatchParams::default(), &version).await;
        let mut events = events.context("watching the nodes")?.boxed();
        let seen = Arc::new(Mutex::new(list.items));
        let watching = tokio::spawn({
            let seen = seen.clone();
            async move {
                while let Some(event) = events.try_next().await? {
                    if let WatchEvent::Added(node) | WatchEvent::Modified(node) = event {
                        lock(&seen).push(node);
                    }
                }
                Ok(())
            }
        });
        Ok(Self { seen, watching })
    }

    /// Every state since the start of each node, by name and oldest first, up to the node of this name as it is now.
    ///
    /// # Errors
    ///
    /// When the watch has ended early, or the node is gone.
    pub async fn up_to(&self, client: &Client, node: &str) -> Result<BTreeMap<String, Vec<Node>>> {
        let now = sights::node(client, node).await?.resource_version();
        crate::eventually(
            "the watch is up to date",
            crate::wait::CATCH_UP,
            async || {
                anyhow::ensure!(!self.watching.is_finished(), "the watch has ended");
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

impl Drop for Witness {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

fn lock(seen: &Mutex<Vec<Node>>) -> MutexGuard<'_, Vec<Node>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
