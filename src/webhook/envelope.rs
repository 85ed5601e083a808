//! A review request as received, perhaps from an untrusted sender. Only the fields that a review uses are decoded, and a spec
//! only up to the length that a rule needs: a few MiB of brackets would become hundreds of MiB of values.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The longest spec that is reviewed, in bytes; a selector that names 5,000 nodes fits.
const MAX_SPEC: usize = 256 << 10;

#[derive(Deserialize)]
pub(super) struct Envelope {
    pub(super) request: ReviewRequest,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewRequest {
    pub(super) uid: String,
    #[serde(default)]
    pub(super) sub_resource: Option<String>,
    /// `CREATE` or `UPDATE`, if it is to be reviewed.
    pub(super) operation: String,
    pub(super) object: Option<ReviewedObject>,
    pub(super) old_object: Option<ReviewedObject>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReviewedObject {
    #[serde(default, deserialize_with = "metadata")]
    pub(super) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "spec")]
    pub(super) spec: Option<Value>,
}

/// Metadata that identifies an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    uid: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
}

fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let metadata = Identity::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: metadata.name,
        uid: metadata.uid,
        generation: metadata.generation,
        creation_timestamp: metadata.creation_timestamp,
        deletion_timestamp: metadata.deletion_timestamp,
        ..ObjectMeta::default()
    })
}

fn spec<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let json = <&RawValue>::deserialize(deserializer)?.get();
    if json.len() > MAX_SPEC {
        let length = json.len();
        let problem = format!("spec: has {length} bytes; at most {MAX_SPEC} are reviewed");
        return Err(Error::custom(problem));
    }
    serde_json::from_str(json).map_err(Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
    fn only_the_fields_that_a_review_needs_are_decoded() {
        let spec = json!({"dryRun": true, "text": "quoted \" text"});
        let review = review(&rule(&spec));
        let Envelope { request } = serde_json::from_slice(&review).unwrap();
        assert_eq!((&*request.uid, &*request.operation), ("1", "CREATE"));
        let object = request.object.unwrap();
        assert_eq!(object.metadata.uid.as_deref(), Some("2"));
        assert_eq!(object.metadata.generation, Some(3));
        assert!(object.metadata.creation_timestamp.is_some());
        assert_eq!(object.metadata.managed_fields, None);
        assert_eq!(object.spec, Some(spec));
    }

    #[test]
    fn an_unreadable_review_is_answered_with_the_reason() {
        let long = json!({"text": "x".repeat(MAX_SPEC)});
        #[rustfmt::skip]
        let cases = [
            (b"[]".to_vec(), "invalid length 0"),
            (b"{".to_vec(), "EOF while parsing"),
            (br#"{"apiVersion": "a", "kind": "b"}"#.to_vec(), "missing field `request`"),
            (review(&rule(&long)), "spec: has 262155 bytes; at most 262144 are reviewed"),
        ];
        for (body, words) in cases {
            let error = serde_json::from_slice::<Envelope>(&body).err().unwrap();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
