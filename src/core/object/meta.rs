//! Object keys, resource versions, and the precision of times.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::ObjectMeta;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectKey {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl ObjectKey {
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub fn unscoped(name: Arc<str>) -> Self {
        // Unlike other strings, this one is not allocated.
        let namespace = Arc::default();
        Self { namespace, name }
    }

    pub fn of(meta: &ObjectMeta) -> Self {
        match &meta.namespace {
            Some(namespace) => Self::new(&**namespace, name(meta)),
            None => Self::unscoped(name(meta)),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A resource version: decimal, growing with every write (KEP-5504). One that is not a number is 0, older than everything.
pub type Version = u64;

/// A time as the API writes it, in whole seconds.
pub fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The object's name; empty if it has none, which the API server never sends.
pub fn name(meta: &ObjectMeta) -> Arc<str> {
    meta.name.as_deref().unwrap_or_default().into()
}

pub fn resource_version(meta: &ObjectMeta) -> Version {
    version(meta.resource_version.as_deref())
}

pub fn version(text: Option<&str>) -> Version {
    text.and_then(|version| version.parse().ok())
        .unwrap_or_default()
}
