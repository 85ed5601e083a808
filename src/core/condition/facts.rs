//! What is known about one node, and the conditions that follow from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use super::absence::Recall;
use super::detail::Detail;
use super::devices::Devices;
use super::groups::{Component, CriticalComponentClass, NamedComponent, Question};
use super::observations::Observations;
use super::seen::Watch;
use super::source::Source;
use super::trust::Trust;
use super::{csi, daemon_sets, pods};
use crate::api::ConditionStatus;
use crate::object::{
    CsiNode, DaemonSet, Kept, Node, ObjectKey, Pod, PodPhase, ResourceSlice, Taint,
};

/// The most pods, slices or taints of one node that are read for a component: few are real, but a kubelet may make any number.
const MOST: usize = 1000;

/// What is known about one node at one time. `'a` is the lifetime of the objects, `'f` that of this view of them.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f, 'a> {
    pub node: &'a Node,
    pub csi_node: Option<&'a CsiNode>,
    /// The state of each configured class on this node, in the order of the configuration.
    pub classes: &'f [(&'a CriticalComponentClass, GroupFacts<'f, 'a>)],
    pub components: &'f [(&'a NamedComponent, GroupFacts<'f, 'a>)],
    /// The watches that rules depend on and that have not listed yet, but for those of what rules name.
    pub unseen: &'a BTreeSet<Watch>,
    /// The node's taints that will not go: a `DaemonSet` that does not tolerate them does not run here.
    pub staying: &'f [&'a Taint],
    /// The `DaemonSet`s that the rule leaves out by name.
    pub except: &'a [ObjectKey],
    pub observations: &'a Observations,
    pub trust: Trust<'a>,
    /// Where what was there until a moment ago counts as there.
    pub recall: Option<&'f Recall<'a>>,
    pub now: Timestamp,
}

/// The objects of a class, or of a component that rules wait for by name, as far as they concern one node.
#[derive(Debug, Clone, Copy)]
pub struct GroupFacts<'f, 'a> {
    pub daemon_sets: &'a BTreeMap<ObjectKey, Kept<DaemonSet>>,
    /// Its pods on this node. Those that match a named `DaemonSet`'s selector are not all its own.
    pub pods: &'a [Kept<Pod>],
    pub slices: &'a [Kept<ResourceSlice>],
    /// The taints of the rules that wait for it on this node.
    pub gates: &'f [&'a Taint],
}

/// One condition of one node at one time, with the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition<'a> {
    pub status: ConditionStatus,
    pub detail: Detail<'a>,
    /// When the status last changed, if the reporter says so.
    pub transition: Option<Timestamp>,
    /// When to evaluate again even if nothing happens: a fact counts from then on.
    pub recheck: Option<Timestamp>,
    /// How many there are of what a rule may ask a minimum of; `None` if the source counts nothing, or cannot at present.
    pub count: Option<Amount<'a>>,
}

impl<'a> Condition<'a> {
    /// Whether the status is unknown because what it depends on has not been seen yet.
    pub fn is_to_be_seen(&self) -> bool {
        matches!(
            self.detail,
            Detail::NotSeen { .. } | Detail::KindNotSeen { .. }
        )
    }

    pub(super) fn new(status: ConditionStatus, detail: Detail<'a>) -> Self {
        Self {
            status,
            detail,
            transition: None,
            recheck: None,
            count: None,
        }
    }

    pub(super) fn met(detail: Detail<'a>) -> Self {
        Self::new(ConditionStatus::True, detail)
    }

    pub(super) fn unmet(detail: Detail<'a>) -> Self {
        Self::new(ConditionStatus::False, detail)
    }

    fn counting(self, count: Option<Amount<'a>>) -> Self {
        Self { count, ..self }
    }
}

/// How many there are of something on a node, where rules may ask for a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount<'a> {
    pub number: u64,
    pub of: Counted<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted<'a> {
    /// An extended resource, by name.
    Resource(&'a str),
    /// Devices of this DRA driver without a taint that keeps pods off.
    Devices(&'a str),
}

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(resource) => write!(f, "{resource} to allocate"),
            Self::Devices(driver) => write!(f, "untainted devices of {driver}"),
        }
    }
}

