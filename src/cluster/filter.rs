//! Which objects of a kind are listed: the same question for the API server and for objects in memory.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::selector::Selector;

/// Selects objects of a kind that match all of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub namespace: Option<String>,
    pub labels: Option<Selector>,
    /// Paths of fields, whether they must have the value, and the value. A field that an object lacks is empty.
    fields: Vec<(&'static str, bool, String)>,
}

impl Filter {
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self::default().is("metadata.name", name)
    }

    /// One object by namespace and name.
    pub(crate) fn one(namespace: &str, name: &str) -> Self {
        Self::named(name).within(Some(namespace))
    }

    pub(crate) fn labelled(selector: Selector) -> Self {
        Self {
            labels: Some(selector),
            ..Self::default()
        }
    }

    /// The controller's own objects, by the label in the manifests.
    pub(crate) fn of_controllers(namespace: Option<&str>) -> Self {
        let selector = Selector::of_label("control-plane", "controller-manager");
        Self::labelled(selector).within(namespace)
    }

    /// Only in this namespace, if any.
    pub(crate) fn within(self, namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            ..self
        }
    }

    pub(crate) fn is(mut self, path: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((path, true, value.into()));
        self
    }

    pub(crate) fn excluding(mut self, path: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((path, false, value.into()));
        self
    }

    /// Only pods that are bound, to this node or to any.
    pub(crate) fn bound(self, node: Option<&str>) -> Self {
        match node {
            Some(node) => self.is("spec.nodeName", node),
            None => self.excluding("spec.nodeName", ""),
        }
    }

    /// Only pods that have not ended.
    pub(crate) fn alive(self) -> Self {
        let alive = self.excluding("status.phase", "Succeeded");
        alive.excluding("status.phase", "Failed")
    }

    /// Only warnings about the pod of this name, or about any.
    pub(crate) fn warnings(self, pod: Option<&str>) -> Self {
        let warnings = self.is("involvedObject.kind", "Pod").is("type", "Warning");
        match pod {
            Some(name) => warnings.is("involvedObject.name", name),
            None => warnings,
        }
    }

    /// The field selector for the API server.
    pub(crate) fn fields(&self) -> Option<String> {
        let fields = self.fields.iter().map(|(path, is, value)| {
            let operator = if *is { "=" } else { "!=" };
            format!("{path}{operator}{value}")
        });
        let fields: Vec<_> = fields.collect();
        (!fields.is_empty()).then(|| fields.join(","))
    }

    /// The label selector for the API server.
    pub(crate) fn labels(&self) -> Option<String> {
        self.labels.as_ref().map(ToString::to_string)
    }

    /// Whether an object in JSON passes, for sources without an API server.
    pub(crate) fn lets_through(&self, json: &str) -> bool {
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
        let mut fields = self.fields.iter();
        self.namespace
            .as_ref()
            .is_none_or(|wanted| wanted == text("metadata.namespace"))
            && self.labels.as_ref().is_none_or(labels)
            && fields.all(|(path, is, value)| (text(path) == value) == *is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_means_the_same_to_the_api_server_and_in_memory() {
        let bound = Filter::default().bound(None).alive();
        let selector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";
        assert_eq!(bound.fields().as_deref(), Some(selector));
        let of_node = Filter::default().bound(Some("n"));
        assert_eq!(of_node.fields().as_deref(), Some("spec.nodeName=n"));
        assert_eq!(Filter::default().fields(), None);
        for (node, phase, expected) in [
            ("n", "Running", true),
            ("", "Pending", false),
            ("n", "Failed", false),
        ] {
            let pod = serde_json::json!({
                "metadata": {"namespace": "ns", "name": "p"},
                "spec": {"nodeName": node},
                "status": {"phase": phase},
            });
            let passes = bound.lets_through(&pod.to_string());
            assert_eq!(passes, expected, "{node} {phase}");
        }
    }
}
