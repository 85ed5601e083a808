//! What is watched only for rules that wait for it (classes, `CSINode`s, what rules name), and whether all of it has been seen.
//!
//! A component that a rule names forms a group. The pods of a `DaemonSet` are watched once its selector is known; created again
//! with another selector, it gets a new group, so pods of the old one are not mistaken for its own.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::freshness::{Phase, WatchStates};
use nodegate_core::condition::{
    ByGroup, CHECK_LABEL, Component, ComponentGroup, CriticalComponentClass, NamedComponent, Watch,
};
use nodegate_core::object::{DaemonSet, Kept, ObjectKey, Pod, PodPhase, REVISION_LABEL, State};
use nodegate_core::rule::RuleSet;
use nodegate_core::selector::{Filter, Selector};

/// How often `DaemonSet`s that are gone are dropped, at most.
const SWEEP: SignedDuration = SignedDuration::from_secs(15);

/// What rules can wait for.
#[derive(Debug, Default)]
pub(super) struct Components {
    pub(super) classes: Vec<CriticalComponentClass>,
    pub(super) are_published: bool,
    pub(super) named: Vec<NamedComponent>,
    /// The number of the next group of what a rule names.
    pub(super) next_group: usize,
    pub(super) daemon_sets: ByGroup<BTreeMap<ObjectKey, Kept<DaemonSet>>>,
    /// When those that are gone were last dropped.
    pub(super) swept: Option<Timestamp>,
    pub(super) with_csi_nodes: bool,
    /// The watches of classes and of `CSINode`s that have not listed yet, of those that rules depend on.
    pub(super) unseen: BTreeSet<Watch>,
    /// The watches that have ended, whose objects are not forgotten yet.
    pub(super) ended: Vec<Watch>,
}

impl Components {
    pub(super) fn get(&self, group: ComponentGroup) -> Option<&Component> {
        let mut named = self.named.iter();
        named.find(|it| it.group == group).map(|it| &it.component)
    }

    pub(super) fn class(&self, group: ComponentGroup) -> Option<&CriticalComponentClass> {
        self.classes.get(group.class()?)
    }

    /// Whether objects in this namespace count for the group.
    pub(super) fn covers(&self, group: ComponentGroup, namespace: &str) -> bool {
        let class = self.class(group);
        class.is_none_or(|class| class.namespaces.contains(namespace))
    }

    /// Whether a pod counts for the group. Drops those of its annotations that do not.
    pub(super) fn counts(&self, group: ComponentGroup, pod: &mut Pod) -> bool {
        let class = self.class(group);
        pod.keep_annotations(class.map(|class| &*class.csi_annotation_prefix));
        let counts = match self.get(group) {
            None => pod.is_live(),
            Some(Component::Check(_)) => true,
            // A selector may match pods of others than `DaemonSet`s. A pod that is being deleted tells that its revision goes.
            Some(_) => pod.phase == PodPhase::Unfinished && pod.may_be_a_daemon_sets(),
        };
        counts && !pod.node.is_empty()
    }

    /// Starts and stops watches to match the rules.
    pub(super) fn follow(&mut self, rules: &RuleSet, views: &mut WatchStates) {
        let mut wanted = rules.components();
        let named = self.named.iter();
        let unwanted = named.filter(|named| !wanted.contains(&named.component));
        let unwanted: Vec<_> = unwanted.map(|named| named.group).collect();
        for group in unwanted {
            self.end_group(group, views);
        }
        wanted.retain(|it| self.named.iter().all(|named| named.component != *it));
        for component in wanted {
            self.begin_group(component, views);
        }
        let classes = self.classes.iter().enumerate();
        let of_classes = classes.flat_map(|(index, class)| {
            let group = ComponentGroup::Class(index);
            [Watch::Pods(group), Watch::DaemonSets(group)].map(|it| (it, class.filter(it)))
        });
        let csi_nodes = (Watch::CsiNodes, Filter::default());
        for (watch, scope) in of_classes.chain([csi_nodes]).collect::<Vec<_>>() {
            let is_read = watch == Watch::CsiNodes && self.with_csi_nodes;
            match (is_read || rules.depends_on(watch), views.phase(watch)) {
                (true, None) => {
                    views.begin(watch, scope, None);
                    self.unseen.insert(watch);
                }
                (false, Some(_)) => self.end(watch, views),
                _ => {}
            }
        }
    }

    fn begin_group(&mut self, component: Component, views: &mut WatchStates) {
        let group = ComponentGroup::Named(self.next_group);
        self.next_group += 1;
        let (pods, daemon_sets) = (Watch::Pods(group), Watch::DaemonSets(group));
        match &component {
            Component::DaemonSet(key) => {
                let one = Filter::one(&key.namespace, &key.name);
                views.begin(daemon_sets, one, None);
            }
            Component::AllDaemonSets => {
                views.begin(daemon_sets, Filter::default(), None);
                let labels = Selector::of_label_key(REVISION_LABEL);
                let all = Filter::labelled(labels).bound().unfinished();
                views.begin(pods, all, None);
            }
            // A check's pods tell its result once they have ended.
            Component::Check(key) => {
                let labels = Selector::of_label(CHECK_LABEL, &key.name);
                let runs = Filter::labelled(labels).within(Some(&key.namespace));
                views.begin(pods, runs.bound(), None);
            }
            Component::Devices(driver) => {
                let of_driver = Filter::default().is("spec.driver", driver);
                views.begin(Watch::ResourceSlices(group), of_driver, None);
            }
        }
        self.named.push(NamedComponent {
            component,
            group,
            is_seen: false,
            is_served: true,
        });
    }

