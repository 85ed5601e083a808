//! Objects with fields that no decision uses, which `check` and `suggest` need besides.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{self, Deployment};
use k8s_openapi::api::core::v1::{Container, Taint};
use k8s_openapi::api::storage::v1::CSIDriver;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use serde::de::DeserializeOwned;
use serde_json::Value;

use nodegate_cluster::ResourceKind;
use nodegate_core::object::{DaemonSet, Watched};

#[derive(Debug, Default)]
pub(crate) struct Manifests {
    pub(crate) daemon_sets: Vec<Agent>,
    pub(crate) node_pools: Vec<PoolManifest>,
    pub(crate) deployments: Vec<Deployment>,
    /// All CSI drivers, and whether the scheduler keeps pods with their volumes off a node without them (KEP-5030).
    pub(crate) csi_drivers: BTreeMap<String, bool>,
    /// Whether these are from files: other objects may exist elsewhere.
    pub(crate) are_files: bool,
    /// Objects that cannot be parsed: place and reason.
    pub(crate) unreadable: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub daemon_set: DaemonSet,
    pub labels: BTreeMap<String, String>,
    pub containers: Vec<Container>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PoolManifest {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub requirements: Vec<LabelSelectorRequirement>,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
}

impl PoolManifest {
    /// Parses a pool in JSON. What it lacks is empty.
    fn read(json: &str) -> Option<Self> {
        fn at<T: DeserializeOwned + Default>(object: &Value, path: &str) -> Option<T> {
            let value = object.pointer(path).filter(|value| !value.is_null());
            value.map_or_else(|| Some(T::default()), |it| T::deserialize(it).ok())
        }
        let object: Value = serde_json::from_str(json).ok()?;
        Some(Self {
            name: at(&object, "/metadata/name")?,
            labels: at(&object, "/spec/template/metadata/labels")?,
            requirements: at(&object, "/spec/template/spec/requirements")?,
            taints: at(&object, "/spec/template/spec/taints")?,
            startup_taints: at(&object, "/spec/template/spec/startupTaints")?,
        })
    }
}

impl Manifests {
    /// Adds an object in JSON. What cannot be parsed is left out: the engine's view tells of it.
    pub(crate) fn take(&mut self, kind: ResourceKind, json: &str) {
        match kind {
            ResourceKind::DaemonSets => self.daemon_sets.extend(Agent::read(json)),
            ResourceKind::NodePools => self.node_pools.extend(PoolManifest::read(json)),
            ResourceKind::Deployments => self.deployments.extend(serde_json::from_str(json).ok()),
            ResourceKind::CsiDrivers => {
                if let Ok(CSIDriver { metadata, spec }) = serde_json::from_str(json) {
                    let waits = spec.prevent_pod_scheduling_if_missing == Some(true);
                    self.csi_drivers.extend(metadata.name.map(|it| (it, waits)));
                }
            }
            _ => {}
        }
    }
}

impl Agent {
    fn read(json: &str) -> Option<Self> {
        let object: v1::DaemonSet = serde_json::from_str(json).ok()?;
        let pod = object.spec.and_then(|spec| spec.template.spec);
        Some(Self {
            daemon_set: Watched::of(json).read().ok()?,
            labels: object.metadata.labels.unwrap_or_default(),
            containers: pod.map(|pod| pod.containers).unwrap_or_default(),
        })
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = &str> {
        self.containers.iter().map(image)
    }

    /// Whether a container's arguments or environment have this name, as a value or a part of a path.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        let environment = self.containers.iter().flat_map(|it| &it.env).flatten();
        let values = environment.filter_map(|it| it.value.as_deref());
        let mut words = self.containers.iter().flat_map(arguments).chain(values);
        words.any(|word| word.split(['/', '=']).any(|part| part == name))
    }
}

pub(crate) fn image(container: &Container) -> &str {
    container.image.as_deref().unwrap_or_default()
}

pub(crate) fn arguments(container: &Container) -> impl Iterator<Item = &str> {
    let words = container.command.iter().chain(&container.args);
    words.flatten().map(String::as_str)
}
