//! When something happened.

use std::time::Duration;

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
