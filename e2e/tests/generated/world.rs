//! The nodes beside the rules, with what rules wait for, and what happens to them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceSlice;
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use testkit::nodegate::changes::{
    delete_node, delete_pod, patch_node_status, remove_node_condition, set_node_condition,
    set_pod_ready, set_pod_succeeded,
};
use testkit::nodegate::fixtures::{CRITICAL, daemon_set, node, pod, set_csi_drivers};
use testkit::nodegate::state;

use crate::chance::Chance;
use crate::words::{
    CHECK, COUNT, CSI_DRIVER, DAEMON_SET, DRA_DRIVER, EFFECTS, POOL, REPORTED, RESOURCE, TAINTS,
    ZONE,
};

/// The names of the nodes.
const NODES: &[&str] = &["n0", "n1", "n2", "n3", "n4"];
const STATUSES: &[&str] = &["True", "False", "Unknown"];
const LABELS: &[(&str, &[&str])] = &[
    (POOL, &["a", "b"]),
    (ZONE, &["z1", "z2"]),
    (COUNT, &["2", "8", "none"]),
];

/// What a node has beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A CSI driver that has registered.
    Driver,
    /// A `ResourceSlice` with two devices.
    Slice,
    /// A Ready pod of the `DaemonSet`.
    ReadyPod,
    /// A pod of the `DaemonSet` that is not Ready.
    UnreadyPod,
    /// A check that has succeeded.
    Check,
}

const PARTS: &[Part] = &[
    Part::Driver,
    Part::Slice,
    Part::ReadyPod,
    Part::UnreadyPod,
    Part::Check,
];

/// The nodes of a round.
pub(crate) struct World {
    client: Client,
    daemon_set: DaemonSet,
    parts: BTreeSet<(&'static str, Part)>,
    /// The taints, by key and effect, with which each node was created.
    pub born_with: BTreeMap<&'static str, BTreeSet<(String, String)>>,
}

impl World {
    /// Creates the nodes and the `DaemonSet`.
    pub(crate) async fn create(client: &Client, chance: &mut Chance) -> Result<Self> {
        let (namespace, name) = DAEMON_SET;
        let mut component = daemon_set(&format!("{namespace}/{name}"));
        if chance.is(70) {
            component = component.tolerate_everything();
        }
        if chance.is(50) {
            component = component.critical();
        }
        let mut world = Self {
            client: client.clone(),
            daemon_set: component.create(client).await?,
            parts: BTreeSet::new(),
            born_with: BTreeMap::new(),
        };
        for name in NODES {
            world.join(name, chance).await?;
        }
        for _ in 0..6 {
            world.change_part(chance).await?;
        }
        Ok(world)
    }

