//! Values that mean something in a field of this name, in valid rules and in those that are not: beside them, the schema alone
//! says what a field may hold.
//!
//! Nothing becomes due while a round lasts: what takes time is over within a second, or takes longer than a round.

use serde_json::{Value, json};

/// The keys of taints. Nodes register with some of them.
pub(crate) const TAINTS: &[&str] = &[
    "readiness.k8s.io/network",
    "readiness.k8s.io/storage",
    "readiness.k8s.io/gpu",
    "readiness.k8s.io/a",
    "readiness.k8s.io/b",
    "readiness.k8s.io/c",
    "readiness.k8s.io/d",
    "readiness.k8s.io/e",
    "readiness.k8s.io/f",
    "readiness.k8s.io/g",
    "readiness.k8s.io/h",
    "readiness.k8s.io/i",
    "example.com/startup",
    "startup",
];

/// The effects of taints.
pub(crate) const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The conditions that nodes report.
pub(crate) const REPORTED: &[&str] = &[
    "Ready",
    "MemoryPressure",
    "NetworkUnavailable",
    "MaintenanceInProgress",
    "example.com/NetworkReady",
    "example.com/StorageReady",
];

/// The names of rules.
pub(crate) const RULES: &[&str] = &["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"];

/// What a DRA driver, a CSI driver, a `DaemonSet` and a check are named.
pub(crate) const DRA_DRIVER: &str = "gpu.example.com";
pub(crate) const CSI_DRIVER: &str = "ebs.csi.aws.com";
pub(crate) const DAEMON_SET: (&str, &str) = ("kube-system", "cilium");
pub(crate) const CHECK: (&str, &str) = ("default", "nccl");

/// An extended resource, and the label that counts it.
pub(crate) const RESOURCE: &str = "nvidia.com/gpu";
pub(crate) const COUNT: &str = "nvidia.com/gpu.count";

/// Labels of nodes.
pub(crate) const POOL: &str = "pool";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

/// Values for a field of an object; `field[]` is an item of a list. Nothing if the schema has to do.
pub(crate) fn words(object: &str, field: &str) -> Vec<Value> {
    match (object, field) {
        ("conditions[]", "type") => types(),
        ("nodegate", "minimum") => vec![json!(1), json!(2), json!(8), json!(0)],
        ("nodegate", "minimumFromLabel") => texts(&[COUNT, COUNT, "example.com/count", "no label"]),
        ("reasons", "reasons[]") => texts(&[
            "SetByTest",
            "DevicesPublished",
            "CheckSucceeded",
            "no reason",
        ]),
        ("values", "values[]") => texts(&["2", "8", "a", "no value"]),
        ("except", "except[]") => texts(&["kube-system/cilium", "default/absent", "no name"]),
        ("taint", "key") => {
            let mut keys = texts(TAINTS);
            keys.extend(texts(&[
                "readiness.k8s.io/",
                "node.kubernetes.io/not-ready",
            ]));
            keys
        }
        ("taint", "effect") => {
            let mut effects = EFFECTS.repeat(4);
            effects.push("NoFun");
            texts(&effects)
        }
        ("taint", "value") => texts(&["", "pending", "yes", "no value"]),
        ("nodeSelector", "matchLabels") => vec![
            json!({"kubernetes.io/os": "linux"}),
            json!({"kubernetes.io/os": "linux"}),
            json!({"kubernetes.io/os": "linux"}),
            json!({POOL: "a"}),
            json!({POOL: "b"}),
            json!({POOL: "a", ZONE: "z1"}),
            json!({ZONE: "z2"}),
            json!({ZONE: "z1"}),
            json!({"no label": "x"}),
            json!({}),
        ],
        ("matchExpressions", "matchExpressions[]") => vec![
            json!({"key": POOL, "operator": "In", "values": ["a", "b"]}),
            json!({"key": POOL, "operator": "NotIn", "values": ["b"]}),
            json!({"key": ZONE, "operator": "Exists"}),
            json!({"key": COUNT, "operator": "DoesNotExist"}),
            json!({"key": COUNT, "operator": "In", "values": ["2", "no value"]}),
            json!({"key": ZONE, "operator": "In"}),
        ],
        (_, "gracePeriod") => texts(&["1ms", "1s", "10m", "1h30m", "0s"]),
        (_, "settlePeriod") => texts(&["1ms", "0s"]),
        (_, "heartbeatTimeout") => texts(&["6m", "1.5h", "10s"]),
        (_, "readinessTTL") => texts(&["10m", "1h", "1s"]),
        (_, "evictionRate") => vec![json!(0.001), json!(100), json!(0)],
        (_, "secondaryEvictionRate") => vec![json!(0.001), json!(100), json!(0), json!(-1)],
        (_, "unhealthyZoneThreshold") => vec![json!(0.1), json!(0.55), json!(1), json!(2)],
        (_, "largeClusterSizeThreshold") => vec![json!(0), json!(3), json!(50), json!(-1)],
        (_, "maxUnhealthy") => vec![json!(0), json!(3), json!("20%"), json!("101%")],
        _ => Vec::new(),
    }
}

/// Types of conditions: what nodes report, what is made of other objects, and what is not.
fn types() -> Vec<Value> {
    let (namespace, name) = DAEMON_SET;
    let (check_namespace, check) = CHECK;
    let mut types = texts(REPORTED);
    types.extend([
        json!(format!("daemonset.nodegate.dev/{namespace}.{name}")),
        json!(format!("daemonset.nodegate.dev/{namespace}.{name}")),
        json!(format!("check.nodegate.dev/{check_namespace}.{check}")),
        json!(format!("csidriver.nodegate.dev/{CSI_DRIVER}")),
        json!(format!("label.nodegate.dev/{COUNT}")),
        json!(format!("resource.nodegate.dev/{RESOURCE}")),
        json!(format!("resourceslice.nodegate.dev/{DRA_DRIVER}")),
    ]);
    types.extend(texts(&[
        "daemonset.nodegate.dev/default.absent",
        "daemonset.nodegate.dev/absent",
        "daemonsets.nodegate.dev/all",
        "daemonsets.nodegate.dev/scheduled",
        "daemonsets.nodegate.dev/some",
        "check.nodegate.dev/default.absent",
        "label.nodegate.dev/pool",
        "label.nodegate.dev/",
        "csidriver.nodegate.dev/x",
        "csidriver.nodegate.dev/",
        "resource.nodegate.dev/memory",
        "resource.nodegate.dev/",
        "resourceslice.nodegate.dev/x",
        "nodegate.dev/none",
        "node.gardener.cloud/CriticalComponentsReady",
        "node.gardener.cloud/CriticalDaemonSetsScheduled",
        "node.gardener.cloud/CriticalPodsReady",
        "node.gardener.cloud/CSIDriversRegistered",
        "node.gardener.cloud/None",
    ]));
    types
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}
