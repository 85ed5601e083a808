//! What rules wait for by name: their watches, and whether those have shown everything.
//!
//! Each component forms a group from when a rule names it. The pods of a `DaemonSet` are watched once its selector is known. The
//! selector of a group never changes: a `DaemonSet` that is created again with another selector gets a new group, so pods of the
//! old one are not mistaken for its own.

use crate::condition::{CHECK_LABEL, Component, ComponentGroup, NamedComponent, Scope, Watch};
use crate::engine::freshness::Views;
use crate::engine::io::Effect;
use crate::selector::Selector;

/// How many are watched at most, at two watches each.
pub(crate) const MOST: usize = 64;
/// The label that the `DaemonSet` controller puts on its pods, as does that of `StatefulSet`s.
const REVISION_LABEL: &str = "controller-revision-hash";

#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) all: Vec<NamedComponent>,
    /// The watches of each, in the same order.
    pub(super) watches: Vec<Vec<(Watch, Scope)>>,
    /// The number of the next group.
    next: usize,
    /// The watches to start and stop.
    pub(super) orders: Vec<Effect>,
}

impl Named {
    pub(super) fn all(&self) -> &[NamedComponent] {
        &self.all
    }

    /// The index of a group, if it exists.
    pub(super) fn position(&self, group: ComponentGroup) -> Option<usize> {
        self.all.iter().position(|named| named.group == group)
    }

    /// Notes whether the cluster has the objects of a watch; returns whether that changes anything.
    pub(super) fn serve(&mut self, watch: Watch, is_served: bool) -> bool {
        let position = watch.group().and_then(|group| self.position(group));
        position.is_some_and(|position| {
            std::mem::replace(&mut self.all[position].is_served, is_served) != is_served
        })
    }

    /// Whether the cluster was without the objects of this watch so far.
    pub(super) fn lacks(&self, watch: Watch) -> bool {
        let position = watch.group().and_then(|group| self.position(group));
        position.is_some_and(|position| !self.all[position].is_served)
    }

    /// The component of a group, if it exists.
    pub(super) fn component(&self, group: ComponentGroup) -> Option<&Component> {
        let position = self.position(group)?;
        Some(&self.all[position].component)
    }

    pub(super) fn watch(&mut self, position: usize, watch: Watch, scope: Scope, views: &mut Views) {
        views.begin(watch, scope.clone(), None);
        self.watches[position].push((watch, scope.clone()));
        self.orders.push(Effect::Watch(watch, scope));
    }

    /// Starts a group for a component.
    pub(super) fn begin(&mut self, component: Component, views: &mut Views) {
        let group = ComponentGroup::Named(self.next);
        self.next += 1;
        let position = self.all.len();
        self.watches.push(Vec::new());
        let (pods, daemon_sets) = (Watch::Pods(group), Watch::DaemonSets(group));
        match &component {
            Component::DaemonSet(key) => {
                self.watch(position, daemon_sets, Scope::of_one(key), views);
            }
            Component::AllDaemonSets => {
                let of_daemon_sets = Scope {
                    labels: Some(Selector::of_label_key(REVISION_LABEL)),
                    ..Scope::default()
                };
                self.watch(position, daemon_sets, Scope::default(), views);
                self.watch(position, pods, of_daemon_sets, views);
            }
            Component::Check(key) => {
                let runs = Scope {
                    namespace: Some(key.namespace.clone()),
                    labels: Some(Selector::of_label(CHECK_LABEL, &key.name)),
                    with_ended: true,
                    ..Scope::default()
                };
                self.watch(position, pods, runs, views);
            }
            Component::Devices(driver) => {
                let of_driver = Scope {
                    driver: Some(driver.clone()),
                    ..Scope::default()
                };
                self.watch(position, Watch::ResourceSlices(group), of_driver, views);
            }
        }
        self.all.push(NamedComponent {
            component,
            group,
            is_seen: false,
            is_served: true,
        });
    }
}
