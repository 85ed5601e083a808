//! The pods, `DaemonSet`s and `ResourceSlice`s of all component groups, from watches.

use std::sync::Arc;

use kube::Resource;

use super::Cache;
use crate::condition::{Component, ComponentGroup, CriticalComponentClass, Watch};
use crate::engine::broken::Identity;
use crate::object::{DaemonSet, ObjectKey, Pod, PodPhase, ResourceSlice, Watched};

impl Cache {
    /// The class of a group, if it is not a named `DaemonSet`.
    fn class(&self, group: ComponentGroup) -> Option<&CriticalComponentClass> {
        self.classes.get(group.class()?)
    }

    pub(super) fn see_pod(&mut self, group: ComponentGroup, object: Watched<Pod>) {
        let watch = Watch::Pods(group);
        let identity = Identity::of(watch, object.meta());
        let version = object.version();
        let class = self.class(group);
        // If a class has several namespaces, its watch covers all namespaces.
        if class.is_some_and(|class| !class.namespaces.contains(&identity.key.namespace)) {
            return;
        }
        let known = self.index.node(watch, &identity.key);
        let node = known.or_else(|| object.node_name().map(Arc::from));
        let read = object.read().map(|mut pod| {
            pod.keep_annotations(class.map(|class| &*class.csi_annotation_prefix));
            pod
        });
        if let Some((key, mut pod)) = self.understood(identity, version, node, read) {
            pod.key = key;
            let counts = match self.named.component(group) {
                None => pod.is_live(),
                Some(Component::Check(_)) => true,
                // Only the pods of `DaemonSet`s count. A selector may match others. One that is being deleted tells that its
                // revision goes.
                Some(_) => pod.phase == PodPhase::Unfinished && pod.daemon_set.is_some(),
            };
            if counts && !pod.node.is_empty() {
                self.put_pod(group, pod);
            } else {
                self.remove(watch, &pod.key);
            }
        }
    }

    fn put_pod(&mut self, group: ComponentGroup, mut pod: Pod) {
        // The node's name is in memory once.
        if let Some((name, _)) = self.entries.get_key_value(&pod.node) {
            pod.node = name.clone();
        }
        let name = pod.node.clone();
        // A pod is bound once. Another node means a new pod of the same name.
        let before = self.index.place(Watch::Pods(group), &pod.key, &name);
        self.remove_pod(group, &pod.key, before);
        let pods = self.entry(&name).pods.entry(group);
        match pods.iter_mut().find(|known| known.key == pod.key) {
            Some(known) if *known == pod => return,
            Some(known) => *known = pod,
            None => {
                pods.reserve_exact(1);
                pods.push(pod);
            }
        }
        self.mark(&name);
    }

    /// Removes a pod from this node.
    pub(super) fn remove_pod(
        &mut self,
        group: ComponentGroup,
        key: &ObjectKey,
        node: Option<Arc<str>>,
    ) {
        if let Some(name) = node
            && let Some(entry) = self.entries.get_mut(&name)
        {
            let pods = entry.pods.entry(group);
            pods.retain(|pod| pod.key != *key);
            self.mark(&name);
            self.drop_if_empty(&name);
        }
    }

    pub(super) fn see_slice(&mut self, group: ComponentGroup, object: Watched<ResourceSlice>) {
        let watch = Watch::ResourceSlices(group);
        let identity = Identity::of(watch, object.meta());
        let version = object.version();
        let known = self.index.node(watch, &identity.key);
        let node = known.or_else(|| object.node_name().map(Arc::from));
        let slice = self.understood(identity, version, node, object.read());
        let Some((key, mut slice)) = slice else {
            return;
        };
        slice.name = key.name.clone();
        if slice.node.is_empty() {
            self.remove(watch, &key);
            return;
        }
        let name = slice.node.clone();
        let before = self.index.place(watch, &key, &name);
        self.remove_slice(group, &key, before);
        let slices = self.entry(&name).slices.entry(group);
        // Sorted by name: a kubelet may write any number of them.
        match slices.binary_search_by(|known| known.name.cmp(&slice.name)) {
            Ok(at) if slices[at] == slice => return,
            Ok(at) => slices[at] = slice,
            Err(at) => slices.insert(at, slice),
        }
        self.mark(&name);
    }

    /// Removes a slice from this node.
    pub(super) fn remove_slice(
        &mut self,
        group: ComponentGroup,
        key: &ObjectKey,
        node: Option<Arc<str>>,
    ) {
        if let Some(name) = node
            && let Some(entry) = self.entries.get_mut(&name)
        {
            let slices = entry.slices.entry(group);
            slices.retain(|slice| slice.name != key.name);
            self.mark(&name);
            self.drop_if_empty(&name);
        }
    }

    /// Keeps a `DaemonSet`. For an unreadable one, the last readable state stays: it may run on any node.
    pub(super) fn see_daemon_set(&mut self, group: ComponentGroup, object: Watched<DaemonSet>) {
        let identity = Identity::of(Watch::DaemonSets(group), object.meta());
        let version = object.version();
        let daemon_set = self.understood(identity, version, None, object.read());
        let Some((_, daemon_set)) = daemon_set else {
            return;
        };
        let all = self.daemon_sets.entry(group);
        if all.get(&daemon_set.key) == Some(&daemon_set) {
            return;
        }
        let (key, selector) = (daemon_set.key.clone(), daemon_set.selector.clone());
        all.insert(key.clone(), daemon_set);
        self.daemon_set_changed(group, &key);
        self.select_pods(group, selector);
    }

    pub(super) fn remove_daemon_set(&mut self, group: ComponentGroup, key: &ObjectKey) {
        let all = self.daemon_sets.get_mut(group);
        if all.is_some_and(|all| all.remove(key).is_some()) {
            self.daemon_set_changed(group, key);
        }
    }

    /// Marks for evaluation what depends on a `DaemonSet`. One outside its class's namespaces is only reported: those who may
    /// change it there must not be able to keep the controller busy.
    fn daemon_set_changed(&mut self, group: ComponentGroup, key: &ObjectKey) {
        let class = self.class(group);
        if group
            .class()
            .is_some_and(|index| !self.rule_set.waits_for_class(index))
        {
            return;
        }
        let counts = class.is_none_or(|class| class.namespaces.contains(&key.namespace));
        self.rule_news.are_untold = true;
        if counts {
            self.mark_all();
        }
    }
}
