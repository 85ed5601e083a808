//! When something happened.

use std::time::Duration;

use kube::ResourceExt;

/// The revision of the store at which something was written. All objects are in one etcd here, so their resource versions
/// tell which of two writes came first, whatever the order in which the watches show them.
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
    /// As it was seen, since the start of the story.
    pub at: Duration,
}
