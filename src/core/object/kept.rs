//! An object as the caches keep it.

use std::ops::Deref;
use std::sync::Arc;

use super::meta::{ObjectKey, Version};

#[derive(Debug)]
pub struct State<T> {
    pub key: ObjectKey,
    pub version: Version,
    pub value: T,
}

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
