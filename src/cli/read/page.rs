//! A page of a list, as text that is not decoded yet, and why there is none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::failure::Failure;
use crate::cli::snapshot::{Facts, Kind};

/// The version of a list that has been read to its end, from which it can be watched on; `None` where it cannot.
pub type Version = Option<String>;

/// Why a list could not be had.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// The API server forbids it.
    Forbidden(String),
    /// There is no such resource.
    NotInstalled,
    /// Something else.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden(why) | Self::Failed(why) => f.write_str(why),
            Self::NotInstalled => f.write_str("the cluster has no such resource"),
        }
    }
}

impl Refusal {
    /// The failure of a question that needs this list.
    pub fn of(self, kind: Kind) -> Failure {
        let name = kind.name();
        match self {
            Self::Forbidden(why) => Failure::Forbidden { kind: name, why },
            refusal => Failure::List {
                kind: name,
                why: refusal.to_string(),
            },
        }
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub struct Page<'a> {
    /// Where the list goes on.
    #[serde(default)]
    pub metadata: PageMeta,
    /// The objects.
    #[serde(borrow)]
    pub items: Vec<&'a RawValue>,
}

/// What a list says beside its objects.
#[derive(Debug, Default, Deserialize)]
pub struct PageMeta {
    /// The token that the next page is asked for by.
    #[serde(rename = "continue")]
    pub token: Option<String>,
    /// The version of the list.
    #[serde(rename = "resourceVersion")]
    pub version: Option<String>,
}

/// Whether a pod may be one that is not Ready. Most are, and need not be looked at any closer.
pub fn may_be_unready(json: &str) -> bool {
    !json.contains(r#""type":"Ready","status":"True""#)
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outline<'a> {
    metadata: Meta,
    spec: Spec,
    status: Status,
    involved_object: Option<Involved>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Meta {
    namespace: String,
    name: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Involved {
    kind: String,
    name: String,
}

/// The name of an object.
pub fn name(json: &str) -> Option<String> {
    let outline: Outline = serde_json::from_str(json).ok()?;
    Some(outline.metadata.name).filter(|name| !name.is_empty())
}

/// Tells by what can be told of an object whether it is meant.
pub fn is_meant(json: &str, is_meant: impl FnOnce(&Facts<'_>) -> bool) -> bool {
    let Ok(outline) = serde_json::from_str::<Outline>(json) else {
        return false;
    };
    let about = outline.involved_object.as_ref();
    is_meant(&Facts {
        namespace: &outline.metadata.namespace,
        name: &outline.metadata.name,
        labels: &outline.metadata.labels.unwrap_or_default(),
        node: &outline.spec.node_name,
        phase: &outline.status.phase,
        about_pod: about.filter(|it| it.kind == "Pod").map(|it| &*it.name),
        about_a_node: about.is_some_and(|it| it.kind == "Node"),
        event_type: outline.kind.as_deref().unwrap_or_default(),
    })
}
