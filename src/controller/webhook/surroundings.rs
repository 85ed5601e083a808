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
/// The most objects of a page.
const PAGE: u32 = 500;
/// How much of `DaemonSet`s a review keeps at most, by [`DaemonSet::size`] and labels...
const KEPT: usize = 4_000;
/// ...and compares with nodes.
const COMPARED: usize = 2_000_000;
/// What an author is told of an instance that has just started.
const NOT_LISTED: &str = "this instance of the webhook has just started and has not listed all nodes yet: no warning goes by nodes";
/// The most lists under way, over all reviews.
const READS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Every rule, including the reviewed one if it already exists.
    pub(super) rules: RuleSet,
    /// Those that the rule names, and those with a class's labels; `None` if they could not be read.
    pub(super) daemon_sets: Option<Vec<Watched<DaemonSet>>>,
    /// Whether not all of them were looked at.
    pub(super) is_cut: bool,
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
    ) -> Around<'a> {
        let mut around = Around {
            rules: &self.rules,
            classes,
            named: BTreeMap::new(),
            labelled: BTreeMap::new(),
            standing: None,
            beating: None,
            lacks_slices: false,
            nodes: (self.nodes.as_ref()).map(|it| it.nodes.iter().map(|node| &**node).collect()),
            csi_drivers: (self.csi_drivers.as_ref())
                .map(|it| it.iter().map(String::as_str).collect()),
            with_future_nodes: true,
        };
        let Some(all) = &self.daemon_sets else {
            return around;
        };
        for key in spec.daemon_sets() {
            match all.iter().find(|it| ObjectKey::of(it.meta()) == *key) {
                Some(found) => around.named.extend(found.value().map(|it| (key, Some(it)))),
                None if self.is_cut => {}
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
        let (rules, (daemon_sets, is_cut), csi_nodes, nodes, lacks_fields) = tokio::join!(
            self.rules(),
            self.daemon_sets(spec),
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
            is_cut,
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

    /// Lists objects page by page, with at most [`READS`] pages at a time, as long as they are taken. Returns whether all were.
    async fn list<K: Kind>(
        &self,
        mut take: impl FnMut(Watched<K>) -> Option<()>,
    ) -> kube::Result<bool>
    where
        Watched<K>: Resource<DynamicType = ()>,
    {
        let api = Api::<Watched<K>>::all(self.client.clone());
        let mut params = ListParams::default().limit(PAGE);
        loop {
            // The semaphore is never closed.
            let _turn = self.reads.acquire().await;
            let list = api.list(&params).await?;
            if list.items.into_iter().try_for_each(&mut take).is_none() {
                return Ok(false);
            }
            let token = list.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(true);
            }
            params.continue_token = token;
        }
    }

    pub(super) async fn rules(&self) -> Result<RuleSet, String> {
        let mut rules = Vec::new();
        let list = self.list::<RuleObject>(|rule| {
            rules.extend(rule.read());
            Some(())
        });
        let listed = client::in_time(RULES_DEADLINE, list).await;
        listed.map_err(|error| match error {
            kube::Error::Api(status) if status.code == 403 => format!(
                "the webhook has no permission to list rules ({}): grant it with `kubectl apply -k config/rbac`",
                status.message
            ),
            error => format!("the rules cannot be listed: {}", with_causes(&error)),
        })?;
        let rules = rules.into_iter();
        let rules = rules.map(|it| Rule::compile(&it.metadata, it.spec, self.classes()));
        let mut rules: Vec<_> = rules.map(Arc::new).collect();
        limit_components(&mut rules);
        let passing_taints = self.settings.passing_taints.clone();
        Ok(RuleSet::new(rules, passing_taints))
    }

    /// The `DaemonSet`s that matter to a rule with this spec, if they can be read, and whether there are more than could be.
    async fn daemon_sets(&self, spec: &CompiledSpec) -> (Option<Vec<Watched<DaemonSet>>>, bool) {
        let nodes = self.readers.nodes.len().max(1);
        let mut left = KEPT.min(COMPARED / nodes);
        let mut kept = Vec::new();
        let classes = self.classes().iter();
        let list = self.list(|it: Watched<DaemonSet>| {
            let key = ObjectKey::of(it.meta());
            let matters = spec.daemon_sets().any(|named| *named == key)
                || classes
                    .clone()
                    .any(|class| class.selector.matches(it.labels()));
            if matters {
                let size = it.value().map_or(1, DaemonSet::size) + it.labels().len() / 16;
                left = left.checked_sub(size)?;
                kept.push(it);
            }
            Some(())
        });
        let listed = client::in_time(WARNINGS_DEADLINE, list).await;
        let told =
            |error: &kube::Error| debug!("no warnings about DaemonSets: {}", with_causes(error));
        let is_whole = listed.inspect_err(told).unwrap_or(false);
        let is_cut = !is_whole && !kept.is_empty();
        ((is_whole || is_cut).then_some(kept), is_cut)
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
