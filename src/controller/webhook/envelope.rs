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

    #[test]
    fn an_unreadable_review_is_answered_with_the_reason() {
        let long = json!({"spec": {"text": "x".repeat(MAX_SPEC)}});
        let long = json!({"request": {"uid": "1", "operation": "CREATE", "object": long}});
        #[rustfmt::skip]
        let cases = [
            (b"[]".to_vec(), "invalid length 0"),
            (b"{".to_vec(), "EOF while parsing"),
            (br#"{"apiVersion": "a", "kind": "b"}"#.to_vec(), "missing field `request`"),
            (long.to_string().into_bytes(), "spec: has 262155 bytes; at most 262144 are reviewed"),
        ];
        for (body, words) in cases {
            let error = serde_json::from_slice::<Envelope>(&body).err().unwrap();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
