//! The pods and `DaemonSet`s of critical component classes, as the watches and looks show them.

use std::sync::Arc;

use kube::Resource;

use super::Cache;
use crate::condition::CriticalComponentClass;
use crate::engine::broken::Identity;
use crate::engine::kind::Watch;
use crate::object::{DaemonSetObject, ObjectKey, Pod, PodObject};

impl Cache {
    /// What is known of a pod.
    pub(super) fn pod(&self, class: usize, key: &ObjectKey) -> Option<&Pod> {
        let node = self.pod_nodes[class].get(key)?;
        let pods = &self.entries.get(node)?.pods[class];
        pods.iter().find(|pod| pod.key == *key)
    }

    pub(super) fn see_pod(&mut self, class: usize, object: PodObject) {
        let identity = Identity::of(Watch::Pods(class), object.meta());
        let CriticalComponentClass {
            namespaces,
            csi_annotation_prefix,
            ..
        } = &self.classes[class];
        // Where a class has several namespaces, the watch is of all.
        if !namespaces.contains(&identity.key.namespace) {
            return;
        }
        let known = self.pod_nodes[class].get(&identity.key).cloned();
        let node = known.or_else(|| object.node_name().map(Arc::from));
        let read = object.read(csi_annotation_prefix);
        if let Some(pod) = self.understood(identity, node, read) {
            self.put_pod(class, pod);
        }
    }

    fn put_pod(&mut self, class: usize, pod: Pod) {
        if !pod.is_live() || pod.node.is_empty() {
            self.remove_pod(class, &pod.key);
            return;
        }
        // A pod is bound once; another node means that it was created again under its name.
        if self.pod_nodes[class]
            .get(&pod.key)
            .is_some_and(|node| *node != pod.node)
        {
            self.remove_pod(class, &pod.key);
        }
        let name = pod.node.clone();
        self.pod_nodes[class].insert(pod.key.clone(), name.clone());
        let pods = &mut self.entry(&name).pods[class];
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

    pub(super) fn remove_pod(&mut self, class: usize, key: &ObjectKey) {
        if let Some(name) = self.pod_nodes[class].remove(key)
            && let Some(entry) = self.entries.get_mut(&name)
        {
            entry.pods[class].retain(|pod| pod.key != *key);
            self.mark(&name);
            self.drop_if_empty(&name);
        }
    }

    /// Keeps a `DaemonSet`. One that cannot be understood is taken as it was last: it may be meant for any node.
    pub(super) fn see_daemon_set(&mut self, class: usize, object: DaemonSetObject) {
        let identity = Identity::of(Watch::DaemonSets(class), object.meta());
        let Some(daemon_set) = self.understood(identity, None, object.read()) else {
            return;
        };
        if let Some(known) = self.daemon_sets[class].get_mut(&daemon_set.key) {
            // The status is not decoded, so only what decisions depend on can differ beside the version.
            known.version = daemon_set.version;
            if *known == daemon_set {
                return;
            }
        }
        let key = daemon_set.key.clone();
        self.daemon_sets[class].insert(key.clone(), daemon_set);
        self.daemon_set_changed(class, &key);
    }

    pub(super) fn remove_daemon_set(&mut self, class: usize, key: &ObjectKey) {
        if self.daemon_sets[class].remove(key).is_some() {
            self.daemon_set_changed(class, key);
        }
    }

    /// Has evaluated what depends on a `DaemonSet`. One in a namespace that does not count is only told of: whoever may
    /// change it there must not keep the controller busy.
    fn daemon_set_changed(&mut self, class: usize, key: &ObjectKey) {
        if !self.rule_set.waits_for_class(class) {
            return;
        }
        self.rule_news.are_untold = true;
        if self.classes[class].namespaces.contains(&key.namespace) {
            self.mark_all();
        }
    }
}
