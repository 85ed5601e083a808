//! Last looks: what a decision depends on, read from the API server itself, past all watches.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;

use super::answer::within;
use crate::condition::CriticalComponentClass;
use crate::engine::RequestError;
use crate::engine::evidence::{ClusterEvidence, List, NodeEvidence};
use crate::object::{self, CsiNodeObject, DaemonSetObject, NodeObject, PodObject, RuleObject};
use crate::plan::Doubts;

/// How long a look may take.
const DEADLINE: Duration = Duration::from_secs(8);

/// Reads what decisions depend on.
#[derive(Clone)]
pub struct Looker {
    client: Client,
    classes: Arc<[CriticalComponentClass]>,
}

impl Looker {
    /// Looks through this client.
    pub fn new(client: Client, classes: &[CriticalComponentClass]) -> Self {
        Self {
            client,
            classes: classes.into(),
        }
    }

    /// Reads these kinds, of this node.
    pub async fn node(&self, name: &str, kinds: Doubts) -> Result<NodeEvidence, RequestError> {
        within(DEADLINE, self.read_node(name, kinds)).await
    }

    /// Reads what is the same for all nodes.
    pub async fn cluster(&self) -> Result<ClusterEvidence, RequestError> {
        within(DEADLINE, self.read_cluster()).await
    }

    async fn read_node(&self, name: &str, kinds: Doubts) -> kube::Result<NodeEvidence> {
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

    async fn read_cluster(&self) -> kube::Result<ClusterEvidence> {
        let rules: Api<RuleObject> = Api::all(self.client.clone());
        let daemon_sets = self.classes.iter().map(|class| {
            let daemon_sets: Api<DaemonSetObject> = Api::all(self.client.clone());
            let labelled = ListParams::default().labels(&class.selector.to_string());
            list(daemon_sets, labelled)
        });
        Ok(ClusterEvidence {
            rules: list(rules, ListParams::default()).await?,
            daemon_sets: try_join_all(daemon_sets).await?,
        })
    }
}

async fn list<K>(api: Api<K>, params: ListParams) -> kube::Result<List<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    let list = api.list(&params).await?;
    Ok(List {
        version: object::version(list.metadata.resource_version.as_deref()),
        items: list.items,
    })
}
