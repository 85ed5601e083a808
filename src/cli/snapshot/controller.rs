//! The controller's instances, as their pods tell.

use serde::{Deserialize, Serialize};

/// The label that the manifests give to the controller's pods.
pub const LABEL: (&str, &str) = ("control-plane", "controller-manager");

/// An instance of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    /// Its pod's name.
    pub pod: String,
    /// Its image.
    pub image: String,
    /// Whether it is Ready.
    pub ready: bool,
}

#[derive(Deserialize)]
struct Object {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
struct Meta {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    image: String,
}

impl Controller {
    /// The instance whose pod is in this JSON, if it can be understood.
    #[must_use]
    pub fn read(json: &str, ready: bool) -> Option<Self> {
        let Object { metadata, spec } = serde_json::from_str(json).ok()?;
        Some(Self {
            pod: metadata.name,
            image: spec.containers.into_iter().next()?.image,
            ready,
        })
    }
}
