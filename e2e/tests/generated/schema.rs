//! Rules from the CRD's own schema, read when the test runs, so that a new field is tried without a word about it here. What
//! the schema's expressions ask is unknown here: the API server refuses what breaks them, and names the field.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use testkit::nodegate::install::manifests;

use crate::chance::Chance;
use crate::words::words;

const FILE: &str = "readiness.node.x-k8s.io_nodereadinessrules.yaml";
const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

/// How often an optional field is there, in percent.
const OPTIONAL: usize = 25;
/// How often a field has one of its [`words`], where it has any.
const WORDED: usize = 97;

/// The schema of a rule's spec.
#[derive(Debug)]
pub(crate) struct Schema(Value);

/// A change of one field of a spec.
#[derive(Debug)]
pub(crate) struct Edit {
    pub field: String,
    /// Whether the spec lacked the field.
    pub adds: bool,
    /// The whole spec with the change.
    pub spec: Value,
}

impl Schema {
    pub(crate) fn read() -> Result<Self> {
        let file = manifests("crd").join(FILE);
        let text =
            fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let crd: Value = serde_saphyr::from_str(&text).context("the CRD is not YAML")?;
        let spec = crd
            .pointer(SPEC)
            .context("the CRD has no schema of a spec")?;
        Ok(Self(spec.clone()))
    }

    /// The names of the spec's fields.
    fn fields(&self) -> Vec<&str> {
        let fields = self.0["properties"].as_object();
        fields
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect()
    }

    /// A spec that is valid as far as the schema says, except by its words. Every other one has few optional fields, which
    /// seldom contradict each other.
    pub(crate) fn spec(&self, chance: &mut Chance) -> Value {
        let mut spec = make(&self.0, "", "spec", chance);
        if chance.is(50) {
            thin_out(&self.0, &mut spec, chance);
        }
        spec
    }

    /// Changes a spec where the API server complains about it: at the path of a field, such as `spec.conditions[1].minimum`.
    pub(crate) fn mend(&self, spec: &mut Value, path: &str, chance: &mut Chance) {
        if let Some(path) = path.strip_prefix("spec") {
            let parts = path.split(['.', '[', ']']).filter(|part| !part.is_empty());
            let parts: Vec<&str> = parts.collect();
            mend(&self.0, spec, ("", "spec"), &parts, chance);
        }
    }

    /// Adds, changes or removes one field of a spec, mostly an optional one: most of the others are immutable.
    pub(crate) fn edit(&self, spec: &Value, chance: &mut Chance) -> Edit {
        let mut fields = self.fields();
        if !chance.is(15) {
            fields.retain(|field| !is_required(&self.0, field));
        }
        let field = chance.pick(&fields);
        let adds = spec.get(field).is_none();
        let mut changed = spec.clone();
        if let Some(spec) = changed.as_object_mut() {
            if !adds && chance.is(40) {
                spec.remove(field);
            } else {
                let made = make(&self.0["properties"][field], "spec", field, chance);
                spec.insert(field.to_owned(), made);
            }
        }
        Edit {
            field: field.to_owned(),
            adds,
            spec: changed,
        }
    }
}

/// A value for a field of an object.
fn make(schema: &Value, object: &str, field: &str, chance: &mut Chance) -> Value {
    let words = words(object, field);
    if !words.is_empty() && chance.is(WORDED) {
        return chance.pick(&words);
    }
    if let Some(values) = schema["enum"]
        .as_array()
        .filter(|values| !values.is_empty())
    {
        return chance.pick(values);
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return chance.pick(&[json!(0), json!(7), json!("7%"), json!("seven")]);
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(chance.is(50)),
        Some("integer") => integer(schema, chance),
        Some("number") => chance.pick(&[json!(0), json!(0.5), json!(1), json!(20)]),
        Some("string") => json!(text(schema, chance)),
        Some("array") => list(schema, field, chance),
        Some("object") => map(schema, field, chance),
        _ => Value::Null,
    }
}

fn integer(schema: &Value, chance: &mut Chance) -> Value {
    let bound =
        |name: &str| -> Option<i64> { format!("{:.0}", schema[name].as_f64()?).parse().ok() };
    let least = bound("minimum").unwrap_or_default();
    let most = bound("maximum").unwrap_or(least + 100);
    json!(chance.pick(&[least, least + 1, least.midpoint(most), most]))
}

fn text(schema: &Value, chance: &mut Chance) -> String {
    if schema["format"] == "date-time" {
        return "2026-01-02T03:04:05Z".to_owned();
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    if pattern.contains("|ms|s|m|h)") {
        return chance.pick(&["1s", "10m", "2h"]).to_owned();
    }
    let length = |bound: &str| {
        schema[bound]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok())
    };
    let least = length("minLength").unwrap_or_default();
    let most = length("maxLength").unwrap_or(300);
    let letters = chance.pick(&[least, least.max(1), 8.clamp(least, most.max(least)), most]);
    "x".repeat(letters)
}

