//! `birth`: the admission policies by which the API server closes nodes as it creates them.
//!
//! One policy has all rules as its parameters (`config/birth`). The API server's own files take no parameters (KEP-5793): for them
//! there is the same policy once for each rule, with the rule as a variable instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::page::{Page, Render};
use super::printable::{printable, printable_lines};
use crate::api::{NodeReadinessRuleSpec, TaintPolicy};
use crate::cli::snapshot::Inventory;
use crate::engine::says_all_suspended;
use crate::object::RuleObject;
use crate::rule::{Rule, RuleSet};

/// The policy with its binding.
const POLICY: &str = include_str!("../../config/birth/policy.yaml");
/// The end of the names that the API server takes from files, and only from there.
const SUFFIX: &str = ".static.k8s.io";
/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// What the policy's expressions read of a rule's spec.
const FIELDS: [&str; 4] = ["enforcementMode", "nodeSelector", "regateOn", "taint"];

const HEAD: &str = "\
# Closes nodes as the API server creates them, from its own files: a policy and its binding for each rule in force.
#
# This file belongs into the folder that the API server's admission configuration names as staticManifestsDir of
# MutatingAdmissionPolicy, on each machine with an API server.
#
# It does not follow the rules. Write it anew whenever a rule is created, accepted or edited. Take a rule out before you suspend
# or delete it, and all of them before you suspend all rules: else new nodes are closed, and nobody opens them.
";

/// The file of no rules. The API server does not start with a file that has comments only.
const NONE: &str = "\
apiVersion: v1
kind: List
items: []
";

/// Policies, each followed by its binding; as JSON and YAML a list of them.
#[derive(Debug, Serialize)]
pub(super) struct Policies {
    #[serde(rename = "items")]
    objects: Vec<Value>,
    /// The names of rules without a policy, and why; `None` if the policy has parameters.
    #[serde(skip)]
    left_out: Option<Vec<(String, String)>>,
}

impl Policies {
    /// The policy that has all rules as its parameters.
    pub(super) fn with_parameters() -> Self {
        Self {
            objects: objects().into(),
            left_out: None,
        }
    }

    /// A policy for each rule in force, without parameters.
    pub(super) fn without_parameters(inventory: &Inventory) -> Self {
        let (mut objects, mut left_out) = (Vec::new(), Vec::new());
        let written = inventory.rules.iter();
        let written: BTreeMap<&str, &RuleObject> = written
            .filter_map(|rule| Some((rule.metadata.name.as_deref()?, rule)))
            .collect();
        let compiled = written.values().map(|rule| {
            let spec = rule.spec.clone();
            Arc::new(Rule::compile(&rule.metadata, spec, &inventory.classes))
        });
        for rule in RuleSet::new(compiled, Vec::new()).rules() {
            match in_force(rule, written[&*rule.name]) {
                Ok(spec) => objects.extend(of_rule(rule, spec)),
                Err(why) => left_out.push((rule.name.to_string(), why)),
            }
        }
        Self {
            objects,
            left_out: Some(left_out),
        }
    }
}

/// The spec of a rule that closes nodes at birth, or why it does not: what `matchConditions` ask of a parameter.
fn in_force<'a>(rule: &Rule, written: &'a RuleObject) -> Result<&'a NodeReadinessRuleSpec, String> {
    let compiled = rule.spec.as_ref().map_err(ToString::to_string)?;
    let spec = written.spec.as_ref().map_err(Clone::clone)?;
    let mut conditions = written.status.conditions.iter();
    let refused = conditions.find(|it| it.type_ == "Accepted" && it.status == "False");
    let why = match refused {
        Some(condition) => condition.message.as_str(),
        _ if rule.deleting => "it is being deleted",
        _ if compiled.dry_run => "it is a dry run",
        _ if compiled.taint_policy == TaintPolicy::RemoveOnly => "it only removes its taint",
        _ if rule.suspended => "it is suspended",
        _ if says_all_suspended(&written.status) => "all rules are suspended",
        _ if !rule.finalizer => "the controller has not accepted it yet",
        _ => return Ok(spec),
    };
    Err(why.to_owned())
}

/// The policy and its binding, as they are installed.
fn objects() -> [Value; 2] {
    let (policy, binding) = POLICY
        .split_once("\n---\n")
        .expect("the file has two documents");
    [policy, binding].map(|text| serde_saphyr::from_str(text).expect("the file is YAML"))
}