    /// Removes everything.
    pub(crate) async fn clear(mut self) -> Result<()> {
        for (node, part) in std::mem::take(&mut self.parts) {
            self.take(node, part).await?;
        }
        for name in NODES {
            delete_node(&self.client, name).await?;
        }
        let (namespace, name) = DAEMON_SET;
        let daemon_sets = Api::<DaemonSet>::namespaced(self.client.clone(), namespace);
        daemon_sets.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Something happens to a node; returns what. Labels change only as it joins again: what goes from a node counts for minutes more.
    pub(crate) async fn change(&mut self, chance: &mut Chance) -> Result<String> {
        let name = chance.pick(NODES);
        let client = self.client.clone();
        Ok(match chance.below(10) {
            0..=2 => {
                let kind = chance.pick(REPORTED);
                let status = chance.pick(STATUSES);
                set_node_condition(&client, name, kind, status).await?;
                format!("{name}: {kind} is {status}")
            }
            3 => {
                let kind = chance.pick(REPORTED);
                remove_node_condition(&client, name, kind).await?;
                format!("{name}: {kind} is no more")
            }
            6 => {
                let count = chance.pick(&["0", "2", "8"]);
                let patch = json!({"status": {"allocatable": {RESOURCE: count}}});
                patch_node_status(&client, name, &patch).await?;
                format!("{name}: {count} {RESOURCE}")
            }
            7 => {
                let boot_id = format!("boot-{}", chance.below(4));
                let patch = json!({"status": {"nodeInfo": {"bootID": boot_id}}});
                patch_node_status(&client, name, &patch).await?;
                format!("{name}: {boot_id}")
            }
            4 | 5 | 8 => {
                let pods = [Part::ReadyPod, Part::UnreadyPod, Part::Check];
                for part in pods {
                    if self.parts.remove(&(name, part)) {
                        self.take(name, part).await?;
                    }
                }
                delete_node(&client, name).await?;
                self.join(name, chance).await?;
                format!("{name} is deleted and joins again")
            }
            _ => self.change_part(chance).await?,
        })
    }

    /// Creates a node with whatever it may have.
    async fn join(&mut self, name: &'static str, chance: &mut Chance) -> Result<()> {
        let mut new = node(name);
        for (key, values) in LABELS {
            if chance.is(70) {
                new = new.label(key, chance.pick(values));
            }
        }
        for kind in REPORTED {
            if chance.is(60) {
                new = new.condition(kind, chance.pick(STATUSES));
            }
        }
        for key in TAINTS {
            if chance.is(15) {
                new = new.taint(key, chance.pick(EFFECTS));
            }
        }
        if chance.is(60) {
            new = new.allocatable(RESOURCE, chance.pick(&["0", "2", "8"]));
        }
        if chance.is(80) {
            new = new.boot_id(chance.pick(&["boot-0", "boot-1"]));
        }
        let created = new.create(&self.client).await?;
        self.born_with.insert(name, taints(&created));
        Ok(())
    }

    /// Gives a node something beside itself, or takes it away.
    async fn change_part(&mut self, chance: &mut Chance) -> Result<String> {
        let (name, part) = (chance.pick(NODES), chance.pick(PARTS));
        if self.parts.remove(&(name, part)) {
            self.take(name, part).await?;
            return Ok(format!("{name} loses its {part:?}"));
        }
        self.give(name, part).await?;
        self.parts.insert((name, part));
        Ok(format!("{name} gets a {part:?}"))
    }

    async fn give(&self, name: &str, part: Part) -> Result<()> {
        let client = &self.client;
        match part {
            Part::Driver => {
                let node = state::node(client, name).await?;
                set_csi_drivers(client, &node, &[CSI_DRIVER]).await?;
            }
            Part::Slice => {
                let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
                let slice: ResourceSlice = serde_json::from_value(json!({
                    "metadata": {"name": name},
                    "spec": {
                        "driver": DRA_DRIVER, "nodeName": name, "pool": pool,
                        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
                    },
                }))?;
                let slices = Api::all(client.clone());
                slices.create(&PostParams::default(), &slice).await?;
            }
            Part::ReadyPod | Part::UnreadyPod => {
                let (namespace, of) = DAEMON_SET;
                let its_name = pod_name(name, part);
                let mut its = pod(&format!("{namespace}/{its_name}"))
                    .on(name)
                    .label("app", of);
                if self.daemon_set.labels().contains_key(CRITICAL.0) {
                    its = its.critical();
                }
                let mut its = its.tolerate_everything().build();
                its.metadata.owner_references =
                    self.daemon_set.controller_owner_ref(&()).map(|it| vec![it]);
                let pods = Api::<Pod>::namespaced(client.clone(), namespace);
                pods.create(&PostParams::default(), &its).await?;
                set_pod_ready(client, namespace, &its_name, part == Part::ReadyPod).await?;
            }
            Part::Check => {
                let (namespace, check) = CHECK;
                let its_name = pod_name(name, part);
                let its = pod(&format!("{namespace}/{its_name}")).on(name);
                let its = its.label("nodegate.dev/check", check).tolerate_everything();
                its.create(client).await?;
                set_pod_succeeded(client, namespace, &its_name).await?;
            }
        }
        Ok(())
    }

    async fn take(&self, name: &str, part: Part) -> Result<()> {
        let (client, how) = (self.client.clone(), DeleteParams::default());
        match part {
            Part::Driver => {
                Api::<CSINode>::all(client).delete(name, &how).await?;
            }
            Part::Slice => {
                Api::<ResourceSlice>::all(client).delete(name, &how).await?;
            }
            Part::ReadyPod | Part::UnreadyPod => {
                delete_pod(&client, DAEMON_SET.0, &pod_name(name, part)).await?;
            }
            Part::Check => delete_pod(&client, CHECK.0, &pod_name(name, part)).await?,
        }
        Ok(())
    }
}

fn pod_name(node: &str, part: Part) -> String {
    format!("{node}-{part:?}").to_lowercase()
}

/// A node's taints, by key and effect.
pub(crate) fn taints(node: &Node) -> BTreeSet<(String, String)> {
    state::taints_of(node)
        .map(|it| (it.key.clone(), it.effect.clone()))
        .collect()
}
