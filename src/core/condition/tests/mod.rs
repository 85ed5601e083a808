//! Synthesized conditions of nodes, in tables of named cases.

mod affinity;
mod components;
mod daemon_sets;
mod named;
mod observations;
mod pods;
mod sources;
mod taints;

use crate::api::ConditionStatus;
use crate::testing::{
    Builder, DaemonSetBuilder, NodeBuilder, PodBuilder, World, daemon_set, node, pod, world,
};

const SCHEDULED: &str = "node.gardener.cloud/CriticalDaemonSetsScheduled";

const READY: &str = "node.gardener.cloud/CriticalPodsReady";

const DRIVERS: &str = "node.gardener.cloud/CSIDriversRegistered";

const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";

const CNI_MISSING: &str = "DaemonSet kube-system/cni has no pod on this node";

fn worker() -> NodeBuilder {
    node("worker-1")
}

fn cni() -> DaemonSetBuilder {
    daemon_set("kube-system/cni").critical()
}

fn cni_pod() -> PodBuilder {
    pod("kube-system/cni-1").of(&cni())
}

/// Why a synthesized condition is unmet; `None` if it is `True`.
fn lack(world: &World, kind: &str) -> Option<String> {
    let answer = world.condition(kind).expect("some source makes it");
    (answer.status != ConditionStatus::True).then_some(answer.message)
}

fn assert_lack(name: &str, world: &World, kind: &str, expected: Option<&str>) {
    assert_eq!(lack(world, kind).as_deref(), expected, "{name}: {kind}");
}

/// A node with labels that a `DaemonSet` may select.
fn labelled() -> NodeBuilder {
    worker()
        .label("kubernetes.io/arch", "arm64")
        .label("cores", "8")
}

fn assert_meant_for(name: &str, node: &NodeBuilder, daemon_set: &DaemonSetBuilder, expected: bool) {
    let world = world(node).daemon_set(daemon_set);
    assert_lack(name, &world, SCHEDULED, expected.then_some(CNI_MISSING));
}
