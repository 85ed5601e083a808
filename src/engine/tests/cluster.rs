//! A simulated API server: it holds every object's latest state, whether or not a watch has shown it, and answers requests.

use std::collections::BTreeMap;

use json_patch::PatchOperation;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::RequestError;
use crate::io::{Answer, Object, Request};
use nodegate_core::condition::Watch;
use nodegate_core::object::Version;

/// All objects, by watch and name.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    objects: BTreeMap<Watch, BTreeMap<String, Value>>,
    version: Version,
}

fn decode<T: DeserializeOwned>(json: &Value) -> T {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// Converts JSON to a watch object.
pub(super) fn object(watch: Watch, json: &Value) -> Object {
    Object::of(watch, &json.to_string())
}

/// Applies a strategic merge patch to conditions.
fn merge_conditions(conditions: &mut Vec<Value>, patch: &Value) {
    for condition in patch["status"]["conditions"].as_array().unwrap() {
        conditions.retain(|it| it["type"] != condition["type"]);
        if condition["$patch"] != "delete" {
            conditions.push(condition.clone());
        }
    }
}

/// Applies a patch without its tests.
fn carry_out(object: &mut Value, mut patch: json_patch::Patch) {
    patch
        .0
        .retain(|operation| !matches!(operation, PatchOperation::Test(_)));
    json_patch::patch(object, &patch).unwrap();
}

impl Cluster {
    pub(super) fn all(&self, watch: Watch) -> impl Iterator<Item = &Value> {
        self.objects
            .get(&watch)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    pub(super) fn get(&self, watch: Watch, name: &str) -> Option<&Value> {
        self.objects.get(&watch)?.get(name)
    }

    /// Stores an object with a new version.
    pub(super) fn put(&mut self, watch: Watch, mut object: Value) -> &Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let objects = self.objects.entry(watch).or_default();
        objects.insert(name.clone(), object);
        &objects[&name]
    }

    /// Deletes an object; returns its last state, with the version of its deletion.
    pub(super) fn remove(&mut self, watch: Watch, name: &str) -> Value {
        self.version += 1;
        let objects = self.objects.get_mut(&watch).unwrap();
        let mut object = objects.remove(name).unwrap();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Changes an object; returns its new state, or that it is gone.
    fn change(
        &mut self,
        watch: Watch,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<&Value, RequestError> {
        let mut object = self.get(watch, name).ok_or(RequestError::Gone)?.clone();
        change(&mut object);
        Ok(self.put(watch, object))
    }

    /// Executes a request; returns its description and the answer.
    pub(super) fn answer(&mut self, request: Request) -> (String, Result<Answer, RequestError>) {
        match request {
            Request::PatchNode(name, patch) => {
                let answer = self.change(Watch::Nodes, &name, |node| {
                    if node["spec"].is_null() {
                        node["spec"] = json!({});
                    }
                    carry_out(node, patch);
                });
                let answer = answer.map(|node| Answer::Node(decode(node)));
                (format!("node {name}"), answer)
            }
            Request::PatchNodeStatus(name, patch) => {
                let answer = self.change(Watch::Nodes, &name, |node| {
                    let conditions = &mut node["status"]["conditions"];
                    if conditions.is_null() {
                        *conditions = json!([]);
                    }
                    merge_conditions(conditions.as_array_mut().unwrap(), &patch);
                });
                let answer = answer.map(|node| Answer::Node(decode(node)));
                (format!("conditions of {name}"), answer)
            }
            Request::ReadNode(name) => {
                let node = self.get(Watch::Nodes, &name).ok_or(RequestError::Gone);
                let answer = node.map(|node| Answer::Node(decode(node)));
                (format!("read {name}"), answer)
            }
            Request::PatchRule(name, patch) => {
                let answer = self.change(Watch::Rules, &name, |rule| carry_out(rule, patch));
                let answer = answer.map(|rule| Answer::Rule(decode(rule)));
                (format!("rule {name}"), answer)
            }
            Request::PatchRuleStatus(name, patch) => {
                let answer = self.change(Watch::Rules, &name, |rule| carry_out(rule, patch));
                let answer = answer.map(drop).map(|()| Answer::Version(self.version));
                (format!("status of {name}"), answer)
            }
            Request::PatchNodeClaim(name, patch) => {
                let answer = self.change(Watch::NodeClaims, &name, |claim| {
                    assert_eq!(claim["metadata"]["uid"], patch["metadata"]["uid"]);
                    let annotations = &patch["metadata"]["annotations"];
                    claim["metadata"]["annotations"] = annotations.clone();
                });
                let answer = answer.map(|claim| Answer::NodeClaim(decode(claim)));
                (format!("hurry {name}"), answer)
            }
            Request::DeleteNodeClaim { name, uid, version } => {
                let (uid, version) = (json!(uid), json!(version.to_string()));
                let answer = self.is_as(Watch::NodeClaims, &name, &uid, &version);
                let delete = |claim: &mut Value| {
                    claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                };
                let answer = answer.and_then(|()| {
                    self.change(Watch::NodeClaims, &name, delete)
                        .map(|_| Answer::Done)
                });
                (format!("delete {name}"), answer)
            }
            Request::ReadVersion(..) => ("version".into(), Ok(Answer::Version(self.version))),
            Request::PostEvent { notice, .. } => {
                (format!("event {}", notice.topic.reason), Ok(Answer::Done))
            }
        }
    }

    /// Whether the object is in exactly this state.
    fn is_as(
        &self,
        watch: Watch,
        name: &str,
        uid: &Value,
        version: &Value,
    ) -> Result<(), RequestError> {
        let object = self.get(watch, name).ok_or(RequestError::Gone)?;
        let meta = &object["metadata"];
        if meta["uid"] == *uid && meta["resourceVersion"] == *version {
            Ok(())
        } else {
            Err(RequestError::Conflict)
        }
    }
}
