//! Answers for a node's conditions, by source.

use super::class::Question;
use super::count::{Count, Counted};
use super::detail::Detail;
use super::devices::Devices;
use super::facts::{ClassFacts, ComponentFacts, Facts};
use super::groups::Component;
use super::source::Source;
use super::state::Condition;
use super::{check, csi, daemon_sets, named, pods};
use crate::api::ConditionStatus;

impl<'a> Facts<'_, 'a> {
    /// The node's condition from this source; `None` if the node lacks it.
    ///
    /// `kind` is the condition type, as it stands on the Node.
    pub fn condition(&self, kind: &str, source: &'a Source) -> Option<Condition<'a>> {
        match source {
            Source::Node => {
                let condition = self.node.condition(kind)?;
                Some(self.trust.judge(condition, self.observations, self.now))
            }
            Source::Nobody => None,
            source => {
                let condition = self.synthesized(source)?;
                // Only the published condition records the transition time beyond a restart.
                let published = self.node.condition(kind);
                // What has not been seen yet may turn out to be still unmet, since the same time.
                let status = if condition.is_to_be_seen() {
                    ConditionStatus::False
                } else {
                    condition.status
                };
                let transition = published
                    .filter(|published| published.status == status)
                    .and_then(|published| published.transition);
                Some(Condition {
                    transition,
                    ..condition
                })
            }
        }
    }

    fn synthesized(&self, source: &'a Source) -> Option<Condition<'a>> {
        match source {
            Source::Node | Source::Nobody => None,
            Source::Class { class, question } => self
                .classes
                .get(*class)
                .map(|facts| self.answer(facts, *question)),
            Source::Component(component) => {
                let mut components = self.components.iter();
                let facts = components.find(|it| it.named.component == *component)?;
                Some(self.component(facts))
            }
            Source::CsiDriver(driver) => Some(csi::driver_registered(self, driver)),
            Source::Resource(resource) => {
                let resources = &self.node.resources;
                let condition = if resources.has(resource) {
                    Condition::met(Detail::ResourceAllocatable { resource })
                } else {
                    Condition::unmet(Detail::ResourceNotAllocatable { resource })
                };
                Some(Condition {
                    count: Some(Count {
                        number: resources.units(resource),
                        of: Counted::Resource(resource),
                    }),
                    ..condition
                })
            }
        }
    }

    fn component(&self, facts: &ComponentFacts<'_, 'a>) -> Condition<'a> {
        let component = &facts.named.component;
        if !facts.named.is_seen {
            return Condition::new(ConditionStatus::Unknown, Detail::NotSeen { component });
        }
        let (node, trust, now) = (self.node, self.trust, self.now);
        match component {
            Component::DaemonSet(key) => named::ready(key, node, facts, trust, now),
            Component::AllDaemonSets => named::all_ready(node, facts, trust, now),
            Component::Check(key) => check::succeeded(key, node, facts.pods, trust),
            Component::Devices(driver) => devices_published(driver, facts),
        }
    }

    fn answer(&self, facts: &ClassFacts<'_, 'a>, question: Question) -> Condition<'a> {
        match question {
            Question::DaemonSetsScheduled => {
                daemon_sets::scheduled(self.node, facts, &daemon_sets::PodsByOwner::new(facts.pods))
            }
            Question::PodsReady => pods::ready(self.node, facts, self.trust, self.now),
            Question::CsiDriversRegistered => csi::drivers_registered(self, facts),
            Question::ComponentsReady => self.components_ready(facts),
        }
    }

    /// The three questions in Gardener's order; the first one that is not `True` is the answer.
    fn components_ready(&self, facts: &ClassFacts<'_, 'a>) -> Condition<'a> {
        let mut is_any = !facts.pods.is_empty();
        for question in [
            Question::DaemonSetsScheduled,
            Question::PodsReady,
            Question::CsiDriversRegistered,
        ] {
            let condition = self.answer(facts, question);
            if condition.status != ConditionStatus::True {
                return condition;
            }
            is_any |= condition.detail == Detail::DaemonSetsScheduled;
        }
        Condition::met(if is_any {
            Detail::ComponentsReady
        } else {
            Detail::NoComponent
        })
    }
}

/// Has the driver published every device of the node, at least one, and none with a taint that keeps pods off?
fn devices_published<'a>(driver: &'a str, facts: &ComponentFacts<'_, 'a>) -> Condition<'a> {
    let devices = Devices::of(driver, facts.slices, facts.named.is_served);
    Condition {
        count: devices.untainted().map(|number| Count {
            number,
            of: Counted::Devices(driver),
        }),
        ..Condition::new(devices.status(), Detail::Devices(devices))
    }
}
