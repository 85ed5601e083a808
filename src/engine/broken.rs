//! Unreadable objects, and how they are identified.

use std::fmt;
use std::sync::Arc;

use kube::api::ObjectMeta;

use crate::condition::Watch;
use crate::object::{ObjectKey, Unreadable};

/// Identifies an object, as far as its metadata allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub watch: Watch,
    /// Its name and namespace; each is empty if it has none.
    pub key: ObjectKey,
    pub uid: Option<Arc<str>>,
}

impl Identity {
    pub fn of(watch: Watch, meta: &ObjectMeta) -> Self {
        Self {
            watch,
            key: ObjectKey::of(meta),
            uid: meta.uid.as_deref().map(Arc::from),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.watch.kind();
        match (&*self.key.namespace, &*self.key.name) {
            (_, "") => write!(f, "a {kind} without a name"),
            ("", name) => write!(f, "{kind} {name}"),
            _ => write!(f, "{kind} {}", self.key),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub object: Identity,
    /// The node that is left as it is because of it.
    pub node: Option<Arc<str>>,
    pub why: Unreadable,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be parsed: {}", self.object, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::ComponentGroup;

    #[test]
    fn an_object_is_called_by_as_much_of_its_name_as_it_has() {
        for (watch, namespace, name, called) in [
            (Watch::Pods(ComponentGroup::Class(0)), "ns", "a", "Pod ns/a"),
            (Watch::Nodes, "", "a", "Node a"),
            (
                Watch::Pods(ComponentGroup::Class(0)),
                "ns",
                "",
                "a Pod without a name",
            ),
            (Watch::Nodes, "", "", "a Node without a name"),
        ] {
            let identity = Identity {
                watch,
                key: ObjectKey::new(namespace, name),
                uid: None,
            };
            assert_eq!(identity.to_string(), called);
        }
    }
}
