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
    command: Vec<String>,
    args: Vec<String>,
}

/// A Deployment that may be the controller's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// Its name.
    pub name: String,
    /// The arguments of its controller.
    pub arguments: Vec<String>,
}

#[derive(Deserialize)]
struct DeploymentObject {
    metadata: Meta,
    spec: DeploymentSpec,
}

#[derive(Deserialize)]
struct DeploymentSpec {
    template: Template,
}

#[derive(Deserialize)]
struct Template {
    spec: Spec,
}

impl Deployed {
    /// The Deployment in this JSON, if it can be understood and has a container that is told to be a controller.
    #[must_use]
    pub fn read(json: &str) -> Option<Self> {
        let DeploymentObject { metadata, spec } = serde_json::from_str(json).ok()?;
        let mut arguments = spec.template.spec.containers.into_iter().map(|it| {
            let mut arguments = it.command;
            arguments.extend(it.args);
            arguments
        });
        let is_told = |arguments: &Vec<String>| arguments.iter().any(|it| it == "controller");
        Some(Self {
            name: metadata.name,
            arguments: arguments.find(is_told)?,
        })
    }

    /// Whether a pod of this name is one of its own.
    #[must_use]
    pub fn has(&self, pod: &str) -> bool {
        let rest = pod.strip_prefix(&self.name);
        rest.is_some_and(|rest| rest.starts_with('-'))
    }
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