/// The same for one rule, without parameters.
///
/// Whether the rule selects the node stays a part of the mutation. As a match condition it would not be asked again after another
/// policy has added a label.
fn of_rule(rule: &Rule, spec: &NodeReadinessRuleSpec) -> [Value; 2] {
    let [mut policy, mut binding] = objects();
    let name = name(
        rule,
        policy["metadata"]["name"].as_str().unwrap_or_default(),
    );
    policy["metadata"]["name"] = json!(name);
    binding["metadata"]["name"] = json!(name);
    binding["spec"] = json!({ "policyName": name });
    let body = &mut policy["spec"];
    if let Some(body) = body.as_object_mut() {
        body.remove("paramKind");
        body.remove("matchConditions");
    }
    for variable in elements(&mut body["variables"]) {
        without_params(&mut variable["expression"]);
    }
    for mutation in elements(&mut body["mutations"]) {
        without_params(&mut mutation["jsonPatch"]["expression"]);
    }
    if let Some(variables) = body["variables"].as_array_mut() {
        let expression = format!("dyn({})", cel(&known(rule, spec)));
        variables.insert(0, json!({ "name": "rule", "expression": expression }));
    }
    [policy, binding]
}

fn elements(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}

fn without_params(expression: &mut Value) {
    if let Value::String(text) = expression {
        *text = text.replace("params.", "variables.rule.");
    }
}

/// The name of a rule's policy: by the rule's UID if its name is too long.
fn name(rule: &Rule, policy: &str) -> String {
    let by = |id: &str| format!("{policy}.{id}{SUFFIX}");
    let name = by(&rule.name);
    if name.len() > LONGEST_NAME {
        by(&rule.uid)
    } else {
        name
    }
}

/// What the policy's expressions read of a rule.
fn known(rule: &Rule, spec: &NodeReadinessRuleSpec) -> Value {
    let mut spec = serde_json::to_value(spec).unwrap_or_default();
    let fields: Map<String, Value> = FIELDS
        .iter()
        .map(|field| ((*field).to_owned(), spec[*field].take()))
        .collect();
    json!({ "metadata": { "name": &*rule.name, "uid": &*rule.uid }, "spec": fields })
}

