//! JSON patches, merge patches and strategic merge patches, as the API server applies them.

use json_patch::{Patch as JsonPatch, PatchOperation};
use serde_json::{Map, Value};

use crate::answer::Refusal;
use crate::kind::{Key, Kind};
use crate::request::Patch;

/// The directive of a strategic merge patch that removes an item from a list.
const DIRECTIVE: &str = "$patch";
const DELETE: &str = "delete";

/// Refuses a patch type that this kind does not accept.
pub(crate) fn check(key: &Key, patch: &Patch) -> Result<(), Refusal> {
    match patch {
        Patch::Strategic(_) if key.kind.is_custom() => Err(Refusal::unsupported_media_type(key)),
        _ => Ok(()),
    }
}

pub(crate) fn apply(kind: Kind, object: &Value, patch: &Patch) -> Result<Value, Refusal> {
    let mut patched = object.clone();
    match patch {
        Patch::Json(patch) => apply_json(&mut patched, patch)?,
        Patch::Merge(patch) => json_patch::merge(&mut patched, patch),
        Patch::Strategic(patch) => merge(kind, &mut Vec::new(), &mut patched, patch),
    }
    Ok(patched)
}

/// Follows RFC 6902, except that a `test` for `null` also passes for a missing field whose parent exists.
fn apply_json(object: &mut Value, patch: &JsonPatch) -> Result<(), Refusal> {
    for operation in &patch.0 {
        if is_test_for_absence(object, operation) {
            continue;
        }
        json_patch::patch(object, std::slice::from_ref(operation))
            .map_err(|error| Refusal::not_applicable(error.to_string()))?;
    }
    Ok(())
}

fn is_test_for_absence(object: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else {
        return false;
    };
    let Some((parent, last)) = test.path.split_back() else {
        return false;
    };
    let parent = object.pointer(parent.as_str()).and_then(Value::as_object);
    test.value.is_null()
        && parent.is_some_and(|parent| !parent.contains_key(last.decoded().as_ref()))
}

/// Applies a strategic merge patch to the value at this path.
fn merge<'a>(kind: Kind, path: &mut Vec<&'a str>, target: &mut Value, patch: &'a Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else {
        return;
    };
    for (name, value) in patch {
        path.push(name);
        match (value, merge_key(kind, path)) {
            (Value::Null, _) => {
                target.remove(name);
            }
            (Value::Array(items), Some(list)) => {
                let old = target.get(name).and_then(Value::as_array);
                let merged = merge_list(list, old.map_or(&[], Vec::as_slice), items);
                target.insert(name.clone(), Value::Array(merged));
            }
            _ => {
                let target = target.entry(name).or_insert(Value::Null);
                merge(kind, path, target, value);
            }
        }
        path.pop();
    }
}

/// What identifies the items of a list.
#[derive(Clone, Copy)]
enum ListKey {
    Field(&'static str),
    Item,
}

impl ListKey {
    fn of(self, item: &Value) -> &Value {
        match self {
            Self::Field(name) => &item[name],
            Self::Item => item,
        }
    }

    fn place(self, list: &[Value], item: &Value) -> Option<usize> {
        list.iter()
            .position(|other| self.of(other) == self.of(item))
    }
}

/// The lists that are merged (`patchStrategy` in the API's types); all others are replaced.
fn merge_key(kind: Kind, path: &[&str]) -> Option<ListKey> {
    match (kind, path) {
        (_, ["metadata", "finalizers"]) => Some(ListKey::Item),
        (_, ["metadata", "ownerReferences"]) => Some(ListKey::Field("uid")),
        (Kind::Node | Kind::Pod | Kind::DaemonSet, ["status", "conditions"])
        | (Kind::Node, ["status", "addresses"]) => Some(ListKey::Field("type")),
        (Kind::CsiNode, ["spec", "drivers"]) => Some(ListKey::Field("name")),
        _ => None,
    }
}

/// Each item of the patch merges with the old item of the same key, or is new. Items of the patch keep the patch's order, and
/// the other items theirs. The old list decides how the two are interleaved; a new item comes before items that are not in the
/// patch.
fn merge_list(key: ListKey, old: &[Value], patch: &[Value]) -> Vec<Value> {
    let is_deletion = |item: &Value| item.get(DIRECTIVE).is_some_and(|it| it == DELETE);
    let (deleted, patch): (Vec<&Value>, Vec<&Value>) =
        patch.iter().partition(|item| is_deletion(item));
    let is_deleted = |item: &Value| deleted.iter().any(|it| key.of(it) == key.of(item));
    let is_patched = |item: &Value| patch.iter().any(|it| key.of(it) == key.of(item));
    let mut others = old
        .iter()
        .filter(|item| !is_deleted(item) && !is_patched(item))
        .peekable();
    let mut merged = Vec::new();
    for item in &patch {
        let place = key.place(old, item);
        while let Some(other) = others.next_if(|other| key.place(old, other) < place) {
            merged.push(other.clone());
        }
        let mut whole = place.map_or(Value::Null, |place| old[place].clone());
        if whole.is_object() {
            json_patch::merge(&mut whole, item);
        } else {
            whole = (*item).clone();
        }
        merged.push(whole);
    }
    merged.extend(others.cloned());
    merged
}