fn list(schema: &Value, field: &str, chance: &mut Chance) -> Value {
    let bound = |bound: &str| {
        schema[bound]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok())
    };
    let most = bound("maxItems").unwrap_or(usize::MAX);
    let count = bound("minItems").unwrap_or_default().max(1) + chance.below(3);
    let item = format!("{field}[]");
    let mut items: Vec<Value> = Vec::new();
    for _ in 0..count.min(most) {
        let made = make(&schema["items"], field, &item, chance);
        if !items.iter().any(|other| is_same(schema, other, &made)) {
            items.push(made);
        }
    }
    json!(items)
}

/// Whether a list cannot have both items.
fn is_same(schema: &Value, one: &Value, other: &Value) -> bool {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => one == other,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            let mut keys = keys.into_iter().flatten().filter_map(Value::as_str);
            keys.all(|key| one[key] == other[key])
        }
        _ => false,
    }
}

fn map(schema: &Value, field: &str, chance: &mut Chance) -> Value {
    let mut made = Map::new();
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        if is_required(schema, name) || chance.is(OPTIONAL) {
            made.insert(name.clone(), make(of, field, name, chance));
        }
    }
    let fields = schema["properties"].as_object();
    let names: Vec<&String> = fields.into_iter().flat_map(Map::keys).collect();
    if made.is_empty() && !names.is_empty() && chance.is(90) {
        let name = chance.pick(&names);
        let of = &schema["properties"][name];
        made.insert(name.clone(), make(of, field, name, chance));
    }
    let others = &schema["additionalProperties"];
    if others.is_object() {
        made.insert("x".to_owned(), make(others, field, "x", chance));
    }
    Value::Object(made)
}

/// Removes most optional fields.
fn thin_out(schema: &Value, value: &mut Value, chance: &mut Chance) {
    let of = &schema["properties"];
    match value {
        Value::Object(fields) if of.is_object() => {
            if fields.len() > 1 {
                fields.retain(|field, _| is_required(schema, field) || chance.is(20));
            }
            for (field, value) in fields {
                thin_out(&of[field], value, chance);
            }
        }
        Value::Array(items) => {
            for item in items {
                thin_out(&schema["items"], item, chance);
            }
        }
        _ => {}
    }
}

fn is_required(schema: &Value, field: &str) -> bool {
    let required = schema["required"].as_array();
    required.into_iter().flatten().any(|it| it == field)
}

/// Puts something odd in a random place of a value.
pub(crate) fn spoil(value: &mut Value, chance: &mut Chance) {
    let goes_on = chance.is(70);
    match value {
        Value::Object(fields) if goes_on && !fields.is_empty() => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let name = chance.pick(&names);
            if let Some(field) = fields.get_mut(&name) {
                spoil(field, chance);
            }
        }
        Value::Array(items) if goes_on && !items.is_empty() => {
            let index = chance.below(items.len());
            spoil(&mut items[index], chance);
        }
        Value::Object(fields) if chance.is(30) => {
            fields.insert("unknown".to_owned(), json!({"field": 1}));
        }
        Value::Array(items) if chance.is(50) && !items.is_empty() => {
            let copy = items[0].clone();
            items.extend(vec![copy; 40]);
        }
        _ => {
            let odd = [
                Value::Null,
                json!(""),
                json!("ü\n\"}{"),
                json!("x".repeat(400)),
                json!(-1),
                json!(u64::MAX),
                json!(1e300),
                json!(true),
                json!([]),
                json!({}),
            ];
            *value = chance.pick(&odd);
        }
    }
}

/// Changes what the API server complains about, a field by its path such as `conditions[1].minimum`: leaves it out, or makes
/// it anew where it has to be there.
fn mend(
    schema: &Value,
    value: &mut Value,
    (object, field): (&str, &str),
    path: &[&str],
    chance: &mut Chance,
) {
    let (Some((first, rest)), Value::Object(_) | Value::Array(_)) = (path.split_first(), &*value)
    else {
        *value = make(schema, object, field, chance);
        return;
    };
    match value {
        Value::Object(fields) => {
            let of = &schema["properties"][first];
            match fields.get_mut(*first) {
                Some(_) if rest.is_empty() && !is_required(schema, first) => {
                    fields.remove(*first);
                }
                Some(inner) => mend(of, inner, (field, first), rest, chance),
                None => {
                    fields.insert((*first).to_owned(), make(of, field, first, chance));
                }
            }
        }
        Value::Array(items) => {
            let index = first.parse().ok().filter(|index| *index < items.len());
            match index {
                Some(index) if rest.is_empty() && items.len() > 1 => {
                    items.remove(index);
                }
                Some(index) => {
                    let item = format!("{field}[]");
                    mend(
                        &schema["items"],
                        &mut items[index],
                        (field, &item),
                        rest,
                        chance,
                    );
                }
                None => *value = make(schema, object, field, chance),
            }
        }
        _ => {}
    }
}
