//! One request in a form common to both servers: placeholders for UIDs and revisions take the values that each server has
//! shown.

use std::collections::HashMap;

use nodegate_simulation::{Key, Kind, Part, Patch, Preconditions, Request};
use serde_json::{Value, json};

/// An object, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub Kind, pub u8);

/// One request. Texts in angle brackets stand for values of the object as last (or first) shown.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(Slot, Value),
    Json(Slot, Part, Value),
    Merge(Slot, Part, Value),
    Strategic(Slot, Part, Value),
    Bind(Slot, &'static str),
    Delete(Slot, Value, Option<i64>),
    /// The objects of a kind, with namespace, labels and fields.
    List(Kind, Option<&'static str>, &'static str, &'static str),
}

/// What one server has shown in one sequence.
#[derive(Debug)]
pub(crate) struct Sight {
    /// The prefix of all names in this sequence.
    prefix: String,
    shown: HashMap<Key, Vec<Value>>,
}

impl Sight {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            shown: HashMap::new(),
        }
    }

    /// Records an object as shown.
    pub(crate) fn note(&mut self, key: Key, object: &Value) {
        self.shown.entry(key).or_default().push(object.clone());
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

    /// The request for this server; `None` for a list, which is no request of the model.
    pub(crate) fn request(&self, step: &Step) -> Option<Request> {
        Some(match step {
            Step::Create(slot, object) => Request::Create {
                key: self.key(*slot),
                object: self.fill(*slot, object),
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
            Step::List(..) => return None,
        })
    }

    fn patch(&self, slot: Slot, part: Part, patch: Patch) -> Request {
        Request::Patch {
            key: self.key(slot),
            part,
            patch,
        }
    }

    /// Replaces texts in angle brackets with what was shown.
    fn fill(&self, slot: Slot, template: &Value) -> Value {
        let shown = self
            .shown
            .get(&self.key(slot))
            .map_or(&[][..], Vec::as_slice);
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
