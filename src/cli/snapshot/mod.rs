//! The cluster at one time: the engine's view, and what people want to know besides. `read` fills it; the commands evaluate it.

mod leader;
mod manifests;
mod pod;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

pub(super) use leader::{Leader, LeaderHealth};
pub(crate) use manifests::{Agent, Manifests, PoolManifest, arguments, image};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::api::{Pause, PauseReason};
use nodegate_core::condition::{Watch, can_share_a_node};
use nodegate_core::finding::{Backing, Finding, summed_up};
use nodegate_core::object::{Node, ObjectKey};
use nodegate_core::rule::{CompiledSpec, Rule};
use nodegate_core::selector::Filter;
use nodegate_engine::{Broken, Forecast, says_all_suspended};
pub(crate) use pod::{
    PendingPod, PodTimes, UnreadyPod, condition, culprit, is_ready, last_seen, node_of, owner,
    phase, unready_since,
};

#[derive(Debug)]
pub struct Snapshot {
    pub(crate) at: Timestamp,
    pub(crate) view: Forecast,
    pub(super) listed: Vec<(Watch, Filter)>,
    /// The lists that the rules do not need.
    pub(super) unlisted: Vec<(Watch, Filter)>,
    pub(crate) leader: Option<Leader>,
    /// Whether the policy of `config/tolerations` is installed.
    pub(crate) adds_tolerations: bool,
    /// The image of each instance of the controller, and whether it is Ready.
    pub(crate) controllers: Vec<(String, bool)>,
    pub(crate) unready: BTreeMap<ObjectKey, UnreadyPod>,
    /// When critical pods did what, by node, and each node's Events, the earliest first: for the starts of nodes.
    pub(crate) pods: BTreeMap<String, Vec<PodTimes>>,
    pub(crate) node_events: BTreeMap<String, Vec<Event>>,
    pub(crate) manifests: Manifests,
    /// What stands on nodes under the name of a `DaemonSet` that rules name and that does not exist, as a phrase.
    pub(crate) standing: BTreeMap<ObjectKey, String>,
    /// Which workloads no node takes, by the rule that holds all of its nodes.
    pub(crate) kept_out: BTreeMap<Arc<str>, Finding>,
    /// Why these `DaemonSet`s have no pod on the wanted node: the object that shows it, what it shows, and since when.
    pub(crate) no_pod: BTreeMap<ObjectKey, Vec<(String, String, Option<Timestamp>)>>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) unreadable: Vec<Broken>,
}

/// What a command wants read besides the rules, the Lease and the configuration. Every part costs requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Only this node, with its pods.
    pub node: Option<String>,
    pub depth: Depth,
    pub instances: bool,
    /// Whether to read the times of pods and the Events of nodes.
    pub starts: bool,
    /// The kinds that are wanted as written.
    pub manifests: &'static [ResourceKind],
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Depth {
    /// Everything that decides about a node.
    #[default]
    Decisions,
    /// All of that but pods and repair. Nothing is required: what is missing is a gap.
    Checkup,
    /// Only what determines which objects matter: the `DaemonSet`s that rules name. Nothing is required.
    Outline,
}

pub(super) const CHECKED: &[ResourceKind] = &[
    ResourceKind::DaemonSets,
    ResourceKind::NodePools,
    ResourceKind::Deployments,
    ResourceKind::CsiDrivers,
];

impl Wanted {
    pub(super) fn status() -> Self {
        Self {
            instances: true,
            ..Self::default()
        }
    }

    /// Only this node; all of them if the name is empty.
    pub(super) fn of_node(name: &str) -> Self {
        Self {
            node: Some(name.to_owned()).filter(|it| !it.is_empty()),
            ..Self::default()
        }
    }

    pub(super) fn outline(manifests: &'static [ResourceKind]) -> Self {
        Self {
            depth: Depth::Outline,
            manifests,
            ..Self::default()
        }
    }

    pub(super) fn checkup() -> Self {
        Self {
            depth: Depth::Checkup,
            manifests: CHECKED,
            ..Self::status()
        }
    }
}

impl Snapshot {
    /// Prepares for plans. The Lease says that all rules are suspended, or, for the controller's flag, the rules' statuses do.
    pub(super) fn prepare(&mut self) {
        let mut rules = self.view.cached_rules().values();
        let suspends_all = self.leader.as_ref().is_some_and(|it| it.suspends_all)
            || rules.any(|cached| says_all_suspended(&cached.object.status));
        self.view.suspend_all(suspends_all);
        self.view.prepare();
    }

