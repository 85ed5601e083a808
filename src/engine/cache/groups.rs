//! Starts and ends the component groups of `DaemonSet`s that rules wait for by name.

use std::sync::Arc;

use super::Cache;
use super::named::MOST;
use crate::condition::{ComponentGroup, NamedDaemonSet};
use crate::engine::io::Effect;
use crate::engine::kind::{Scope, Watch};
use crate::engine::map::Set;
use crate::object::ObjectKey;
use crate::plan::StaleKinds;
use crate::selector::Selector;

impl Cache {
    /// Takes the watches to start and stop.
    pub fn take_orders(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.named.orders)
    }

    /// The pods to read in a live read of these kinds, besides those of the classes.
    pub fn pods_to_read(&self, kinds: &StaleKinds) -> Vec<(ComponentGroup, Scope)> {
        let named = self.named.all.iter().zip(&self.named.selectors);
        let meant = named.filter(|(named, _)| kinds.has_group(named.group));
        meant
            .filter_map(|(NamedDaemonSet { key, group, .. }, selector)| {
                let scope = Scope::Pods(key.namespace.clone(), selector.clone()?);
                Some((*group, scope))
            })
            .collect()
    }

    /// The `DaemonSet`s to read in a live read, besides those of the classes.
    pub fn daemon_sets_to_read(&self) -> Vec<(ComponentGroup, ObjectKey)> {
        let named = self.named.all.iter();
        named
            .map(|named| (named.group, named.key.clone()))
            .collect()
    }

    /// Whether the watch has been stopped.
    pub(super) fn is_unwatched(&self, watch: Watch) -> bool {
        let (Watch::Pods(group) | Watch::DaemonSets(group)) = watch else {
            return false;
        };
        group.class().is_none() && self.named.position(group).is_none()
    }

    /// Starts and stops groups to match the rules.
    pub(super) fn follow_named(&mut self) {
        let wanted = self.rule_set.daemon_sets().into_iter().take(MOST);
        let wanted: Vec<ObjectKey> = wanted.cloned().collect();
        let unwanted = self.named.all.iter();
        let unwanted: Vec<ComponentGroup> = unwanted
            .filter(|named| !wanted.contains(&named.key))
            .map(|named| named.group)
            .collect();
        for group in unwanted {
            self.end_group(group);
        }
        for key in wanted {
            if self.named.all.iter().all(|named| named.key != key) {
                self.named.begin(key);
            }
        }
    }

    /// Sets the pod selector of a `DaemonSet` that is waited for by name.
    pub(super) fn select_pods(&mut self, group: ComponentGroup, selector: Option<Selector>) {
        let Some(position) = self.named.position(group) else {
            return;
        };
        let key = self.named.all[position].key.clone();
        match (&self.named.selectors[position], selector) {
            (None, Some(selector)) => {
                let scope = Scope::Pods(key.namespace, selector.clone());
                self.named.watch(Watch::Pods(group), scope);
                self.named.selectors[position] = Some(selector);
            }
            (known, selector) if *known == selector => {}
            _ => {
                self.end_group(group);
                self.named.begin(key);
            }
        }
    }

    /// If the watch belongs to a named group, works out whether all of the group has been seen.
    pub(super) fn settle_named(&mut self, watch: Watch) {
        let (Watch::Pods(group) | Watch::DaemonSets(group)) = watch else {
            return;
        };
        let Some(position) = self.named.position(group) else {
            return;
        };
        let [pods, daemon_sets] = [Watch::Pods(group), Watch::DaemonSets(group)];
        // An unreadable `DaemonSet` may run on any node.
        let is_understood = self.unreadables.of_watch(daemon_sets).next().is_none()
            || self.daemon_sets.get(group).is_some_and(|it| !it.is_empty());
        let awaited = &self.named.awaited;
        let is_seen = is_understood && !awaited.contains(&pods) && !awaited.contains(&daemon_sets);
        let named = &mut self.named.all[position];
        if std::mem::replace(&mut named.is_seen, is_seen) != is_seen {
            self.rule_news.are_untold = true;
            self.mark_all();
        }
    }

    /// Ends a group: forgets its `DaemonSet` and its pods.
    fn end_group(&mut self, group: ComponentGroup) {
        let Some(position) = self.named.position(group) else {
            return;
        };
        self.named.all.remove(position);
        let pods_are_watched = self.named.selectors.remove(position).is_some();
        for watch in [Watch::Pods(group), Watch::DaemonSets(group)] {
            self.named.awaited.remove(&watch);
            self.certainty.end(watch);
            self.relists.end(watch);
            self.shown.forget(watch);
            let unreadable: Vec<ObjectKey> = self.unreadables.of_watch(watch).cloned().collect();
            for key in unreadable {
                let left_alone = self.unreadables.clear(watch, &key);
                self.mark_each(left_alone.as_slice());
            }
            if pods_are_watched || watch == Watch::DaemonSets(group) {
                self.named.orders.push(Effect::Unwatch(watch));
            }
        }
        self.index.remove_all(Watch::DaemonSets(group));
        self.daemon_sets.remove(group);
        let pods = self.index.remove_all(Watch::Pods(group));
        let nodes: Set<Arc<str>> = pods.into_values().filter_map(|pod| pod.node).collect();
        for name in &nodes {
            if let Some(entry) = self.entries.get_mut(name) {
                entry.pods.remove(group);
            }
            self.drop_if_empty(name);
        }
    }
}
