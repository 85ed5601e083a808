//! One request in a form common to both servers: placeholders for UIDs and revisions take the values that each server has
//! shown.

use std::collections::HashMap;

use nodegate_simulation::{Key, Kind, Part, Patch, Preconditions, Request, Selector};
use serde_json::{Value, json};

/// An object, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub Kind, pub u8);

/// One request. Texts in angle brackets stand for values of the object as last (or first) shown.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(Slot, Value),
    Get(Slot),
    /// With namespace, labels and fields.
    List(Kind, Option<&'static str>, &'static str, &'static str),
    Json(Slot, Part, Value),
    Merge(Slot, Part, Value),
    Strategic(Slot, Part, Value),
    /// The object as last shown, with this merge patch.
    Update(Slot, Part, Value),
    /// The object as first shown, with this merge patch.
    Stale(Slot, Part, Value),
    Bind(Slot, &'static str),
    Delete(Slot, Value, Option<i64>),
}

impl Step {
    pub(crate) fn slot(&self) -> Option<Slot> {
        match self {
            Self::Create(slot, _)
            | Self::Get(slot)
            | Self::Json(slot, ..)
            | Self::Merge(slot, ..)
            | Self::Strategic(slot, ..)
            | Self::Update(slot, ..)
            | Self::Stale(slot, ..)
            | Self::Bind(slot, _)
            | Self::Delete(slot, ..) => Some(*slot),
            Self::List(..) => None,
        }
    }
}

/// What one server has shown in one sequence.
#[derive(Debug)]
pub(crate) struct Sight {
    /// The prefix of all names in this sequence.
    prefix: String,
    shown: HashMap<Slot, Vec<Value>>,
}

impl Sight {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            shown: HashMap::new(),
        }
    }

    /// Records an object as shown.
    pub(crate) fn note(&mut self, slot: Slot, object: &Value) {
        self.shown.entry(slot).or_default().push(object.clone());
    }

    pub(crate) fn key(&self, Slot(kind, number): Slot) -> Key {
        let name = format!("{}-{number}", self.prefix);
        match (kind.is_namespaced(), number) {
            (false, _) => Key::cluster(kind, &name),
            (true, 2) => Key::namespaced(kind, "kube-system", &name),
            (true, 3) => Key::namespaced(kind, "nowhere", &name),
            (true, _) => Key::namespaced(kind, "default", &name),
        }
    }

    /// The request for this server.
    pub(crate) fn request(&self, step: &Step) -> Request {
        match step {
            Step::Create(slot, object) => Request::Create {
                key: self.key(*slot),
                object: self.fill(*slot, object),
            },
            Step::Get(slot) => Request::Get {
                key: self.key(*slot),
            },
            Step::List(kind, namespace, labels, fields) => Request::List {
                kind: *kind,
                namespace: namespace.map(str::to_owned),
                selector: selector(labels, &fields.replace("<prefix>", &self.prefix)),
            },
            Step::Json(slot, part, patch) => {
                let patch = self.fill(*slot, patch);
                let patch = serde_json::from_value(patch).expect("a JSON patch");
                self.patch(*slot, *part, Patch::Json(patch))
            }
            Step::Merge(slot, part, patch) => {
                self.patch(*slot, *part, Patch::Merge(self.fill(*slot, patch)))
            }
            Step::Strategic(slot, part, patch) => {
                self.patch(*slot, *part, Patch::Strategic(self.fill(*slot, patch)))
            }
            Step::Update(slot, part, edit) => {
                let shown = self.shown.get(slot).and_then(|shown| shown.last());
                self.update(*slot, *part, shown, edit)
            }
            Step::Stale(slot, part, edit) => {
                let shown = self.shown.get(slot).and_then(|shown| shown.first());
                self.update(*slot, *part, shown, edit)
            }
            Step::Bind(slot, node) => Request::Bind {
                key: self.key(*slot),
                node: (*node).to_owned(),
            },
            Step::Delete(slot, preconditions, grace) => {
                let preconditions = self.fill(*slot, preconditions);
                let text = |name: &str| preconditions[name].as_str().map(str::to_owned);
                Request::Delete {
                    key: self.key(*slot),
                    preconditions: Preconditions {
                        uid: text("uid"),
                        resource_version: text("resourceVersion"),
                    },
                    grace: *grace,
                }
            }
        }
    }

    fn patch(&self, slot: Slot, part: Part, patch: Patch) -> Request {
        Request::Patch {
            key: self.key(slot),
            part,
            patch,
        }
    }

    fn update(&self, slot: Slot, part: Part, shown: Option<&Value>, edit: &Value) -> Request {
        let mut object = shown.cloned().unwrap_or_else(|| json!({}));
        // Older managed fields would be restored, which makes a revision even where nothing else changes.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        json_patch::merge(&mut object, &self.fill(slot, edit));
        Request::Update {
            key: self.key(slot),
            part,
            object,
        }
    }

    /// Replaces texts in angle brackets with what was shown.
    fn fill(&self, slot: Slot, template: &Value) -> Value {
        let shown = self.shown.get(&slot).map_or(&[][..], Vec::as_slice);
        let of = |object: Option<&Value>, pointer: &str| {
            let found = object.and_then(|object| object.pointer(pointer));
            found.cloned().unwrap_or(Value::Null)
        };
        let metadata = |object: Option<&Value>, field: &str| {
            let found = of(object, &format!("/metadata/{field}"));
            if found.is_null() { json!("1") } else { found }
        };
        match template {
            Value::String(text) => match text.as_str() {
                "<uid>" => metadata(shown.last(), "uid"),
                "<first uid>" => metadata(shown.first(), "uid"),
                "<version>" => metadata(shown.last(), "resourceVersion"),
                "<first version>" => metadata(shown.first(), "resourceVersion"),
                "<taints>" => of(shown.last(), "/spec/taints"),
                "<finalizers>" => of(shown.last(), "/metadata/finalizers"),
                "<annotations>" => of(shown.last(), "/metadata/annotations"),
                _ => template.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.fill(slot, item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.fill(slot, value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            _ => template.clone(),
        }
    }
}

pub(crate) fn selector(labels: &str, fields: &str) -> Selector {
    Selector::default()
        .labels(labels)
        .and_then(|selector| selector.fields(fields))
        .expect("a selector that can be read")
}
