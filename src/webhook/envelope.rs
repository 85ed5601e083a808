//! A review request as received, perhaps from an untrusted sender. Only the fields that a review uses are decoded, and a spec
//! only up to the length that a rule needs: a few MiB of brackets would become hundreds of MiB of values.

use std::borrow::Cow;

use kube::core::admission::{AdmissionRequest, AdmissionReview, Operation};
use kube::core::{DynamicObject, GroupVersionKind, GroupVersionResource};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest spec that is reviewed, in bytes; a selector that names 5,000 nodes fits.
const MAX_SPEC: usize = 256 << 10;

#[derive(Debug, thiserror::Error)]
pub(super) enum EnvelopeError {
    #[error("not an AdmissionReview: {0}")]
    Form(#[from] serde_json::Error),
    #[error("the review has no request")]
    Empty,
    #[error("spec: has {0} bytes; at most {MAX_SPEC} are reviewed")]
    TooLong(usize),
}

pub(super) fn open(body: &[u8]) -> Result<AdmissionRequest<DynamicObject>, EnvelopeError> {
    let outline: ReviewOutline = serde_json::from_slice(body)?;
    let request = outline.request.as_ref().ok_or(EnvelopeError::Empty)?;
    let objects = request.object.iter().chain(&request.old_object);
    let longest = objects
        .filter_map(|object| object.spec)
        .map(|spec| spec.get().len())
        .max();
    if let Some(longest) = longest.filter(|length| *length > MAX_SPEC) {
        return Err(EnvelopeError::TooLong(longest));
    }
    let review: AdmissionReview<DynamicObject> =
        serde_json::from_slice(&serde_json::to_vec(&outline)?)?;
    review.try_into().map_err(|_| EnvelopeError::Empty)
}

/// The fields of a review that are read. Serialized again, they form a valid review.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewOutline<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    request: Option<RequestOutline<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestOutline<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    #[serde(borrow, default)]
    sub_resource: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    operation: Operation,
    #[serde(skip_deserializing)]
    user_info: AnyUser,
    #[serde(borrow)]
    object: Option<ObjectOutline<'a>>,
    #[serde(borrow)]
    old_object: Option<ObjectOutline<'a>>,
    #[serde(default)]
    dry_run: bool,
}

/// A review does not depend on the user.
#[derive(Serialize, Default)]
struct AnyUser {}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectOutline<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    metadata: MetadataOutline<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

/// Metadata that identifies an object.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct MetadataOutline<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    uid: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    creation_timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    deletion_timestamp: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn review(object: &Value) -> Vec<u8> {
        let kind = json!({"group": "g", "version": "v", "kind": "K"});
        let resource = json!({"group": "g", "version": "v", "resource": "ks"});
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "1",
                "kind": kind,
                "resource": resource,
                "name": "r",
                "operation": "CREATE",
                "userInfo": {"username": "somebody", "extra": {"a": ["b"]}},
                "object": object,
                "oldObject": null,
                "options": {"kind": "CreateOptions"},
            },
        });
        review.to_string().into_bytes()
    }

    fn rule(spec: &Value) -> Value {
        json!({
            "apiVersion": "g/v",
            "kind": "K",
            "metadata": {
                "name": "r",
                "uid": "2",
                "generation": 3,
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "managedFields": [{"manager": "m"}],
            },
            "spec": spec,
            "status": {"anything": [1, 2, 3]},
        })
    }

    #[test]
    fn what_a_review_looks_at_is_read_and_nothing_else() {
        let spec = json!({"dryRun": true, "text": "quoted \" text"});
        let request = open(&review(&rule(&spec))).unwrap();
        assert_eq!((&*request.uid, &*request.name), ("1", "r"));
        assert_eq!(request.operation, Operation::Create);
        let object = request.object.unwrap();
        assert_eq!(object.metadata.uid.as_deref(), Some("2"));
        assert_eq!(object.metadata.generation, Some(3));
        assert!(object.metadata.creation_timestamp.is_some());
        assert_eq!(object.metadata.managed_fields, None);
        assert_eq!(object.data, json!({"spec": spec}));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let long = json!({"text": "x".repeat(MAX_SPEC)});
        for (body, words) in [
            (b"[]".to_vec(), "not an AdmissionReview"),
            (b"{".to_vec(), "not an AdmissionReview"),
            (
                br#"{"apiVersion": "a", "kind": "b"}"#.to_vec(),
                "the review has no request",
            ),
            (
                review(&rule(&long)),
                "spec: has 262155 bytes; at most 262144 are reviewed",
            ),
        ] {
            let error = open(&body).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
