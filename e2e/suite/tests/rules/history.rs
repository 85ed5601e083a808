//! Every state of a node since the start of a test, from a watch.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use nodegate_testbed::{eventually, sights};
use tokio::task::JoinHandle;

use super::{SOON, key};

pub(crate) struct History {
    client: Client,
    name: String,
    states: Arc<Mutex<Vec<Node>>>,
    watch: JoinHandle<()>,
}

impl Drop for History {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl History {
    /// Starts with an earlier state, such as the node as created.
    pub(crate) async fn since(client: &Client, first: Node) -> Result<Self> {
        let name = first.name_any();
        let from = first.resource_version().context("a node has a version")?;
        let states = Arc::new(Mutex::new(vec![first]));
        let only = WatchParams::default().fields(&format!("metadata.name={name}"));
        let events = Api::<Node>::all(client.clone()).watch(&only, &from).await?;
        let seen = states.clone();
        let watch = tokio::spawn(async move {
            let mut events = std::pin::pin!(events);
            while let Ok(Some(event)) = events.try_next().await {
                if let WatchEvent::Added(node) | WatchEvent::Modified(node) = event {
                    seen.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(node);
                }
            }
        });
        Ok(Self {
            client: client.clone(),
            name,
            states,
            watch,
        })
    }

    /// All states so far, up to the node's current one.
    pub(crate) async fn states(&self) -> Result<Vec<Node>> {
        let now = sights::node(&self.client, &self.name).await?;
        eventually("the watch shows the present", SOON, async || {
            let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
            let shown = states
                .iter()
                .any(|state| state.resource_version() == now.resource_version());
            Ok(shown.then(|| states.clone()))
        })
        .await
    }
}

pub(crate) fn has_taint_of(node: &Node, rule: &str) -> bool {
    let key = key(rule);
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.taints.as_ref())
        .is_some_and(|taints| taints.iter().any(|taint| taint.key == key))
}
