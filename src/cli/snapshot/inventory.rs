//! Objects as written, from a cluster, a dump or files: the input of `check` and `suggest`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use std::collections::{BTreeMap, BTreeSet};

use super::gap::{Gap, unread_lists};
use super::kind::ResourceKind;
use crate::api::misplaced;
use crate::condition::CriticalComponentClass;
use crate::object::{DaemonSet, Node, ObjectKey, RuleObject, Watched};
use crate::selector::RequirementObject;

/// Objects as written.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub rules: Vec<RuleObject>,
    pub daemon_sets: Vec<Agent>,
    pub nodes: Vec<Node>,
    /// The CSI drivers that are registered on any node; `None` if no rule names one, or if they were not read.
    pub csi_drivers: Option<BTreeSet<String>>,
    /// The CSI drivers without which the scheduler keeps pods with their volumes off a node (KEP-5030); none if no rule names a
    /// driver.
    pub scheduler_waits_for: BTreeSet<String>,
    /// Karpenter's `NodePool`s.
    pub node_pools: Vec<Pool>,
    pub deployments: Vec<Program>,
    pub classes: Vec<CriticalComponentClass>,
    /// Whether this is from files: other objects may exist elsewhere.
    pub is_of_files: bool,
    /// Unreadable objects: place and reason.
    pub unreadable: Vec<(String, String)>,
    /// The lists that could not be read, at all or to their end.
    pub gaps: Vec<Gap>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub daemon_set: DaemonSet,
    pub labels: BTreeMap<String, String>,
    pub containers: Vec<Program>,
}

/// A container, or a Deployment described by its first container.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    /// `namespace/name` of a Deployment, or the container's name.
    pub name: String,
    pub image: String,
    /// Command and arguments, if known.
    pub args: Vec<String>,
    /// The environment variables with literal values.
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Pool {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Further requirements on the labels of its nodes.
    pub requirements: Vec<RequirementObject>,
    /// Permanent taints, as key and effect.
    pub taints: Vec<(String, String)>,
    /// Startup taints, as key and effect.
    pub startup_taints: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ContainerObject {
    name: String,
    image: String,
    command: Option<Vec<String>>,
    args: Option<Vec<String>>,
    env: Option<Vec<EnvObject>>,
}

#[derive(Deserialize)]
struct EnvObject {
    name: String,
    #[serde(default)]
    value: Option<String>,
}

#[derive(Deserialize)]
struct PoolTaint {
    key: String,
    #[serde(default)]
    effect: String,
}

impl Inventory {
    /// Adds an object; `place` describes where it was found. Other kinds are ignored.
    pub(crate) fn take(&mut self, kind: &str, mut object: Value, place: &str) {
        let taken = match kind {
            "NodeReadinessRule" => {
                let misplaced = misplaced(&object["spec"]);
                let read = serde_json::from_value(object).map_err(|error| error.to_string());
                read.and_then(|rule| {
                    self.rules.push(rule);
                    if misplaced.is_empty() {
                        Ok(())
                    } else {
                        Err(misplaced.join("; "))
                    }
                })
            }
            "DaemonSet" => agent(&mut object).map(|agent| self.daemon_sets.push(agent)),
            "Node" => serde_json::from_value::<Watched<Node>>(object)
                .map_err(|error| error.to_string())
                .and_then(|node| node.read().map_err(|error| error.to_string()))
                .map(|node| self.nodes.push(node)),
            "CSIDriver" => {
                if part(&object, "/spec/preventPodSchedulingIfMissing") {
                    let name = part(&object, "/metadata/name");
                    self.scheduler_waits_for.insert(name);
                }
                Ok(())
            }
            "NodePool" => {
                self.node_pools.push(pool(&object));
                Ok(())
            }
            "Deployment" => {
                self.deployments.extend(deployment(&object));
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(why) = taken {
            self.unreadable.push((place.into(), why));
        }
    }

    /// Whether all objects of this kind were read: otherwise nothing may be said to be missing.
    pub(crate) fn has_read(&self, kind: ResourceKind) -> bool {
        self.gaps.iter().all(|gap| gap.kind != kind)
    }

    /// Which lists were refused, if any.
    pub(crate) fn unread(&self) -> Option<String> {
        unread_lists(&self.gaps)
    }

    pub(crate) fn daemon_set(&self, key: &ObjectKey) -> Option<&Agent> {
        let mut all = self.daemon_sets.iter();
        all.find(|agent| agent.daemon_set.key == *key)
    }
}

fn part<T: DeserializeOwned + Default>(object: &Value, path: &str) -> T {
    let part = object.pointer(path).cloned();
    part.and_then(|part| serde_json::from_value(part).ok())
        .unwrap_or_default()
}

fn agent(object: &mut Value) -> Result<Agent, String> {
    // Files lack both; the API server would set them.
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.entry("uid").or_insert_with(|| json!("none"));
        meta.entry("namespace").or_insert_with(|| json!("default"));
    }
    let labels = part(object, "/metadata/labels");
    let containers = containers(object);
    let read: Watched<DaemonSet> =
        serde_json::from_value(object.take()).map_err(|error| error.to_string())?;
    Ok(Agent {
        daemon_set: read.read().map_err(|error| error.to_string())?,
        labels,
        containers,
    })
}

fn containers(object: &Value) -> Vec<Program> {
    let containers: Vec<ContainerObject> = part(object, "/spec/template/spec/containers");
    let containers = containers.into_iter().map(|it| Program {
        name: it.name,
        image: it.image,
        args: it.command.into_iter().chain(it.args).flatten().collect(),
        env: (it.env.into_iter().flatten())
            .map(|env| (env.name, env.value.unwrap_or_default()))
            .collect(),
    });
    containers.collect()
}

fn deployment(object: &Value) -> Option<Program> {
    let namespace: String = part(object, "/metadata/namespace");
    let namespace = if namespace.is_empty() {
        "default"
    } else {
        &namespace
    };
    let name: String = part(object, "/metadata/name");
    let first = containers(object).into_iter().next()?;
    Some(Program {
        name: format!("{namespace}/{name}"),
        ..first
    })
}

fn pool(object: &Value) -> Pool {
    let taints = |path: &str| {
        let taints: Vec<PoolTaint> = part(object, path);
        let taints = taints.into_iter().map(|it| (it.key, it.effect));
        taints.collect()
    };
    Pool {
        name: part(object, "/metadata/name"),
        labels: part(object, "/spec/template/metadata/labels"),
        requirements: part(object, "/spec/template/spec/requirements"),
        taints: taints("/spec/template/spec/taints"),
        startup_taints: taints("/spec/template/spec/startupTaints"),
    }
}
