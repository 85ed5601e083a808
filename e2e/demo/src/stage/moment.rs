//! When something happened.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::ResourceExt;

/// A revision of the store. All objects are in one etcd here, so resource versions order all writes, whatever the order in
/// which the watches show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of an object.
    pub fn of(object: &impl ResourceExt) -> Self {
        let version = object.resource_version();
        Self(
            version
                .and_then(|version| version.parse().ok())
                .unwrap_or_default(),
        )
    }
}

/// When something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// In the store.
    pub revision: Revision,
    /// When it was observed, since the start of the story.
    pub at: Duration,
}

impl Moment {
    /// That of an object's last change, observed at `at`.
    pub fn of(object: &impl ResourceExt, at: Duration) -> Self {
        let revision = Revision::of(object);
        Self { revision, at }
    }
}

/// The time for which a node was held.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    /// When it was gated.
    pub gated: Moment,
    /// When it was released; `None` while it is held.
    pub released: Option<Moment>,
}

impl Period {
    /// Its length so far.
    pub fn lasted(&self, now: Duration) -> Duration {
        let end = self.released.map_or(now, |released| released.at);
        end.saturating_sub(self.gated.at)
    }

    /// Whether the node was held at this revision.
    pub fn includes(&self, revision: Revision) -> bool {
        let is_over = self.released.is_some_and(|it| it.revision <= revision);
        self.gated.revision <= revision && !is_over
    }
}

/// A condition of a node.
pub fn condition<'a>(node: &'a Node, condition_type: &str) -> Option<&'a NodeCondition> {
    let mut conditions = node.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == condition_type)
}
