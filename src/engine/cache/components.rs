//! The pods, `DaemonSet`s and `ResourceSlice`s of all component groups, from watches and live reads.

use std::sync::Arc;

use kube::Resource;

use super::Cache;
use crate::condition::{Component, ComponentGroup, CriticalComponentClass};
use crate::engine::broken::Identity;
use crate::engine::kind::Watch;
use crate::object::{
    DaemonSetObject, ObjectKey, Pod, PodObject, ResourceSlice, ResourceSliceObject,
};

impl Cache {
    /// The class of a group, if it is not a named `DaemonSet`.
    fn class(&self, group: ComponentGroup) -> Option<&CriticalComponentClass> {
        self.classes.get(group.class()?)
    }

    pub(super) fn pod(&self, group: ComponentGroup, key: &ObjectKey) -> Option<&Pod> {
        let node = self.pod_nodes.get(group)?.get(key)?;
        let mut pods = self.entries.get(node)?.pods.get(group)?.iter();
        pods.find(|pod| pod.key == *key)
    }

    pub(super) fn see_pod(&mut self, group: ComponentGroup, object: PodObject) {
        let identity = Identity::of(Watch::Pods(group), object.meta());
        let class = self.class(group);
        // If a class has several namespaces, its watch covers all namespaces.
        if class.is_some_and(|class| !class.namespaces.contains(&identity.key.namespace)) {
            return;
        }
        let known = self.pod_nodes.get(group);
        let known = known.and_then(|nodes| nodes.get(&identity.key).cloned());
        let node = known.or_else(|| object.node_name().map(Arc::from));
        let read = object.read(class.map(|class| &*class.csi_annotation_prefix));
        if let Some(pod) = self.understood(identity, node, read) {
            let counts = match self.named.component(group) {
                None => pod.is_live(),
                Some(Component::Check(_)) => true,
                // Only the pods of `DaemonSet`s count. A selector may match others.
                Some(_) => pod.is_live() && pod.daemon_set.is_some(),
            };
            if counts && !pod.node.is_empty() {
                self.put_pod(group, pod);
            } else {
                self.remove_pod(group, &pod.key);
            }
        }
    }

    fn put_pod(&mut self, group: ComponentGroup, pod: Pod) {
        // A pod is bound once. Another node means a new pod of the same name.
        let known = self.pod_nodes.entry(group).get(&pod.key);
        if known.is_some_and(|node| *node != pod.node) {
            self.remove_pod(group, &pod.key);
        }
        let name = pod.node.clone();
        let nodes = self.pod_nodes.entry(group);
        nodes.insert(pod.key.clone(), name.clone());
        let pods = self.entry(&name).pods.entry(group);
        match pods.iter_mut().find(|known| known.key == pod.key) {
            Some(known) => {
                known.version = pod.version;
                if *known == pod {
                    return;
                }
                *known = pod;
            }
            None => pods.push(pod),
        }
        self.mark(&name);
    }

    pub(super) fn remove_pod(&mut self, group: ComponentGroup, key: &ObjectKey) {
        let nodes = self.pod_nodes.get_mut(group);
        if let Some(name) = nodes.and_then(|nodes| nodes.remove(key))
            && let Some(entry) = self.entries.get_mut(&name)
        {
            let pods = entry.pods.entry(group);
            pods.retain(|pod| pod.key != *key);
            self.mark(&name);
            self.drop_if_empty(&name);
        }
    }

    pub(super) fn see_slice(&mut self, group: ComponentGroup, object: ResourceSliceObject) {
        let identity = Identity::of(Watch::ResourceSlices(group), object.meta());
        let key = identity.key.clone();
        let known = self.slice_nodes.get(group);
        let known = known.and_then(|nodes| nodes.get(&key).cloned());
        let node = known.or_else(|| object.node_name().map(Arc::from));
        let Some(slice) = self.understood(identity, node, object.read()) else {
            return;
        };
        let known = self.slice(group, &key);
        let is_moved = known.is_some_and(|known| known.node != slice.node);
        if is_moved || slice.node.is_empty() {
            self.remove_slice(group, &key);
        }
        if slice.node.is_empty() {
            return;
        }
        let name = slice.node.clone();
        self.slice_nodes.entry(group).insert(key, name.clone());
        let slices = self.entry(&name).slices.entry(group);
        match slices.iter_mut().find(|known| known.name == slice.name) {
            Some(known) => {
                known.version = slice.version;
                if *known == slice {
                    return;
                }
                *known = slice;
            }
            None => slices.push(slice),
        }
        self.mark(&name);
    }

    pub(super) fn slice(&self, group: ComponentGroup, key: &ObjectKey) -> Option<&ResourceSlice> {
        let node = self.slice_nodes.get(group)?.get(key)?;
        let mut slices = self.entries.get(node)?.slices.get(group)?.iter();
        slices.find(|slice| slice.name == key.name)
    }

    pub(super) fn remove_slice(&mut self, group: ComponentGroup, key: &ObjectKey) {
        let nodes = self.slice_nodes.get_mut(group);
        if let Some(name) = nodes.and_then(|nodes| nodes.remove(key))
            && let Some(entry) = self.entries.get_mut(&name)
        {
            let slices = entry.slices.entry(group);
            slices.retain(|slice| slice.name != key.name);
            self.mark(&name);
            self.drop_if_empty(&name);
        }
    }

    /// Keeps a `DaemonSet`. For an unreadable one, the last readable state stays: it may run on any node.
    pub(super) fn see_daemon_set(&mut self, group: ComponentGroup, object: DaemonSetObject) {
        let identity = Identity::of(Watch::DaemonSets(group), object.meta());
        let Some(daemon_set) = self.understood(identity, None, object.read()) else {
            return;
        };
        let all = self.daemon_sets.entry(group);
        if let Some(known) = all.get_mut(&daemon_set.key) {
            // The status is not decoded, so besides the version only fields that matter to decisions can differ.
            known.version = daemon_set.version;
            if *known == daemon_set {
                return;
            }
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
