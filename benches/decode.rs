//! The cost of decoding a Node from a watch: only the needed fields, and the whole object.
//!
//! `cargo bench --bench decode` shows nanoseconds and allocations.

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use k8s_openapi::api::core::v1;
use nodegate_core::object::{Node, Watched};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// The fields that the cache keeps.
#[divan::bench]
fn as_far_as_needed(bencher: Bencher) {
    decode(bencher, |text| parse::<Watched<Node>>(text).read());
}

/// The whole object, with the client library's types.
#[divan::bench]
fn whole(bencher: Bencher) {
    decode(bencher, parse::<v1::Node>);
}

fn decode<T>(bencher: Bencher, decode: impl Fn(&[u8]) -> T) {
    let text = node().to_string().into_bytes();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| decode(black_box(&text)));
}

fn parse<T: serde::de::DeserializeOwned>(text: &[u8]) -> T {
    serde_json::from_slice(text).expect("a node as the API server sends it")
}

/// A node of realistic size: twenty images, six conditions, three field managers.
fn node() -> Value {
    let images: Vec<Value> = (0..20)
        .map(|number| {
            json!({
                "names": [
                    format!("registry.example.com/platform/component-{number}@sha256:{number:064x}"),
                    format!("registry.example.com/platform/component-{number}:v1.{number}.0"),
                ],
                "sizeBytes": 50_000_000 + number,
            })
        })
        .collect();
    let kinds = [
        "NetworkUnavailable",
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "Ready",
        "example.com/AgentReady",
    ];
    let conditions = kinds.map(|kind| {
        json!({
            "type": kind,
            "status": "False",
            "reason": "KubeletHasSufficientMemory",
            "message": "kubelet has sufficient memory available",
            "lastHeartbeatTime": "2026-01-01T00:10:00Z",
            "lastTransitionTime": "2026-01-01T00:05:00Z",
        })
    });
    let fields: Value = kinds
        .iter()
        .map(|kind| {
            (
                format!("k:{{\"type\":\"{kind}\"}}"),
                json!({".": {}, "f:status": {}, "f:reason": {}}),
            )
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let managers = ["kubelet", "kube-controller-manager", "nodegate"].map(|manager| {
        json!({
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:05:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:conditions": fields}},
        })
    });
    json!({
        "metadata": {
            "name": "worker-1",
            "uid": "0c1b5d9e-7c0e-4b0a-8f0e-9a1f5c7d2e31",
            "resourceVersion": "1234567",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": "worker-1",
                "topology.kubernetes.io/zone": "zone-a",
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            "managedFields": managers,
        },
        "spec": {
            "providerID": "cloud:///zone-a/worker-1",
            "taints": [{"key": "readiness.k8s.io/agent", "effect": "NoSchedule"}],
        },
        "status": {
            "conditions": conditions,
            "images": images,
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "nodeInfo": {"bootID": "0c1b5d9e-7c0e-4b0a-8f0e-9a1f5c7d2e31", "kubeletVersion": "v1.36.0"},
        },
    })
}