/// A value as a CEL expression. The values of a map have one type in CEL, so each is `dyn`. What is `null` is left out.
fn cel(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields: Vec<String> = fields
                .map(|(name, value)| format!("{}: dyn({})", json!(name), cel(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(cel).collect();
            format!("[{}]", elements.join(", "))
        }
        // A string in JSON is the same one in CEL.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

impl Render for Policies {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "List";

    fn text(&self, _: &Page) -> String {
        let Some(left_out) = &self.left_out else {
            return POLICY.to_owned();
        };
        let mut out = HEAD.to_owned();
        for (name, why) in left_out {
            let line = printable(format!("rule/{name} is left out: {why}"));
            let _ = writeln!(out, "# {line}");
        }
        let documents = self.objects.iter();
        let documents: Vec<String> = documents
            .map(|object| serde_saphyr::to_string(object).unwrap_or_default())
            .map(|document| document.trim_end().to_owned() + "\n")
            .collect();
        if documents.is_empty() {
            out.push_str(NONE);
        }
        out + &printable_lines(&documents.join("---\n"))
    }

    fn names(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = |object: &Value| {
            let kind = text(&object["kind"]).to_lowercase();
            format!("{kind}/{}", text(&object["metadata"]["name"]))
        };
        self.objects.iter().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, RuleBuilder, at, rule};

    fn gate(name: &str) -> RuleBuilder {
        rule(name).waits_for("Net")
    }

    fn policies(rules: Vec<RuleObject>) -> Policies {
        Policies::without_parameters(&Inventory {
            rules,
            ..Inventory::default()
        })
    }

    /// A rule whose status has this condition.
    fn saying(kind: &str, status: &str, reason: &str) -> RuleObject {
        let mut object = gate("r").object();
        let condition = json!({ "type": kind, "status": status, "reason": reason, "message": "because",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        object.status.conditions = vec![serde_json::from_value(condition).unwrap()];
        object
    }

    #[test]
    fn a_rule_has_a_policy_while_the_parameterized_one_would_close_nodes_for_it() {
        for (name, rule, why) in [
            ("in force", gate("r").object(), None),
            ("accepted", saying("Accepted", "True", "Valid"), None),
            (
                "deleted",
                gate("r").deleting().object(),
                Some("it is being deleted"),
            ),
            (
                "new",
                gate("r").without_finalizer().object(),
                Some("the controller has not accepted it yet"),
            ),
            (
                "dry run",
                gate("r").dry_run().object(),
                Some("it is a dry run"),
            ),
            (
                "suspended",
                gate("r").suspended().object(),
                Some("it is suspended"),
            ),
            (
                "all suspended",
                saying("Suspended", "True", "AllRulesSuspended"),
                Some("all rules are suspended"),
            ),
            (
                "suspended before",
                saying("Suspended", "True", "Suspended"),
                None,
            ),
            (
                "remove-only",
                gate("r").remove_only().object(),
                Some("it only removes its taint"),
            ),
            (
                "not accepted",
                saying("Accepted", "False", "Circle"),
                Some("because"),
            ),
        ] {
            let policies = policies(vec![rule]);
            let left_out = policies.left_out.unwrap();
            let left_out = left_out.first().map(|(_, why)| why.as_str());
            assert_eq!(left_out, why, "{name}");
            let expected = if why.is_none() { 2 } else { 0 };
            assert_eq!(policies.objects.len(), expected, "{name}");
        }
        let circle = [("a", "b"), ("b", "a")].map(|(name, other)| {
            let rule = gate(name).spec(&format!("after: [{other}]"));
            rule.object()
        });
        assert_eq!(policies(circle.into()).objects, Vec::<Value>::new());
    }

    #[test]
    fn nothing_of_a_policy_refers_to_parameters_and_all_that_it_reads_of_the_rule_is_there() {
        let rule = gate("r").bootstrap_only().spec("regateOn: [Reboot]");
        let Policies { objects, .. } = policies(vec![rule.object()]);
        let [policy, binding] = objects.try_into().unwrap();
        assert_eq!(
            policy["metadata"]["name"],
            "nrr-gate-at-birth.r.static.k8s.io"
        );
        assert_eq!(
            binding["spec"],
            json!({ "policyName": policy["metadata"]["name"] })
        );
        let text = policy.to_string();
        assert!(!text.contains("param"), "{text}");
        let rule = rule.build(&[]);
        let known = known(&rule, gate("r").object().spec.as_ref().unwrap());
        let mut reads = 0;
        for read in text.split("variables.rule.").skip(1) {
            let is_of_a_path = |it: &char| it.is_ascii_alphanumeric() || ".?".contains(*it);
            let path: String = read.chars().take_while(is_of_a_path).collect();
            let mut path = path.split('.').map(|it| it.trim_start_matches('?'));
            let (part, field) = (path.next().unwrap(), path.next().unwrap());
            assert!(known[part].get(field).is_some(), "{part}.{field}");
            reads += 1;
        }
        assert!(reads > 10, "{reads}");
    }

    #[test]
    fn a_value_is_written_in_cel() {
        for (value, expected) in [
            (json!({}), "{}"),
            (
                json!({ "a": 1, "b": null, "c": [true] }),
                r#"{"a": dyn(1), "c": dyn([true])}"#,
            ),
            (
                json!([{ "key": "it's \"a\"\n\\", "values": [] }]),
                r#"[{"key": dyn("it's \"a\"\n\\"), "values": dyn([])}]"#,
            ),
        ] {
            assert_eq!(cel(&value), expected);
        }
    }

    #[test]
    fn a_policy_with_too_long_a_name_is_named_by_uid() {
        let longest = LONGEST_NAME - "nrr-gate-at-birth.".len() - SUFFIX.len();
        for (length, is_by_uid) in [(longest, false), (longest + 1, true)] {
            let rule = gate(&"r".repeat(length)).build(&[]);
            let name = name(&rule, "nrr-gate-at-birth");
            assert_eq!(name.ends_with("-uid.static.k8s.io"), is_by_uid, "{name}");
        }
    }

    #[test]
    fn what_is_written_has_no_document_of_comments_alone() {
        let rules = vec![
            gate("a").object(),
            gate("b").dry_run().object(),
            gate("c").object(),
        ];
        for (rules, count) in [(rules, 4), (vec![], 1)] {
            let text = policies(rules).text(&Page::plain(at(0)));
            let documents = text.split("---\n");
            let kinds: Vec<Value> = documents
                .map(|it| serde_saphyr::from_str::<Value>(it).unwrap()["kind"].clone())
                .collect();
            assert_eq!(kinds.len(), count, "{text}");
            assert!(kinds.iter().all(Value::is_string), "{kinds:?}");
        }
    }
}
