//! Which revision of a `DaemonSet` runs on a node, by the labels that its controller gives to pods.

use super::daemon_sets::pods_of;
use super::facts::Facts;
use crate::object::{DaemonSet, ObjectKey, Pod, PodReady};

/// The pods of a `DaemonSet` on a node, which may be of several revisions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Revisions<'a> {
    daemon_set: &'a DaemonSet,
    /// Pods on the node, its own and others.
    pods: &'a [Pod],
}

impl<'a> Revisions<'a> {
    /// Those of a `DaemonSet` that rules wait for by name; `None` if it does not exist.
    pub(crate) fn of(key: &ObjectKey, facts: &Facts<'_, 'a>) -> Option<Self> {
        facts.components.iter().find_map(|component| {
            let daemon_set = component.daemon_sets.get(key)?;
            Some(Self {
                daemon_set,
                pods: component.pods,
            })
        })
    }

    /// The `DaemonSet`'s namespace and name.
    pub(crate) fn daemon_set(&self) -> &'a ObjectKey {
        &self.daemon_set.key
    }

    /// Whether the pod of this revision has gone, and one of another revision takes its place. It is going for good as soon as
    /// it is being deleted with an earlier template than the present one.
    pub(crate) fn has_gone(&self, revision: &str) -> bool {
        let live = || pods_of(self.daemon_set, self.pods).filter_map(revision_of);
        if live().next().is_some() {
            return live().all(|it| it != revision);
        }
        let template = self.daemon_set.template_generation;
        let mut going = self.pods.iter().filter(|pod| {
            pod.terminating
                && pod.daemon_set.as_ref() == Some(&self.daemon_set.uid)
                && revision_of(pod) == Some(revision)
        });
        going.any(|pod| {
            let generations = pod.template_generation.zip(template);
            generations.is_some_and(|(own, present)| own != present)
        })
    }

    /// The revision to record: the recorded one while its pod is there, else that of a Ready pod.
    pub(crate) fn current<'r>(&self, recorded: Option<&'r str>) -> Option<&'r str>
    where
        'a: 'r,
    {
        let live = || pods_of(self.daemon_set, self.pods);
        let is_there = |pod: &Pod| recorded.is_some() && revision_of(pod) == recorded;
        if live().any(is_there) {
            return recorded;
        }
        let ready = live().find(|pod| pod.ready != PodReady::No);
        ready.and_then(revision_of).or(recorded)
    }
}

fn revision_of(pod: &Pod) -> Option<&str> {
    pod.revision.as_deref()
}
