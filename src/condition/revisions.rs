//! Which revision of a `DaemonSet` runs on a node, by the labels that its controller gives to pods.

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
        facts.components.iter().find_map(|(_, group)| {
            let daemon_set = group.daemon_sets.get(key)?;
            let pods = group.pods;
            Some(Self { daemon_set, pods })
        })
    }

    /// The `DaemonSet`'s namespace and name.
    pub(crate) fn daemon_set(&self) -> &'a ObjectKey {
        &self.daemon_set.key
    }

    /// Whether the pod of this revision has gone, and one of another revision takes its place. It is going for good as soon as
    /// it is being deleted with an earlier template than the present one.
    pub(crate) fn has_gone(&self, revision: &str) -> bool {
        let live = || self.live().filter_map(revision_of);
        if live().next().is_some() {
            return live().all(|it| it != revision);
        }
        let template = self.daemon_set.template_generation;
        let mut going = self.pods.iter().filter(|pod| {
            pod.terminating && self.daemon_set.owns(pod) && revision_of(pod) == Some(revision)
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
        let is_there = |pod: &Pod| recorded.is_some() && revision_of(pod) == recorded;
        if self.live().any(is_there) {
            return recorded;
        }
        let ready = self.live().find(|pod| pod.ready != PodReady::No);
        ready.and_then(revision_of).or(recorded)
    }

    fn live(&self) -> impl Iterator<Item = &'a Pod> {
        let own = |pod: &&Pod| pod.is_live() && self.daemon_set.owns(pod);
        self.pods.iter().filter(own)
    }
}

fn revision_of(pod: &Pod) -> Option<&str> {
    pod.revision.as_deref()
}
