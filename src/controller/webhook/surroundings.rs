//! The cluster state that a review needs. Nodes and `CSINode`s are the engine's; rules and `DaemonSet`s are read for each: a cache
//! may lack a new rule, and the engine watches few `DaemonSet`s. Anyone who reaches the webhook causes reads, so these are limited.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use http::Request;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::runtime::reflector::Store;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::debug;

use nodegate_cluster::{client, with_causes};
use nodegate_core::api::names::{GROUP, VERSION};
use nodegate_core::condition::{CriticalComponentClass, Source};
use nodegate_core::finding::Around;
use nodegate_core::guard::Limits;
use nodegate_core::object::{CsiNode, DaemonSet, Kept, Kind, Node, ObjectKey, RuleObject, Watched};
use nodegate_core::rule::{CompiledSpec, Rule, RuleSet, limit_components};
use nodegate_engine::{Readers, Settings, Stored};

/// The timeout of listing rules: longer than that of reads for warnings, shorter than the API server's.
const RULES_DEADLINE: Duration = Duration::from_secs(5);
/// The timeout of what only serves warnings.
const WARNINGS_DEADLINE: Duration = Duration::from_secs(2);
/// The most `DaemonSet`s that are read. Where there are more, nothing is said of any.
const DAEMON_SETS: u32 = 1_000;
/// What an author is told of an instance that has just started.
const NOT_LISTED: &str = "this instance of the webhook has just started and has not listed all nodes yet: no warning goes by nodes";
/// The most lists under way, over all reviews.
const READS: usize = 4;

/// The cluster state beside the rule.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Every rule, including the reviewed one if it already exists.
    pub(super) rules: RuleSet,
    /// All of them; `None` if they could not be read, or are too many.
    pub(super) daemon_sets: Option<Vec<Watched<DaemonSet>>>,
    /// The CSI drivers that any node has registered; `None` if the rule names none, or not all `CSINode`s have been listed yet.
    pub(super) csi_drivers: Option<BTreeSet<String>>,
    /// `None` if not all have been listed yet.
    pub(super) nodes: Option<ListedNodes>,
    /// What its author should know of what could not be looked at.
    pub(super) gap: Option<&'static str>,
    /// Whether the definition is known to lack what is under `nodegate`, as the Node Readiness Controller's does.
    pub(super) lacks_fields: bool,
    /// The controller's limits, for what the rule leaves out.
    pub(super) limits: Limits,
    pub(super) now: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct ListedNodes {
    /// In order of their names.
    pub(super) nodes: Vec<Kept<Node>>,
    /// Whether the rule matches them. Otherwise it matches no node today, and these are all others.
    pub(super) selected: bool,
}

impl Surroundings {
    /// What the cluster has for a rule with this spec.
    pub(super) fn around<'a>(
        &'a self,
        spec: &'a CompiledSpec,
        classes: &'a [CriticalComponentClass],
    ) -> Around<'a, impl Iterator<Item = &'a Node> + Clone, impl Iterator<Item = &'a str> + Clone>
    {
        let mut around = Around {
            rules: &self.rules,
            classes,
            named: BTreeMap::new(),
            labelled: BTreeMap::new(),
            standing: None,
            beating: None,
            lacks_slices: false,
            nodes: (self.nodes.as_ref()).map(|it| it.nodes.iter().map(|node| &**node)),
            csi_drivers: (self.csi_drivers.as_ref()).map(|it| it.iter().map(String::as_str)),
            with_future_nodes: true,
        };
        let Some(all) = &self.daemon_sets else {
            return around;
        };
        for key in spec.daemon_sets() {
            match all.iter().find(|it| ObjectKey::of(it.meta()) == *key) {
                Some(found) => around.named.extend(found.value().map(|it| (key, Some(it)))),
                None => drop(around.named.insert(key, None)),
            }
        }
        for (index, class) in classes.iter().enumerate() {
            let labelled = all.iter().filter(|it| class.selector.matches(it.labels()));
            let labelled = labelled.filter_map(Watched::value).collect();
            around.labelled.insert(index, labelled);
        }
        around
    }
}

impl ListedNodes {
    /// Those of these nodes that the rule matches; all if it matches none.
    fn of(spec: &CompiledSpec, all: &[Arc<Stored<Node>>]) -> Self {
        let matches = |node: &&Arc<Stored<Node>>| spec.selector.matches(&node.labels);
        let selected = all.iter().any(|node| matches(&node));
        let nodes = all.iter().filter(|node| !selected || matches(node));
        let mut nodes: Vec<_> = nodes.map(|node| Kept::clone(node)).collect();
        nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Self { nodes, selected }
    }
}

pub(super) struct Surveyor {
    client: Client,
    /// The controller's, by which it would act for the rule.
    settings: Settings,
    readers: Readers,
    reads: Semaphore,
}

impl Surveyor {
    pub(super) fn new(client: Client, settings: Settings, readers: Readers) -> Self {
        Self {
            client,
            settings,
            readers,
            reads: Semaphore::new(READS),
        }
    }

    pub(super) fn classes(&self) -> &[CriticalComponentClass] {
        &self.settings.classes
    }

