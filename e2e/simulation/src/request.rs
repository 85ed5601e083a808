//! Requests to the server, as values.

use serde_json::Value;

use crate::kind::Key;

#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Create {
        /// Its kind, name and, for a namespaced kind, namespace.
        key: Key,
        object: Value,
    },
    Patch {
        key: Key,
        /// The part of the object that the patch may change.
        part: Part,
        patch: Patch,
    },
    /// Bind a pod to a node, as the scheduler does.
    Bind { key: Key, node: String },
    Delete {
        key: Key,
        /// Conditions on the object's identity.
        preconditions: Preconditions,
        /// The grace period in seconds, if the request sets one.
        grace: Option<i64>,
    },
}

impl Request {
    /// The object that it is about.
    pub fn key(&self) -> &Key {
        match self {
            Self::Create { key, .. }
            | Self::Patch { key, .. }
            | Self::Bind { key, .. }
            | Self::Delete { key, .. } => key,
        }
    }
}

/// The part of an object that a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything, except the status of a kind with a status subresource.
    Main,
    Status,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    Json(json_patch::Patch),
    /// A merge patch (RFC 7386).
    Merge(Value),
    /// A strategic merge patch: lists merge by key. Custom resources refuse it.
    Strategic(Value),
}

/// What must match for an object to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}
