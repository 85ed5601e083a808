//! An object as the caches keep it.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use kube::runtime::reflector::Lookup;

use super::meta::{ObjectKey, Version};
use super::watched::Kind;

/// A state of an object.
#[derive(Debug)]
pub struct State<T> {
    pub key: ObjectKey,
    pub version: Version,
    pub value: T,
}

/// A reference to a state, for the stores and all who read it.
#[derive(Debug, Clone)]
pub struct Kept<T>(Arc<State<T>>);

impl<T> From<State<T>> for Kept<T> {
    fn from(state: State<T>) -> Self {
        Self(Arc::new(state))
    }
}

impl<T> Kept<T> {
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    pub fn version(&self) -> Version {
        self.0.version
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

/// Without version and UID, so that a key in a store is one or two strings.
impl<T: Kind> Lookup for Kept<T> {
    type DynamicType = ();

    fn group((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[0].into()
    }

    fn version((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[1].into()
    }

    fn kind((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[2].into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[3].into()
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        Some((&*self.key().name).into())
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        let namespace = &*self.key().namespace;
        (!namespace.is_empty()).then(|| namespace.into())
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        None
    }
}