    fn end_group(&mut self, group: ComponentGroup, views: &mut WatchStates) {
        self.named.retain(|named| named.group != group);
        let watches = views.of_groups(|it| it == group);
        let watches: Vec<_> = watches.map(|(watch, _)| watch).collect();
        for watch in watches {
            self.end(watch, views);
        }
    }

    fn end(&mut self, watch: Watch, views: &mut WatchStates) {
        views.end(watch);
        self.ended.push(watch);
        self.unseen.remove(&watch);
        if let Watch::DaemonSets(group) = watch {
            self.daemon_sets.remove(&group);
        }
    }

    /// Keeps a `DaemonSet` that is gone as a deleted one, and drops those that have been for long. Returns whether it was there.
    pub(super) fn depart(
        &mut self,
        group: ComponentGroup,
        gone: &Kept<DaemonSet>,
        now: Timestamp,
    ) -> bool {
        // Not at each deletion: there may be many at a time.
        if self.swept.is_none_or(|at| now.duration_since(at) >= SWEEP) {
            for all in self.daemon_sets.values_mut() {
                all.retain(|_, it| it.counts_until().is_none_or(|until| now < until));
            }
            self.swept = Some(now);
        }
        let Some(all) = self.daemon_sets.get_mut(&group) else {
            return false;
        };
        let at = gone.deleted.unwrap_or(now);
        all.insert(gone.key().clone(), as_deleted(gone, at));
        true
    }

    /// Counts absences from now on, because the clock was set.
    pub(super) fn measure_anew(&mut self, now: Timestamp) {
        self.swept = None;
        let all = self.daemon_sets.values_mut();
        for it in all.flat_map(BTreeMap::values_mut) {
            if it.deleted.is_some_and(|at| at > Timestamp::MIN) {
                *it = as_deleted(it, now);
            }
        }
    }

    /// Sets the pod selector of a `DaemonSet` that is waited for by name.
    pub(super) fn select_pods(
        &mut self,
        group: ComponentGroup,
        selector: Option<Selector>,
        views: &mut WatchStates,
    ) {
        let Some(Component::DaemonSet(key)) = self.get(group).cloned() else {
            return;
        };
        let pods = Watch::Pods(group);
        match (views.scope(pods), selector) {
            (None, None) => {}
            (None, Some(selector)) => {
                let its_own = Filter::labelled(selector).within(Some(&key.namespace));
                views.begin(pods, its_own.bound().unfinished(), None);
            }
            (Some(scope), selector) if scope.labels == selector => {}
            (Some(_), _) => {
                self.end_group(group, views);
                self.begin_group(Component::DaemonSet(key), views);
            }
        }
    }

    /// Whether this `DaemonSet`, which is unreadable now, counts for the group and was never readable.
    pub(super) fn lacks(&self, group: ComponentGroup, key: &ObjectKey) -> bool {
        let known = self.daemon_sets.get(&group).and_then(|all| all.get(key));
        self.covers(group, &key.namespace) && known.is_none_or(|it| it.deleted.is_some())
    }

    /// Works out whether all of a group was seen; returns whether that changed. An unreadable `DaemonSet` may run anywhere.
    pub(super) fn update(
        &mut self,
        group: ComponentGroup,
        is_unreadable: bool,
        views: &WatchStates,
    ) -> bool {
        let mut named = self.named.iter_mut();
        let Some(named) = named.find(|named| named.group == group) else {
            let watch = Watch::DaemonSets(group);
            return match views.phase(watch) {
                Some(Phase::Listed) if !is_unreadable => self.unseen.remove(&watch),
                Some(Phase::Listed) => self.unseen.insert(watch),
                _ => false,
            };
        };
        let phases = || {
            let watches = views.of_groups(|it| it == group);
            watches.filter_map(|(watch, _)| views.phase(watch))
        };
        let is_seen = !is_unreadable && phases().all(|phase| phase != Phase::Unlisted);
        let is_served = phases().all(|phase| phase != Phase::Absent);
        let has_changed = (named.is_seen, named.is_served) != (is_seen, is_served);
        (named.is_seen, named.is_served) = (is_seen, is_served);
        has_changed
    }
}

/// The `DaemonSet`, deleted at this time.
fn as_deleted(gone: &Kept<DaemonSet>, at: Timestamp) -> Kept<DaemonSet> {
    let (key, version, mut value) = (gone.key().clone(), gone.version(), DaemonSet::clone(gone));
    value.deleted = Some(at);
    Kept::from(State {
        key,
        version,
        value,
    })
}
