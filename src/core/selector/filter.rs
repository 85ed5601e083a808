//! Which objects of a kind are listed or watched: the same question for the API server and for objects in memory.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Selector;

/// Selects objects of a kind that match all of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub namespace: Option<String>,
    pub labels: Option<Selector>,
    /// What fields must be, as a field selector: `path=value` or `path!=value`, by commas. One that an object lacks is empty.
    pub fields: Option<String>,
}

impl Filter {
    pub fn named(name: &str) -> Self {
        Self::default().is("metadata.name", name)
    }

    pub fn one(namespace: &str, name: &str) -> Self {
        Self::named(name).within(Some(namespace))
    }

    pub fn labelled(selector: Selector) -> Self {
        Self {
            labels: Some(selector),
            ..Self::default()
        }
    }

    /// The controller's own objects, by the label in the manifests.
    pub fn of_controllers(namespace: Option<&str>) -> Self {
        let selector = Selector::of_label("control-plane", "controller-manager");
        Self::labelled(selector).within(namespace)
    }

    pub fn within(mut self, namespace: Option<&str>) -> Self {
        self.namespace = namespace.map(str::to_owned);
        self
    }

    pub fn is(self, path: &str, value: &str) -> Self {
        self.with_field(&format!("{path}={value}"))
    }

    pub fn bound(self) -> Self {
        self.with_field("spec.nodeName!=")
    }

    pub fn unfinished(self) -> Self {
        self.with_field("status.phase!=Succeeded,status.phase!=Failed")
    }

    fn with_field(mut self, field: &str) -> Self {
        let earlier = self.fields.map_or_else(String::new, |it| it + ",");
        self.fields = Some(earlier + field);
        self
    }

    pub fn warnings(self, kind: &str) -> Self {
        self.is("involvedObject.kind", kind).is("type", "Warning")
    }

    /// Whether an object in JSON passes, for sources without an API server.
    pub fn lets_through(&self, json: &str) -> bool {
        if *self == Self::default() {
            return true;
        }
        let Ok(object) = serde_json::from_str::<Value>(json) else {
            return false;
        };
        let text = |path: &str| {
            let at = path.split('.').try_fold(&object, |it, name| it.get(name));
            at.and_then(Value::as_str).unwrap_or_default()
        };
        let labels = |selector: &Selector| {
            let labels = object["metadata"]["labels"].as_object();
            let labels = labels.into_iter().flatten();
            let labels: BTreeMap<String, String> = labels
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect();
            selector.matches(&labels)
        };
        let mut fields = self.fields.iter().flat_map(|it| it.split(','));
        self.namespace
            .as_ref()
            .is_none_or(|wanted| wanted == text("metadata.namespace"))
            && self.labels.as_ref().is_none_or(labels)
            && fields.all(|field| match field.split_once("!=") {
                Some((path, value)) => text(path) != value,
                None => (field.split_once('=')).is_none_or(|(path, value)| text(path) == value),
            })
    }
}
