//! Live reads: a decision's evidence, read from the API server directly instead of from the watches' caches.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{OptionFuture, join_all, join4};
use kube::api::ListParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;

use super::answer::within;
use crate::condition::{ComponentGroup, CriticalComponentClass};
use crate::engine::RequestError;
use crate::engine::freshness::evidence::{ClusterEvidence, List, NodeEvidence, Unread};
use crate::engine::kind::{Scope, Watch};
use crate::object::{self, CsiNode, DaemonSet, Node, Pod, ResourceSlice, RuleObject, Watched};
use crate::plan::StaleKinds;

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

    /// Reads these kinds for one node, and these components on it.
    ///
    /// # Errors
    /// When nothing could be read.
    pub(super) async fn node(
        &self,
        name: &str,
        kinds: &StaleKinds,
        components: Vec<(Watch, Scope)>,
    ) -> Result<NodeEvidence, RequestError> {
        let node = OptionFuture::from(kinds.nodes.then_some(async {
            let nodes: Api<Watched<Node>> = Api::all(self.client.clone());
            within(DEADLINE, nodes.get(name)).await
        }));
        let csi_node = OptionFuture::from(kinds.csi_nodes.then_some(async {
            let csi_nodes: Api<Watched<CsiNode>> = Api::all(self.client.clone());
            let this = ListParams::default().fields(&format!("metadata.name={name}"));
            list(csi_nodes, this).await
        }));
        let of_classes = self.classes.iter().enumerate().map(|(index, class)| {
            let watch = Watch::Pods(ComponentGroup::Class(index));
            (watch, class.scope(watch))
        });
        let of_classes = of_classes
            .filter(|(watch, _)| watch.group().is_some_and(|group| kinds.has_group(group)));
        let (mut pods, mut slices) = (Vec::new(), Vec::new());
        for (watch, scope) in of_classes.chain(components) {
            match watch {
                Watch::Pods(group) => pods.push((group, scope)),
                Watch::ResourceSlices(group) => slices.push((group, scope)),
                _ => {}
            }
        }
        let pods = join_all(pods.into_iter().map(async |(group, scope)| {
            let pods: Api<Watched<Pod>> = match &scope.namespace {
                Some(namespace) => Api::namespaced(self.client.clone(), namespace),
                None => Api::all(self.client.clone()),
            };
            (group, list(pods, on_node(&scope, name)).await)
        }));
        let slices = join_all(slices.into_iter().map(async |(group, scope)| {
            let slices: Api<Watched<ResourceSlice>> = Api::all(self.client.clone());
            (group, list(slices, on_node(&scope, name)).await)
        }));
        let (node, csi_node, pods, slices) = join4(node, csi_node, pods, slices).await;
        let mut evidence = NodeEvidence::default();
        let unread = &mut evidence.unread;
        evidence.node = unread.or_read(node, |it| it.nodes = true);
        evidence.csi_node = unread.or_read(csi_node, |it| it.csi_nodes = true);
        for (group, read) in pods {
            let pods = unread.or_read(Some(read), |it| it.add_group(group));
            evidence.pods.extend(pods.map(|pods| (group, pods)));
        }
        for (group, read) in slices {
            let slices = unread.or_read(Some(read), |it| it.add_group(group));
            evidence.slices.extend(slices.map(|slices| (group, slices)));
        }
        match unread.error.take_if(|_| unread.kinds == *kinds) {
            Some(error) => Err(error),
            None => Ok(evidence),
        }
    }

    /// Reads the evidence that all nodes share, including these `DaemonSet`s.
    pub(super) async fn cluster(
        &self,
        named: Vec<(ComponentGroup, Scope)>,
    ) -> Result<ClusterEvidence, RequestError> {
        let rules: Api<Watched<RuleObject>> = Api::all(self.client.clone());
        let of_classes = self.classes.iter().enumerate().map(|(index, class)| {
            let group = ComponentGroup::Class(index);
            (group, class.scope(Watch::DaemonSets(group)))
        });
        let daemon_sets = of_classes.chain(named).map(async |(group, scope)| {
            let daemon_sets: Api<Watched<DaemonSet>> = match &scope.namespace {
                Some(namespace) => Api::namespaced(self.client.clone(), namespace),
                None => Api::all(self.client.clone()),
            };
            let params = ListParams {
                label_selector: scope.labels(),
                field_selector: scope.fields(Watch::DaemonSets(group)),
                ..ListParams::default()
            };
            (group, list(daemon_sets, params).await)
        });
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

/// The objects of a scope on one node.
fn on_node(scope: &Scope, node: &str) -> ListParams {
    ListParams {
        label_selector: scope.labels(),
        field_selector: Some(scope.fields_on(node)),
        ..ListParams::default()
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
