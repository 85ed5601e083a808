//! Starts and ends the component groups of what rules wait for by name.

use std::sync::Arc;

use super::Cache;
use super::named::MOST;
use crate::condition::{Component, ComponentGroup, Scope, Watch};
use crate::engine::io::Effect;
use crate::engine::map::Set;
use crate::object::ObjectKey;
use crate::selector::Selector;

impl Cache {
    /// The watches of what rules name.
    pub fn components(&self) -> impl Iterator<Item = &(Watch, Scope)> {
        self.named.watches.iter().flatten()
    }

    /// Starts and stops groups to match the rules.
    pub(super) fn follow_named(&mut self) {
        let wanted = self.rule_set.components().into_iter().take(MOST);
        let wanted: Vec<Component> = wanted.cloned().collect();
        let unwanted = self.named.all.iter();
        let unwanted: Vec<ComponentGroup> = unwanted
            .filter(|named| !wanted.contains(&named.component))
            .map(|named| named.group)
            .collect();
        for group in unwanted {
            self.end_group(group);
        }
        for component in wanted {
            let mut known = self.named.all.iter();
            if known.all(|named| named.component != component) {
                self.named.begin(component, &mut self.views);
            }
        }
    }

    /// Sets the pod selector of a `DaemonSet` that is waited for by name.
    pub(super) fn select_pods(&mut self, group: ComponentGroup, selector: Option<Selector>) {
        let Some(position) = self.named.position(group) else {
            return;
        };
        let component = self.named.all[position].component.clone();
        let Component::DaemonSet(key) = &component else {
            return;
        };
        let pods = Watch::Pods(group);
        let mut watches = self.named.watches[position].iter();
        let known = watches.find(|(watch, _)| *watch == pods);
        match (known.map(|(_, scope)| &scope.labels), selector) {
            (None, None) => {}
            (None, labels) => {
                let scope = Scope {
                    namespace: Some(key.namespace.clone()),
                    labels,
                    ..Scope::default()
                };
                self.named.watch(position, pods, scope, &mut self.views);
            }
            (Some(known), labels) if *known == labels => {}
            _ => {
                self.end_group(group);
                self.named.begin(component, &mut self.views);
            }
        }
    }

    /// If the watch belongs to a named group, works out whether all of the group has been seen.
    pub(super) fn settle_named(&mut self, watch: Watch) {
        let group = watch.group();
        let Some((group, position)) = group.and_then(|it| Some((it, self.named.position(it)?)))
        else {
            return;
        };
        // An unreadable `DaemonSet` may run on any node.
        let unreadable = self.unreadables.of_watch(Watch::DaemonSets(group)).next();
        let is_understood =
            unreadable.is_none() || self.daemon_sets.get(group).is_some_and(|it| !it.is_empty());
        let mut watches = self.named.watches[position].iter();
        let is_seen = is_understood && watches.all(|(it, _)| self.views.has_listed(*it));
        let named = &mut self.named.all[position];
        if std::mem::replace(&mut named.is_seen, is_seen) != is_seen {
            self.rule_news.are_untold = true;
            self.mark_all();
        }
    }

    /// Ends a group: forgets its objects.
    fn end_group(&mut self, group: ComponentGroup) {
        let Some(position) = self.named.position(group) else {
            return;
        };
        self.named.all.remove(position);
        let mut nodes: Set<Arc<str>> = Set::default();
        for (watch, _) in self.named.watches.remove(position).into_iter().rev() {
            let kept = self.index.remove_all(watch);
            nodes.extend(kept.into_values().filter_map(|kept| kept.node));
            self.views.end(watch);
            let unreadable: Vec<ObjectKey> = self.unreadables.of_watch(watch).cloned().collect();
            for key in unreadable {
                let left_alone = self.unreadables.clear(watch, &key);
                self.mark_each(left_alone.as_slice());
            }
            self.named.orders.push(Effect::Unwatch(watch));
        }
        self.daemon_sets.remove(group);
        for name in &nodes {
            if let Some(entry) = self.entries.get_mut(name) {
                entry.pods.remove(group);
                entry.slices.remove(group);
            }
            self.drop_if_empty(name);
        }
    }
}
