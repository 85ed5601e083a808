//! Last looks: what a decision depends on, read from the API server itself, past all watches.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;

use super::answer::within;
use crate::condition::{Cohort, CriticalComponentClass};
use crate::engine::RequestError;
use crate::engine::evidence::{ClusterEvidence, List, NodeEvidence};
use crate::engine::kind::Scope;
use crate::object::{
    self, CsiNodeObject, DaemonSetObject, NodeObject, ObjectKey, PodObject, RuleObject,
};
use crate::plan::Doubts;
use crate::selector::Selector;

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

    /// Reads these kinds, of this node, and these pods on it.
    pub async fn node(
        &self,
        name: &str,
        kinds: Doubts,
        pods: Vec<(Cohort, Scope)>,
    ) -> Result<NodeEvidence, RequestError> {
        within(DEADLINE, self.read_node(name, kinds, pods)).await
    }

    /// Reads what is the same for all nodes, and these `DaemonSet`s besides.
    pub async fn cluster(
        &self,
        named: Vec<(Cohort, ObjectKey)>,
    ) -> Result<ClusterEvidence, RequestError> {
        within(DEADLINE, self.read_cluster(named)).await
    }

    async fn read_node(
        &self,
        name: &str,
        kinds: Doubts,
        pods: Vec<(Cohort, Scope)>,
    ) -> kube::Result<NodeEvidence> {
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
            if kinds.has_cohort(index) {
                let pods = self.read_pods(name, class.namespaces.single(), &class.selector);
                evidence.pods.push((index, pods.await?));
            }
        }
        for (cohort, scope) in pods {
            if let Scope::Pods(namespace, selector) = scope {
                let pods = self.read_pods(name, Some(&namespace), &selector);
                evidence.pods.push((cohort, pods.await?));
            }
        }
        Ok(evidence)
    }

    /// Reads those pods on a node that this selects, of one namespace or of all.
    async fn read_pods(
        &self,
        node: &str,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> kube::Result<List<PodObject>> {
        let bound = ListParams::default()
            .labels(&selector.to_string())
            .fields(&format!("spec.nodeName={node}"));
        let pods = match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        list(pods, bound).await
    }

    async fn read_cluster(&self, named: Vec<(Cohort, ObjectKey)>) -> kube::Result<ClusterEvidence> {
        let rules: Api<RuleObject> = Api::all(self.client.clone());
        let all: Api<DaemonSetObject> = Api::all(self.client.clone());
        let of_classes = self.classes.iter().enumerate().map(|(index, class)| {
            let labelled = ListParams::default().labels(&class.selector.to_string());
            (index, all.clone(), labelled)
        });
        let by_name = named.into_iter().map(|(cohort, key)| {
            let there = Api::namespaced(self.client.clone(), &key.namespace);
            let this = ListParams::default().fields(&format!("metadata.name={}", key.name));
            (cohort, there, this)
        });
        let daemon_sets = of_classes.chain(by_name);
        let daemon_sets = daemon_sets.map(async |(cohort, api, params)| {
            let list = list::<DaemonSetObject>(api, params).await?;
            Ok::<_, kube::Error>((cohort, list))
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
