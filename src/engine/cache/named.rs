//! What is watched only for rules that wait for it: classes, `CSINode`s, and what rules name; and whether these watches have shown
//! everything.
//!
//! Each named component forms a group from when a rule names it. The pods of a `DaemonSet` are watched once its selector is known. The
//! selector of a group never changes: a `DaemonSet` that is created again with another selector gets a new group, so pods of the
//! old one are not mistaken for its own.

use super::Cache;
use crate::condition::{CHECK_LABEL, Component, ComponentGroup, NamedComponent, Scope, Watch};
use crate::engine::freshness::Phase;
use crate::selector::Selector;

/// The label that the `DaemonSet` controller puts on its pods, as does that of `StatefulSet`s.
const REVISION_LABEL: &str = "controller-revision-hash";

impl Cache {
    /// The watches of what rules name.
    pub fn components(&self) -> impl Iterator<Item = (Watch, &Scope)> {
        self.views.of_groups(|group| group.class().is_none())
    }

    /// The component of a group, if it exists.
    pub(super) fn component(&self, group: ComponentGroup) -> Option<&Component> {
        let mut named = self.named.iter();
        named.find(|it| it.group == group).map(|it| &it.component)
    }

    /// Starts and stops groups to match the rules.
    pub(super) fn follow_named(&mut self) {
        let mut wanted = self.rule_set.components();
        let unwanted = self.named.iter();
        let unwanted = unwanted.filter(|named| !wanted.contains(&named.component));
        for group in unwanted.map(|named| named.group).collect::<Vec<_>>() {
            self.end_group(group);
        }
        wanted.retain(|it| self.named.iter().all(|named| named.component != *it));
        for component in wanted {
            self.begin_group(component);
        }
    }

    /// Starts and stops the watches of classes and of `CSINode`s to match the rules.
    pub(super) fn follow_classes(&mut self) {
        let classes = self.classes.iter().enumerate();
        let of_classes = classes.flat_map(|(index, class)| {
            let group = ComponentGroup::Class(index);
            [Watch::Pods(group), Watch::DaemonSets(group)].map(|it| (it, class.scope(it)))
        });
        let csi_nodes = (Watch::CsiNodes, Scope::default());
        for (watch, scope) in of_classes.chain([csi_nodes]).collect::<Vec<_>>() {
            match (self.rule_set.depends_on(watch), self.views.has(watch)) {
                (true, false) => {
                    self.views.begin(watch, scope, None);
                    self.unseen.insert(watch);
                }
                (false, true) => self.end_watch(watch),
                _ => {}
            }
        }
    }

    fn begin_group(&mut self, component: Component) {
        let group = ComponentGroup::Named(self.next_group);
        self.next_group += 1;
        let (pods, daemon_sets) = (Watch::Pods(group), Watch::DaemonSets(group));
        let mut scope = Scope::default();
        match &component {
            Component::DaemonSet(key) => self.views.begin(daemon_sets, Scope::of_one(key), None),
            Component::AllDaemonSets => {
                self.views.begin(daemon_sets, scope.clone(), None);
                scope.labels = Some(Selector::of_label_key(REVISION_LABEL));
                self.views.begin(pods, scope, None);
            }
            Component::Check(key) => {
                scope.namespace = Some(key.namespace.clone());
                scope.labels = Some(Selector::of_label(CHECK_LABEL, &key.name));
                scope.with_ended = true;
                self.views.begin(pods, scope, None);
            }
            Component::Devices(driver) => {
                scope.driver = Some(driver.clone());
                self.views.begin(Watch::ResourceSlices(group), scope, None);
            }
        }
        self.named.push(NamedComponent {
            component,
            group,
            is_seen: false,
            is_served: true,
        });
    }

    /// Ends a group: forgets its objects.
    fn end_group(&mut self, group: ComponentGroup) {
        self.named.retain(|named| named.group != group);
        let watches = self.views.of_groups(|it| it == group);
        for watch in watches.map(|(watch, _)| watch).collect::<Vec<_>>() {
            self.end_watch(watch);
        }
    }

    /// Ends a watch: forgets its objects.
    fn end_watch(&mut self, watch: Watch) {
        self.views.end(watch);
        self.unseen.remove(&watch);
        if let Watch::DaemonSets(group) = watch {
            self.daemon_sets.remove(&group);
        }
        for key in self.index.known(watch) {
            self.remove(watch, &key);
        }
        self.index.end(watch);
    }

    /// Sets the pod selector of a `DaemonSet` that is waited for by name.
    pub(super) fn select_pods(&mut self, group: ComponentGroup, selector: Option<Selector>) {
        let Some(Component::DaemonSet(key)) = self.component(group).cloned() else {
            return;
        };
        let pods = Watch::Pods(group);
        match self.views.scope(pods) {
            None if selector.is_none() => {}
            None => {
                let scope = Scope {
                    namespace: Some(key.namespace),
                    labels: selector,
                    ..Scope::default()
                };
                self.views.begin(pods, scope, None);
            }
            Some(scope) if scope.labels == selector => {}
            Some(_) => {
                self.end_group(group);
                self.begin_group(Component::DaemonSet(key));
            }
        }
    }

    /// If the watch belongs to a named group, works out whether all of the group has been seen.
    pub(super) fn update_named(&mut self, watch: Watch) {
        let Some(group) = watch.group() else { return };
        let mut named = self.named.iter_mut();
        let Some(named) = named.find(|named| named.group == group) else {
            return;
        };
        // An unreadable `DaemonSet` may run on any node.
        let unreadable = self.index.unreadable(Watch::DaemonSets(group)).next();
        let is_readable = unreadable.is_none()
            || self
                .daemon_sets
                .get(&group)
                .is_some_and(|it| !it.is_empty());
        let phases = || {
            let watches = self.views.of_groups(|it| it == group);
            watches.filter_map(|(watch, _)| self.views.phase(watch))
        };
        let is_seen = is_readable && phases().all(|phase| phase != Phase::Unlisted);
        let is_served = phases().all(|phase| phase != Phase::Absent);
        if (named.is_seen, named.is_served) != (is_seen, is_served) {
            (named.is_seen, named.is_served) = (is_seen, is_served);
            self.has_rule_news = true;
            self.mark_all();
        }
    }
}