impl<'a> Facts<'_, 'a> {
    /// The node's condition from this source; `None` if it lacks it. `kind` is the condition type, as it stands on the Node.
    pub(crate) fn condition(&self, kind: &str, source: &'a Source) -> Option<Condition<'a>> {
        if *source == Source::Node {
            let condition = self.node.condition(kind)?;
            return Some(self.trust.assess(condition, self.observations, self.now));
        }
        let condition = self.synthesized(source)?;
        let published = self.published(kind, source, &condition);
        let condition = published.unwrap_or(condition);
        // What has not been seen yet may turn out to be still unmet, since the same time.
        let unmet = condition.is_to_be_seen().then_some(ConditionStatus::False);
        let status = unmet.unwrap_or(condition.status);
        // Only the published condition records the transition time beyond a restart.
        let published = self.node.condition(kind).filter(|it| it.status == status);
        Some(Condition {
            transition: published.and_then(|it| it.transition),
            ..condition
        })
    }

    fn synthesized(&self, source: &'a Source) -> Option<Condition<'a>> {
        let mut unseen = self.unseen.iter();
        if let Some(watch) = unseen.find(|watch| source.depends_on(**watch, &[])) {
            let detail = Detail::KindNotSeen { kind: watch.kind() };
            return Some(Condition::new(ConditionStatus::Unknown, detail));
        }
        Some(match source {
            Source::Node | Source::Nobody | Source::NoClass => return None,
            Source::Class { class, question } => {
                let (class, group) = self.classes.get(*class)?;
                let answer = || self.answer(class, group, *question);
                self.too_many(group.pods, 0).unwrap_or_else(answer)
            }
            Source::Component(_) | Source::DaemonSetsScheduled => {
                let (named, group) = self.named(source)?;
                self.component(named, group, *source != Source::DaemonSetsScheduled)
            }
            Source::CsiDriver(driver) => csi::driver_registered(self, driver),
            Source::Label(key) => match self.node.labels.get(key) {
                Some(value) => Condition::met(Detail::LabelPresent { key, value }),
                None => Condition::unmet(Detail::LabelMissing { key }),
            },
            Source::Resource(resource) => {
                let number = self.node.resources.units(resource);
                let of = Counted::Resource(resource);
                let condition = if self.node.resources.has(resource) {
                    Condition::met(Detail::ResourceAllocatable { resource })
                } else {
                    Condition::unmet(Detail::ResourceNotAllocatable { resource })
                };
                condition.counting(Some(Amount { number, of }))
            }
        })
    }

    fn named(&self, source: &Source) -> Option<&(&'a NamedComponent, GroupFacts<'_, 'a>)> {
        let component = source.component()?;
        let mut components = self.components.iter();
        components.find(|(named, _)| named.component == *component)
    }

    /// The objects that conditions from this source depend on.
    pub(super) fn group(&self, source: &Source) -> Option<&GroupFacts<'_, 'a>> {
        match source {
            Source::Class { class, .. } => self.classes.get(*class).map(|(_, group)| group),
            _ => self.named(source).map(|(_, group)| group),
        }
    }

    /// The condition of a component. `as_ready`: of all `DaemonSet`s, the pods have to be available, not only bound.
    fn component(
        &self,
        named: &'a NamedComponent,
        group: &GroupFacts<'_, 'a>,
        as_ready: bool,
    ) -> Condition<'a> {
        let component = &named.component;
        if !named.is_seen {
            return Condition::new(ConditionStatus::Unknown, Detail::NotSeen { component });
        }
        // Of a check, which may leave a pod of each run, only the newest is read.
        let is_check = matches!(component, Component::Check(_));
        let unknown = self.too_many(group.pods, group.slices.len());
        if let Some(unknown) = unknown.filter(|_| !is_check) {
            return unknown;
        }
        match component {
            Component::DaemonSet(key) => daemon_sets::ready(key, self, group),
            Component::AllDaemonSets => daemon_sets::all(self, group, as_ready),
            Component::Check(key) => self.check(key, group.pods),
            Component::Devices(driver) => {
                let slices = group.slices.iter().map(|it| &**it);
                let devices = Devices::of(driver, slices, named.is_served);
                let of = Counted::Devices(driver);
                let count = devices.untainted().map(|number| Amount { number, of });
                devices.condition().counting(count)
            }
        }
    }

    /// Whether the pod is of a `DaemonSet` of the group that the rule leaves out by name.
    pub(super) fn leaves_out(&self, pod: &Pod, group: &GroupFacts<'_, 'a>) -> bool {
        let mut left_out = self.except.iter();
        left_out.any(|key| group.daemon_sets.get(key).is_some_and(|it| it.owns(pod)))
    }

    /// The condition that depends on more than is read, of the node or among these pods and so many `ResourceSlice`s of it.
    fn too_many(&self, pods: &[Kept<Pod>], slices: usize) -> Option<Condition<'a>> {
        let waits = pods.iter().map(|pod| pod.annotations.len()).sum();
        let counts = [
            (pods.len(), MOST, "such pods"),
            (slices, MOST, "such ResourceSlices"),
            (self.staying.len(), MOST, "taints"),
            (waits, MOST, "waits for CSI drivers"),
        ];
        let (_, most, what) = counts.into_iter().find(|(count, most, _)| count > most)?;
        let detail = Detail::TooManyToRead { what, most };
        Some(Condition::new(ConditionStatus::Unknown, detail))
    }

    /// Has the newest of these pods, which try out the node, succeeded? Pods from before the node was created, or from before a
    /// reboot that counts, say nothing about it. API times have whole seconds.
    fn check(&self, check: &'a ObjectKey, pods: &'a [Kept<Pod>]) -> Condition<'a> {
        let counts = |pod: &&Kept<Pod>| {
            pod.created.is_none_or(|created| {
                let since = self.node.created.is_none_or(|node| created >= node);
                since && !self.trust.is_from_before(created, |it| it.older)
            })
        };
        let newest = pods.iter().filter(counts);
        let Some(newest) = newest.max_by_key(|pod| (pod.created, &pod.key)) else {
            return Condition::unmet(Detail::CheckMissing { check });
        };
        let pod = &newest.key;
        match newest.phase {
            PodPhase::Succeeded => Condition::met(Detail::CheckSucceeded { pod }),
            PodPhase::Failed => Condition::unmet(Detail::CheckFailed { pod }),
            PodPhase::Unfinished => Condition::unmet(Detail::CheckRunning { pod }),
        }
    }

    fn answer(
        &self,
        class: &'a CriticalComponentClass,
        group: &GroupFacts<'_, 'a>,
        question: Question,
    ) -> Condition<'a> {
        match question {
            Question::DaemonSetsScheduled => daemon_sets::scheduled(self, class, group),
            Question::PodsReady => pods::ready(self, class, group),
            Question::CsiDriversRegistered => csi::drivers_registered(self, class, group),
            Question::ComponentsReady => self.components_ready(class, group),
        }
    }

    /// The three questions in Gardener's order; the first one that is not `True` is the answer.
    fn components_ready(
        &self,
        class: &'a CriticalComponentClass,
        group: &GroupFacts<'_, 'a>,
    ) -> Condition<'a> {
        let scheduled = daemon_sets::scheduled(self, class, group);
        let Detail::DaemonSetsScheduled { any, left_out } = scheduled.detail else {
            return scheduled;
        };
        for question in [Question::PodsReady, Question::CsiDriversRegistered] {
            let condition = self.answer(class, group, question);
            if condition.status != ConditionStatus::True {
                return condition;
            }
        }
        let any = any || !group.pods.is_empty();
        Condition::met(Detail::ComponentsReady { any, left_out })
    }
}
