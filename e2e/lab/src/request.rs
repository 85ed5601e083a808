//! Requests to the server, as values.

use serde_json::Value;

use crate::kind::{Key, Kind};
use crate::selector::Selector;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Create an object.
    Create {
        /// Its kind, name and, for a namespaced kind, namespace.
        key: Key,
        /// The object.
        object: Value,
    },
    /// Read one object.
    Get {
        /// The object to read.
        key: Key,
    },
    /// List the objects of a kind that match a selector.
    List {
        /// The kind.
        kind: Kind,
        /// Only in this namespace.
        namespace: Option<String>,
        /// The selector.
        selector: Selector,
    },
    /// Change one object.
    Patch {
        /// The object to patch.
        key: Key,
        /// The part of the object that the patch may change.
        part: Part,
        /// The patch.
        patch: Patch,
    },
    /// Replace an object.
    Update {
        /// The object to replace.
        key: Key,
        /// The part of the object that the update may change.
        part: Part,
        /// The new object.
        object: Value,
    },
    /// Bind a pod to a node, as the scheduler does.
    Bind {
        /// The pod.
        key: Key,
        /// The node.
        node: String,
    },
    /// Delete one object.
    Delete {
        /// The object to delete.
        key: Key,
        /// Conditions on the object's identity.
        preconditions: Preconditions,
        /// The grace period in seconds, if the request sets one.
        grace: Option<i64>,
    },
}

/// The part of an object that a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything, except the status of a kind with a status subresource.
    Main,
    /// The status.
    Status,
}

/// A patch.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// A JSON patch (RFC 6902).
    Json(json_patch::Patch),
    /// A merge patch (RFC 7386).
    Merge(Value),
    /// A strategic merge patch: lists merge by key. Custom resources refuse it.
    Strategic(Value),
}

/// What must match for an object to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// Its UID.
    pub uid: Option<String>,
    /// Its revision.
    pub resource_version: Option<String>,
}