    /// Why a rule's decision is not carried out: none leads, or something keeps it, by the rule's status, which lists only some nodes.
    pub(crate) fn stuck(&self, rule: &str, node: &str) -> Option<String> {
        let paused = self.pause(rule, node).map(|pause| {
            let left = pause.until.as_ref().map(|at| at.0.duration_since(self.at));
            let left = left.map_or(0, |left| left.as_secs());
            let again = match pause.reason {
                PauseReason::AbsenceNotLasted => format!("; it counts as gone in {left} s"),
                _ => format!("; it tries again in {left} s"),
            };
            pause.message.clone() + if left > 0 { &again } else { "" }
        });
        let cached = self.view.cached_rules().get(rule);
        let mut failed = cached.iter().flat_map(|it| &it.object.status.failed_nodes);
        let failed = failed.find(|it| it.node_name == node);
        let failed = failed.and_then(|it| it.message.clone());
        self.idle().or(paused).or(failed)
    }

    /// What keeps a rule from changing a node for now, by its status.
    pub(crate) fn pause(&self, rule: &str, node: &str) -> Option<&Pause> {
        let status = &self.view.cached_rules().get(rule)?.object.status;
        let mut pauses = status.nodegate.iter().flat_map(|it| &it.pauses);
        pauses.find(|it| it.node_name == node)
    }

    /// Why nothing is decided; `None` if a controller leads, or that is unknown.
    pub(crate) fn idle(&self) -> Option<String> {
        self.leader.as_ref()?.idle(self.at)
    }

    pub(crate) fn gap(&self, kind: ResourceKind) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.kind == kind)
    }

    /// Whether all objects of this kind were read: otherwise nothing may be said to be missing.
    pub(super) fn has_read(&self, kind: ResourceKind) -> bool {
        self.gap(kind).is_none()
    }

    pub(super) fn selected(&self, spec: &CompiledSpec) -> impl Iterator<Item = &Node> {
        let nodes = self.view.nodes();
        nodes.filter(|node| spec.selector.matches(&node.labels))
    }

    /// The valid rules that are not being deleted, by precedence.
    pub(super) fn usable(&self) -> impl Iterator<Item = (&Rule, &CompiledSpec)> {
        let rules = self.view.rules().rules().iter();
        let rules = rules.filter(|rule| !rule.deleting);
        rules.filter_map(|rule| Some((&**rule, rule.spec.as_ref().ok()?)))
    }

    /// The `DaemonSet`s that a rule waits for on some of its nodes, whether or not they tolerate its taint.
    pub(super) fn waited_for(&self, spec: &CompiledSpec) -> impl Iterator<Item = &Agent> {
        let agents = self.manifests.daemon_sets.iter();
        let agents = agents.filter(move |agent| self.waits_for(spec, agent));
        agents.filter(|agent| can_share_a_node(&agent.daemon_set, &spec.selector))
    }

    /// Whether a rule waits for a `DaemonSet`, by its name or by a class.
    pub(super) fn waits_for(&self, spec: &CompiledSpec, agent: &Agent) -> bool {
        let daemon_set = &agent.daemon_set;
        let mut classes = self.view.cluster().classes.iter().enumerate();
        let is_awaited = spec.daemon_sets().any(|key| *key == daemon_set.key)
            || classes.any(|(index, class)| {
                spec.waits_for_class(index)
                    && class.selector.matches(&agent.labels)
                    && class.has(daemon_set)
            });
        is_awaited && !spec.leaves_out(&daemon_set.key)
    }

    /// Which lists were refused, and which command tells the rights for them; `None` without gaps.
    pub(crate) fn unread(&self) -> Option<String> {
        let lists: Vec<String> = self.gaps.iter().map(Gap::refusal).collect();
        let lists = lists.join(", ");
        let see = "`kubectl nodegate check` says which rights are missing";
        (!lists.is_empty()).then(|| format!("{lists} ({see})"))
    }

    /// What the author of a rule should know of what it waits for; `None` if that could not be read.
    pub(crate) fn remarks(&self, rule: &Rule) -> Option<Backing> {
        let needs = [ResourceKind::DaemonSets, ResourceKind::CsiNodes];
        let is_known = needs.into_iter().all(|kind| self.has_read(kind));
        let mut remarks = is_known.then(|| self.view.remarks(rule))?;
        self.remedy(rule, &mut remarks.findings);
        Some(remarks)
    }

    /// Says of `DaemonSet`s that a rule shuts out what to do in this cluster.
    pub(crate) fn remedy(&self, rule: &Rule, findings: &mut [Finding]) {
        if let Ok(spec) = &rule.spec {
            for found in findings {
                found.remedy(&rule.name, &spec.taint.key, self.adds_tolerations);
            }
        }
    }

    /// Which workloads the rule keeps out, all of whose nodes it holds, and what to do.
    pub(crate) fn kept_out(&self, rule: &str) -> Option<String> {
        summed_up(self.kept_out.get(rule).into_iter()).map(|it| it.message)
    }

    /// Remarks on missing information that every answer adds.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.gaps.iter().map(ToString::to_string).collect();
        notes.extend(self.unreadable.iter().map(ToString::to_string));
        notes
    }
}
