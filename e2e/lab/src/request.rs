//! What is asked of the server, as a value.

use serde_json::Value;

use crate::kind::{Key, Kind};
use crate::selector::Selector;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Make this object; its kind and, where it has one, its namespace are where it is sent to.
    Create {
        /// Where to.
        key: Key,
        /// The object.
        object: Value,
    },
    /// Read one object.
    Get {
        /// Which.
        key: Key,
    },
    /// Read all objects of a kind that a selector matches.
    List {
        /// The kind.
        kind: Kind,
        /// Only in this namespace.
        namespace: Option<String>,
        /// What they have to match.
        selector: Selector,
    },
    /// Change one object.
    Patch {
        /// Which.
        key: Key,
        /// The part of it that this may change.
        part: Part,
        /// How.
        patch: Patch,
    },
    /// Put this in the place of an object.
    Update {
        /// Of which.
        key: Key,
        /// The part of it that this may change.
        part: Part,
        /// The object as it is to be.
        object: Value,
    },
    /// Let a pod run on this node: what a scheduler asks for.
    Bind {
        /// Which pod.
        key: Key,
        /// The node.
        node: String,
    },
    /// Delete one object.
    Delete {
        /// Which.
        key: Key,
        /// What it has to be for that.
        preconditions: Preconditions,
        /// How many seconds it has, where that is not what the object says.
        grace: Option<i64>,
    },
}

/// The part of an object that a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All but the status, where that is a subresource.
    Main,
    /// The status.
    Status,
}

/// A change to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// A list of operations (RFC 6902).
    Json(json_patch::Patch),
    /// An object that is laid over it (RFC 7386).
    Merge(Value),
    /// The same, with lists that are merged by key; not for custom resources.
    Strategic(Value),
}

/// What an object has to be to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// Its UID.
    pub uid: Option<String>,
    /// Its revision.
    pub resource_version: Option<String>,
}