    /// The cluster state for a rule with this spec. Fails, with a remedy, if rules cannot be listed; other gaps are left out.
    pub(super) async fn survey(&self, spec: &CompiledSpec) -> Result<Surroundings, String> {
        let mut conditions = spec.conditions.iter();
        let names_driver = conditions.any(|it| matches!(it.source, Source::CsiDriver(_)));
        let csi_nodes = OptionFuture::from(names_driver.then(|| all(&self.readers.csi_nodes)));
        let (rules, daemon_sets, csi_nodes, nodes, lacks_fields) = tokio::join!(
            self.rules(),
            self.daemon_sets(),
            csi_nodes,
            all(&self.readers.nodes),
            self.lacks_fields(),
        );
        let drivers = |it: &Arc<Stored<CsiNode>>| it.drivers.clone().into_iter().map(|it| it.name);
        let csi_nodes = csi_nodes.flatten();
        let csi_drivers = csi_nodes.map(|all| all.iter().flat_map(drivers).collect());
        let is_unread = nodes.is_none() || names_driver && csi_drivers.is_none();
        Ok(Surroundings {
            rules: rules?,
            daemon_sets,
            csi_drivers,
            nodes: nodes.map(|nodes| ListedNodes::of(spec, &nodes)),
            gap: is_unread.then_some(NOT_LISTED),
            lacks_fields,
            limits: self.settings.disruption_limits,
            now: Timestamp::now(),
        })
    }

    /// Reads the definition as the API server shows it to everybody.
    async fn lacks_fields(&self) -> bool {
        let request = Request::get(format!("/openapi/v3/apis/{GROUP}/{VERSION}")).body(Vec::new());
        let Ok(request) = request else { return false };
        let text = timeout(WARNINGS_DEADLINE, self.client.request_text(request));
        matches!(text.await, Ok(Ok(text)) if !text.contains("\"nodegate\""))
    }

    /// Lists objects, with at most [`READS`] lists at a time, and says whether these are all.
    async fn list<K: Kind>(&self, params: &ListParams) -> kube::Result<(Vec<Watched<K>>, bool)>
    where
        Watched<K>: Resource<DynamicType = ()>,
    {
        // The semaphore is never closed.
        let _turn = self.reads.acquire().await;
        let api = Api::<Watched<K>>::all(self.client.clone());
        let list = api.list(params).await?;
        let is_whole = list.metadata.continue_.is_none_or(|token| token.is_empty());
        Ok((list.items, is_whole))
    }

    pub(super) async fn rules(&self) -> Result<RuleSet, String> {
        let params = ListParams::default();
        let listed = client::in_time(RULES_DEADLINE, self.list::<RuleObject>(&params)).await;
        let (rules, _) = listed.map_err(|error| match error {
            kube::Error::Api(status) if status.code == 403 => format!(
                "the webhook has no permission to list rules ({}): grant it with `kubectl apply -k config/rbac`",
                status.message
            ),
            error => format!("the rules cannot be listed: {}", with_causes(&error)),
        })?;
        let rules = rules.into_iter().filter_map(|rule| rule.read().ok());
        let rules = rules.map(|it| Rule::compile(&it.metadata, it.spec, self.classes()));
        let mut rules: Vec<_> = rules.map(Arc::new).collect();
        limit_components(&mut rules);
        let passing_taints = self.settings.passing_taints.clone();
        Ok(RuleSet::new(rules, passing_taints))
    }

    /// The `DaemonSet`s of the cluster, unless there are too many, or they cannot be read in time.
    async fn daemon_sets(&self) -> Option<Vec<Watched<DaemonSet>>> {
        let some = ListParams::default().limit(DAEMON_SETS);
        let read = client::in_time(WARNINGS_DEADLINE, self.list(&some)).await;
        let told =
            |error: &kube::Error| debug!("no warnings about DaemonSets: {}", with_causes(error));
        let (daemon_sets, is_whole) = read.inspect_err(told).ok()?;
        is_whole.then_some(daemon_sets)
    }
}

/// All objects of a store, unless its first list is not complete within [`WARNINGS_DEADLINE`].
async fn all<T: Kind>(store: &Store<Stored<T>>) -> Option<Vec<Arc<Stored<T>>>> {
    let is_ready = timeout(WARNINGS_DEADLINE, store.wait_until_ready()).await;
    matches!(is_ready, Ok(Ok(()))).then(|| store.state())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, kept, node, rule};

    #[test]
    fn of_a_rule_that_matches_no_node_all_nodes_are_listed() {
        let all = [node("b").label("zone", "a"), node("a")];
        let all = all.map(|it| Arc::new(Stored(kept(it.build()))));
        for (zone, selected, expected) in [("a", true, &["b"][..]), ("c", false, &["a", "b"])] {
            let rule = rule("r").waits_for("Net").selects("zone", zone).build(&[]);
            let listed = ListedNodes::of(rule.spec.as_ref().unwrap(), &all);
            let names: Vec<&str> = listed.nodes.iter().map(|it| &*it.name).collect();
            let found = (listed.selected, &names[..]);
            assert_eq!(found, (selected, expected), "{zone}");
        }
    }
}
