//! Object metadata without unused fields, object keys, and resource versions.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};

use super::field::{Field, Unreadable, items, objects};

/// Namespace and name of a namespaced object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The object's namespace.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key of this namespace and name.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an object without a namespace.
    pub(crate) fn unscoped(name: Arc<str>) -> Self {
        // Unlike other strings, this one is not allocated.
        let namespace = Arc::default();
        Self { namespace, name }
    }

    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        match &meta.namespace {
            Some(namespace) => Self::new(&**namespace, name(meta)),
            None => Self::unscoped(name(meta)),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A resource version, which tells which of two states of an object is newer.
///
/// The API server's versions are decimal numbers that grow with every write (KEP-5504). A version that is not a number is 0,
/// older than everything.
pub type Version = u64;

/// The object's name; empty if it has none, which the API server never sends.
pub(crate) fn name(meta: &ObjectMeta) -> Arc<str> {
    meta.name.as_deref().unwrap_or_default().into()
}

/// The object's resource version.
pub(crate) fn resource_version(meta: &ObjectMeta) -> Version {
    version(meta.resource_version.as_deref())
}

/// Parses a version.
pub(crate) fn version(text: Option<&str>) -> Version {
    text.and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

/// The response to a request for an object's metadata only.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct MetadataObject {
    pub(super) metadata: Metadata,
}

items!(MetadataObject);

impl MetadataObject {
    /// The object's resource version.
    pub fn version(&self) -> Version {
        resource_version(&self.metadata)
    }
}

/// The readable part of an object's metadata, without managed fields and other unused fields.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    readable: ObjectMeta,
    /// A malformed field that makes the object unreadable.
    odd: Option<&'static str>,
}

impl Metadata {
    /// The metadata, or an error if the name is missing or a required field is malformed.
    pub(super) fn read(self) -> Result<ObjectMeta, Unreadable> {
        match self.odd {
            Some(field) => Err(Unreadable::odd(field)),
            None if name(&self).is_empty() => Err(Unreadable::missing("metadata.name")),
            None => Ok(self.readable),
        }
    }

    /// The same, for an object that also needs a UID.
    pub(super) fn read_with_uid(self) -> Result<ObjectMeta, Unreadable> {
        let meta = self.read()?;
        match meta.uid.as_deref() {
            None | Some("") => Err(Unreadable::missing("metadata.uid")),
            Some(_) => Ok(meta),
        }
    }
}

impl Deref for Metadata {
    type Target = ObjectMeta;

    fn deref(&self) -> &ObjectMeta {
        &self.readable
    }
}

impl DerefMut for Metadata {
    fn deref_mut(&mut self) -> &mut ObjectMeta {
        &mut self.readable
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    name: Field<String>,
    namespace: Field<String>,
    uid: Field<String>,
    resource_version: Field<String>,
    generation: Field<i64>,
    creation_timestamp: Field<Timestamp>,
    deletion_timestamp: Field<Timestamp>,
    labels: Field<BTreeMap<String, String>>,
    annotations: Field<BTreeMap<String, String>>,
    finalizers: Field<Vec<Field<String>>>,
    owner_references: Field<Vec<Field<Owner>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    api_version: Field<String>,
    kind: Field<String>,
    name: Field<String>,
    uid: Field<String>,
    controller: Field<bool>,
}

objects!(Fields, Owner);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let metadata = Field::<Fields>::deserialize(deserializer)?;
        let is_odd = metadata.is_odd();
        let fields = metadata.if_readable().unwrap_or_default();
        let parts = [
            (is_odd, "metadata"),
            (fields.namespace.is_odd(), "metadata.namespace"),
            (fields.labels.is_odd(), "metadata.labels"),
            (fields.annotations.is_odd(), "metadata.annotations"),
            (fields.finalizers.is_odd(), "metadata.finalizers"),
        ];
        Ok(Self {
            odd: parts
                .iter()
                .find(|(is_odd, _)| *is_odd)
                .map(|(_, field)| *field),
            readable: fields.into(),
        })
    }
}

impl From<Fields> for ObjectMeta {
    fn from(fields: Fields) -> Self {
        // A malformed timestamp still means that the object is being deleted.
        let deletion = match fields.deletion_timestamp {
            Field::Odd => Some(Timestamp::MAX),
            time => time.if_readable(),
        };
        let owners = fields.owner_references;
        Self {
            name: fields.name.if_readable(),
            namespace: fields.namespace.if_readable(),
            uid: fields.uid.if_readable(),
            resource_version: fields.resource_version.if_readable(),
            generation: fields.generation.if_readable(),
            creation_timestamp: fields.creation_timestamp.if_readable().map(Time),
            deletion_timestamp: deletion.map(Time),
            labels: fields.labels.if_readable(),
            annotations: fields.annotations.if_readable(),
            finalizers: Some(fields.finalizers.readable_elements().collect()),
            owner_references: Some(
                owners
                    .readable_elements()
                    .map(OwnerReference::from)
                    .collect(),
            ),
            ..Self::default()
        }
    }
}

impl From<Owner> for OwnerReference {
    fn from(owner: Owner) -> Self {
        Self {
            api_version: owner.api_version.if_readable().unwrap_or_default(),
            kind: owner.kind.if_readable().unwrap_or_default(),
            name: owner.name.if_readable().unwrap_or_default(),
            uid: owner.uid.if_readable().unwrap_or_default(),
            controller: owner.controller.if_readable(),
            ..Self::default()
        }
    }
}
