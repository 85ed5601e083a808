//! Live reads: a decision's evidence, read from the API server directly instead of from the watches' caches.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{OptionFuture, join_all, join3};
use kube::api::ListParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;

use super::answer::within;
use crate::condition::{ComponentGroup, CriticalComponentClass};
use crate::engine::RequestError;
use crate::engine::freshness::evidence::{ClusterEvidence, List, NodeEvidence, Unread};
use crate::engine::kind::Scope;
use crate::object::{
    self, CsiNodeObject, DaemonSetObject, NodeObject, ObjectKey, PodObject, RuleObject,
};
use crate::plan::StaleKinds;
use crate::selector::Selector;

/// The timeout of one request.
const DEADLINE: Duration = Duration::from_secs(8);

/// Makes live reads.
#[derive(Clone)]
pub(super) struct Looker {
    client: Client,
    classes: Arc<[CriticalComponentClass]>,
}

impl Looker {
    /// The classes name the pods and `DaemonSet`s of their component groups.
    pub(super) fn new(client: Client, classes: &[CriticalComponentClass]) -> Self {
        Self {
            client,
            classes: classes.into(),
        }
    }

    /// Reads these kinds for one node, and these pods on it.
    ///
    /// # Errors
    /// When nothing could be read.
    pub(super) async fn node(
        &self,
        name: &str,
        kinds: &StaleKinds,
        pods: Vec<(ComponentGroup, Scope)>,
    ) -> Result<NodeEvidence, RequestError> {
        let node = OptionFuture::from(kinds.nodes.then_some(async {
            let nodes: Api<NodeObject> = Api::all(self.client.clone());
            within(DEADLINE, nodes.get(name)).await
        }));
        let csi_node = OptionFuture::from(kinds.csi_nodes.then_some(async {
            let csi_nodes: Api<CsiNodeObject> = Api::all(self.client.clone());
            let this = ListParams::default().fields(&format!("metadata.name={name}"));
            list(csi_nodes, this).await
        }));
        let of_classes = self.classes.iter().enumerate().map(|(index, class)| {
            let group = ComponentGroup::Class(index);
            let namespace = class.namespaces.single().map(Arc::from);
            (group, namespace, class.selector.clone())
        });
        let of_classes = of_classes.filter(|(group, ..)| kinds.has_group(*group));
        let by_name = pods.into_iter().filter_map(|(group, scope)| match scope {
            Scope::Pods(namespace, selector) => Some((group, Some(namespace), selector)),
            Scope::DaemonSet(_) => None,
        });
        let pods = of_classes.chain(by_name);
        let pods = join_all(pods.map(async |(group, namespace, selector)| {
            let pods = self.pods(name, namespace.as_deref(), &selector);
            (group, pods.await)
        }));
        let (node, csi_node, pods) = join3(node, csi_node, pods).await;
        let mut evidence = NodeEvidence::default();
        let unread = &mut evidence.unread;
        evidence.node = unread.or_read(node, |it| it.nodes = true);
        evidence.csi_node = unread.or_read(csi_node, |it| it.csi_nodes = true);
        for (group, read) in pods {
            let pods = unread.or_read(Some(read), |it| it.add_group(group));
            evidence.pods.extend(pods.map(|pods| (group, pods)));
        }
        match unread.error.take_if(|_| unread.kinds == *kinds) {
            Some(error) => Err(error),
            None => Ok(evidence),
        }
    }

    /// Reads the matching pods on a node, in one namespace or in all.
    async fn pods(
        &self,
        node: &str,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<List<PodObject>, RequestError> {
        let bound = ListParams::default()
            .labels(&selector.to_string())
            .fields(&format!("spec.nodeName={node}"));
        let pods = match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        list(pods, bound).await
    }

    /// Reads the evidence that all nodes share, including these `DaemonSet`s.
    pub(super) async fn cluster(
        &self,
        named: Vec<(ComponentGroup, ObjectKey)>,
    ) -> Result<ClusterEvidence, RequestError> {
        let rules: Api<RuleObject> = Api::all(self.client.clone());
        let all: Api<DaemonSetObject> = Api::all(self.client.clone());
        let of_classes = self.classes.iter().enumerate().map(|(index, class)| {
            let labelled = ListParams::default().labels(&class.selector.to_string());
            (ComponentGroup::Class(index), all.clone(), labelled)
        });
        let by_name = named.into_iter().map(|(group, key)| {
            let there = Api::namespaced(self.client.clone(), &key.namespace);
            let this = ListParams::default().fields(&format!("metadata.name={}", key.name));
            (group, there, this)
        });
        let daemon_sets = of_classes.chain(by_name);
        let daemon_sets =
            daemon_sets.map(async |(group, api, params)| (group, list(api, params).await));
        let mut evidence = ClusterEvidence {
            rules: list(rules, ListParams::default()).await?,
            daemon_sets: Vec::new(),
            unread: Unread::default(),
        };
        for (group, read) in join_all(daemon_sets).await {
            let unread = &mut evidence.unread;
            let list = unread.or_read(Some(read), |it| it.add_group(group));
            evidence.daemon_sets.extend(list.map(|list| (group, list)));
        }
        Ok(evidence)
    }
}

/// Reads a list consistently from the API server's etcd.
async fn list<K>(api: Api<K>, params: ListParams) -> Result<List<K>, RequestError>
where
    K: Clone + DeserializeOwned + Debug,
{
    let list = within(DEADLINE, api.list(&params)).await?;
    Ok(List {
        version: object::version(list.metadata.resource_version.as_deref()),
        items: list.items,
    })
}
