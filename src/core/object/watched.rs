//! An object as the API server sends it: a malformed one affects neither the list that contains it nor its watch.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::Resource;
use kube::core::{DynamicResourceScope, ObjectMeta};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::budget::Spending;
use super::kind::ResourceKind;
use super::meta::{self, Version};
use super::rule::RuleObject;
use crate::text::quoted;

/// Why an object is unreadable: the field and its problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

impl Unreadable {
    pub fn new(why: impl Into<String>) -> Self {
        Self(quoted(why.into()))
    }
}

/// A kind of object in the API, and how it is read. Decoding skips every field that `Spec` and `Status` do not have.
pub trait Kind: Clone + Debug + 'static {
    const RESOURCE: ResourceKind;
    /// The most that is decoded of one, in bytes: see [`Spending`]. Some ten times what real ones have.
    const BUDGET: usize = 512 << 10;
    type Spec: DeserializeOwned;
    type Status: DeserializeOwned;

    /// The value, or what it cannot do without. It may take what it keeps out of the object; other metadata stays in [`Watched`].
    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable>;

    fn node_name(&self) -> Option<&str> {
        None
    }
}

/// An object of the API server. Decoding never fails, and reads no more than the budget of its kind.
#[derive(Debug, Clone)]
pub struct Watched<T> {
    /// What identifies the object, and what the value did not take. Empty if it is unreadable.
    metadata: ObjectMeta,
    /// The value, or why there is none and the node that the object names.
    value: Result<T, (Unreadable, String)>,
}

impl<T: Kind> Watched<T> {
    pub fn of(json: &str) -> Self {
        // Errors without the field's path cost less, and are rare.
        let decoder = &mut serde_json::Deserializer::from_str(json);
        let object = Lean::<T>::deserialize(Spending(decoder, &Cell::new(T::BUDGET)));
        let read = object.map_err(|_| misfit::<T>(json)).and_then(|mut it| {
            if it.name().is_empty() {
                return Err(Unreadable::new("metadata.name is missing"));
            }
            Ok((T::read(&mut it)?, it.metadata))
        });
        let (mut metadata, value) = match read {
            Ok((value, metadata)) => (metadata, Ok(value)),
            Err(why) => {
                let outline: Outline = serde_json::from_str(json).unwrap_or_default();
                let metadata = ObjectMeta {
                    // Whatever else it has may be what is too long.
                    labels: None,
                    finalizers: None,
                    owner_references: None,
                    ..outline.metadata
                };
                (metadata, Err((why, outline.spec.node_name)))
            }
        };
        // The longest by far. Nothing else reads them.
        metadata.annotations = None;
        Self { metadata, value }
    }

    pub fn read(self) -> Result<T, Unreadable> {
        self.value.map_err(|(why, _)| why)
    }

    pub fn value(&self) -> Option<&T> {
        self.value.as_ref().ok()
    }

    /// The node that the object is bound to, if that is readable.
    pub fn node_name(&self) -> Option<&str> {
        let name = match &self.value {
            Ok(value) => value.node_name(),
            Err((_, node)) => Some(node.as_str()),
        };
        name.filter(|name| !name.is_empty())
    }

    pub fn version(&self) -> Version {
        meta::resource_version(&self.metadata)
    }
}

impl From<RuleObject> for Watched<RuleObject> {
    fn from(rule: RuleObject) -> Self {
        Self {
            metadata: rule.metadata.clone(),
            value: Ok(rule),
        }
    }
}

/// An object without the fields that are not read.
#[derive(Debug, Deserialize)]
#[serde(bound = "", expecting = "an object")]
pub struct Lean<T: Kind> {
    #[serde(default, deserialize_with = "lean")]
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Option<T::Spec>,
    pub(super) status: Option<T::Status>,
}

impl<T: Kind> Lean<T> {
    pub(super) fn name(&self) -> Arc<str> {
        meta::name(&self.metadata)
    }

