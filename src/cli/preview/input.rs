//! Parses rules from files, and explains what is not a rule.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use nodegate_core::api::names::{FINALIZER, GROUP};
use nodegate_core::object::{ResourceKind, RuleObject, whole_second};

#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub name: String,
    pub object: Value,
    /// The rule of this name in the cluster, which it replaces.
    pub there: Option<RuleObject>,
}

/// The rules in these files, each with its name and text.
pub(crate) fn rules(files: &[(String, String)]) -> Result<Vec<Written>, String> {
    let mut all: Vec<Written> = Vec::new();
    for (file, text) in files {
        for rule in in_file(file, text)? {
            let name = &rule.name;
            if all.iter().any(|known| known.name == *name) {
                return Err(format!("{file}: rule {name} is there twice; remove one"));
            }
            all.push(rule);
        }
    }
    Ok(all)
}

fn in_file(name: &str, text: &str) -> Result<Vec<Written>, String> {
    let mut lines = text.lines().enumerate();
    if let Some((index, line)) = lines.find(|(_, line)| line.contains("{{")) {
        let (line, rest) = (index + 1, line.trim());
        return Err(format!(
            "{name} line {line}: a template is left in it: {rest} (render it first, for example with `helm template`)"
        ));
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let complaint = error.to_string();
        let first = complaint.lines().next().unwrap_or_default();
        format!("{name}: {}", first.trim_start_matches("error: "))
    })?;
    let mut rules = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let place = format!("{name} document {}", index + 1);
        let objects = match document.get("items") {
            Some(Value::Array(items)) if document["kind"] == "List" => items.clone(),
            _ if document.is_null() => continue,
            _ => vec![document],
        };
        for object in objects {
            rules.push(rule(object, &place)?);
        }
    }
    if rules.is_empty() {
        return Err(format!("{name}: it is empty"));
    }
    Ok(rules)
}

fn rule(object: Value, place: &str) -> Result<Written, String> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind != ResourceKind::Rules.kind() || !version.starts_with(&format!("{GROUP}/")) {
        let what = match kind {
            "" => "is no Kubernetes object".to_owned(),
            kind => format!("is a {kind} ({version})"),
        };
        return Err(format!(
            "{place} {what}: preview takes NodeReadinessRules ({GROUP}) only; remove the others"
        ));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match name.to_owned() {
        name if name.is_empty() => Err(format!("{place}: the rule has no metadata.name")),
        name => Ok(Written {
            name,
            object,
            there: None,
        }),
    }
}

impl Written {
    /// Whether a dry run is previewed as if in force; not if it makes a rule in force a dry run: nothing happens on any node.
    pub(crate) fn is_shown_in_force(&self) -> bool {
        let there = self.there.as_ref();
        let was_dry = there.is_none_or(|it| it.spec.as_ref().is_ok_and(|spec| spec.dry_run));
        was_dry && self.object["spec"]["dryRun"] == Value::Bool(true)
    }

    /// The rule as it would be in the cluster at this time. A dry run is shown as it would be in force.
    pub(crate) fn applied(&self, at: Timestamp) -> RuleObject {
        let there = self.there.as_ref();
        let known = there.map(|it| it.metadata.clone()).unwrap_or_default();
        let uid = || format!("preview-of-{}", self.name);
        let created = || Time(whole_second(at));
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            uid: Some(known.uid.unwrap_or_else(uid)),
            generation: Some(known.generation.unwrap_or_default() + 1),
            creation_timestamp: Some(known.creation_timestamp.unwrap_or_else(created)),
            // The controller adds the finalizer at once.
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        };
        let mut spec = self.object["spec"].clone();
        if self.is_shown_in_force() {
            spec["dryRun"] = json!(false);
        }
        RuleObject {
            status: there.map(|it| it.status.clone()).unwrap_or_default(),
            ..RuleObject::new(metadata, Some(spec), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let file = ("r.yaml".to_owned(), text.to_owned());
        Ok(rules(&[file])?.into_iter().map(|it| it.name).collect())
    }

    const RULE: &str = "{apiVersion: readiness.node.x-k8s.io/v1alpha1, kind: NodeReadinessRule, metadata: {name: a}}";

    #[test]
    fn a_document_that_is_no_rule_is_reported_with_its_place() {
        let two = format!("{RULE}\n---\n{}", RULE.replace("name: a", "name: b"));
        assert_eq!(read(&two).unwrap(), ["a", "b"]);
        #[rustfmt::skip]
        let cases = [
            (format!("{RULE}\n---\n{RULE}"), "rule a is there twice"),
            (format!("{RULE}\n---\n{{apiVersion: apps/v1, kind: Deployment}}"), "r.yaml document 2 is a Deployment (apps/v1)"),
            ("a: 1\nb: {{ .Values.b }}".into(), "r.yaml line 2: a template is left in it"),
            ("just text".into(), "document 1 is no Kubernetes object"),
            (String::new(), "r.yaml: it is empty"),
            (RULE.replace("name: a", ""), "has no metadata.name"),
            ("a: [".into(), "r.yaml: "),
        ];
        for (text, expected) in cases {
            let said = read(&text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
