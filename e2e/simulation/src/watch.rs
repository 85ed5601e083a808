//! The events that a watch derives from changes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kind::{Key, Kind};
use crate::selector::Selector;

/// A change of one object, at one revision.
#[derive(Debug, Clone)]
pub struct Change {
    pub revision: u64,
    pub key: Key,
    /// The object before; `None` if it did not exist.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` if it is gone.
    pub after: Option<Arc<Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The type of the change, as this watch sees it.
    pub event_type: EventType,
    /// The current object. For a deletion: the last state, with the revision of the deletion.
    pub object: Arc<Value>,
}

/// What happened to an object, as a watch sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// It exists, or now matches the selector.
    Added,
    Modified,
    /// It is gone, or no longer matches the selector.
    Deleted,
    /// No change: the watch has shown everything up to this revision.
    Bookmark,
}

impl EventType {
    /// The type's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

impl Change {
    /// The event that a watch with this selector shows, if any.
    pub fn seen_through(&self, selector: &Selector) -> Option<Event> {
        let in_view = |state: &Option<Arc<Value>>| state.clone().filter(|it| selector.matches(it));
        let (event_type, object) = match (in_view(&self.before), in_view(&self.after)) {
            (None, None) => return None,
            (None, Some(after)) => (EventType::Added, after),
            (Some(_), Some(after)) => (EventType::Modified, after),
            (Some(mut before), None) => {
                let object = Arc::make_mut(&mut before);
                object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
                (EventType::Deleted, before)
            }
        };
        Some(Event { event_type, object })
    }
}

/// A bookmark: a watch of this kind has shown everything up to this revision.
pub fn bookmark(kind: Kind, revision: u64) -> Event {
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name(),
        "metadata": { "resourceVersion": revision.to_string() },
    });
    Event {
        event_type: EventType::Bookmark,
        object: Arc::new(object),
    }
}