    /// Its UID, for a kind that nothing is done without it.
    pub(super) fn uid(&self) -> Result<Arc<str>, Unreadable> {
        match self.metadata.uid.as_deref() {
            None | Some("") => Err(Unreadable::new("metadata.uid is missing")),
            Some(uid) => Ok(uid.into()),
        }
    }

    pub(super) fn created(&self) -> Option<Timestamp> {
        self.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.metadata.annotations.as_ref()?;
        annotations.get(key).map(String::as_str)
    }

    /// The UID of the owner that this holds for, if there is one.
    pub(super) fn owner(&self, is_it: impl Fn(&OwnerReference) -> bool) -> Option<Arc<str>> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        owners.find(|it| is_it(it)).map(|it| it.uid.as_str().into())
    }
}

/// What is read of an object that is unreadable otherwise.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Outline {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(deserialize_with = "lenient")]
    spec: Binding,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Binding {
    node_name: String,
}

impl<'de, T: Kind> Deserialize<'de> for Watched<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(Box::<RawValue>::deserialize(deserializer)?.get()))
    }
}

/// The field that does not decode, and why. The place in the text would differ with each version of the object.
fn misfit<T: Kind>(json: &str) -> Unreadable {
    let decoder = &mut serde_json::Deserializer::from_str(json);
    let decoder = Spending(decoder, &Cell::new(T::BUDGET));
    let decoded = serde_path_to_error::deserialize::<_, Lean<T>>(decoder);
    let why = decoded.err().map(|it| it.to_string()).unwrap_or_default();
    Unreadable::new(why.split(" at line ").next().unwrap_or_default())
}

impl<T: Kind> Resource for Watched<T> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn group((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[0].into()
    }

    fn version((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[1].into()
    }

    fn kind((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[2].into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[3].into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    resource_version: Option<String>,
    generation: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    #[serde(default, deserialize_with = "lenient")]
    owner_references: Option<Vec<OwnerReference>>,
    #[serde(default)]
    managed_fields: Vec<Manager>,
}

/// What a manager of fields has set, as far as it is read.
#[derive(Deserialize)]
struct Manager {
    #[serde(rename = "fieldsV1", default)]
    fields: ManagedObject,
}

#[derive(Default, Deserialize)]
struct ManagedObject {
    #[serde(rename = "f:spec", default)]
    spec: ManagedSpec,
}

#[derive(Default, Deserialize)]
struct ManagedSpec {
    #[serde(rename = "f:nodegate")]
    nodegate: Option<IgnoredAny>,
    #[serde(rename = "f:conditions", default)]
    conditions: BTreeMap<String, ManagedCondition>,
}

#[derive(Deserialize)]
struct ManagedCondition {
    #[serde(rename = "f:nodegate")]
    nodegate: Option<IgnoredAny>,
}

impl Manager {
    fn names_nodegate(&self) -> bool {
        let mut conditions = self.fields.spec.conditions.values();
        self.fields.spec.nodegate.is_some() || conditions.any(|it| it.nodegate.is_some())
    }
}

/// Decodes the metadata that is used. Of the managed fields an empty list remains if a manager set ours in a rule's spec.
fn lean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = Metadata::deserialize(deserializer)?;
    // A time that cannot be represented still means that the object is being deleted.
    let deletion = |text: String| Time(text.parse().unwrap_or(Timestamp::MAX));
    let names_nodegate = meta.managed_fields.iter().any(Manager::names_nodegate);
    Ok(ObjectMeta {
        managed_fields: names_nodegate.then(Vec::new),
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        generation: meta.generation,
        creation_timestamp: meta.creation_timestamp.map(Time),
        deletion_timestamp: meta.deletion_timestamp.map(deletion),
        labels: meta.labels,
        annotations: meta.annotations,
        finalizers: meta.finalizers,
        owner_references: meta.owner_references,
        ..ObjectMeta::default()
    })
}

/// Decodes what can be done without: a malformed value counts as absent, such as a time that `jiff` cannot represent.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let json = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(json.get()).unwrap_or_default())
}
