//! Well-formed and malformed objects: a malformed one affects no other object.

mod budget;

use std::fmt::Debug;

use kube::core::{ObjectList, WatchEvent};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use super::*;

/// A time that Go reads and writes, but `jiff` cannot represent.
const BEYOND: &str = "9999-12-31T23:59:59Z";

/// A decoded object in its `Debug` form, or the error.
type Made = Result<String, String>;

/// Decodes the items of a list.
type Items = fn(&[Value]) -> Vec<Made>;

/// A kind of object: how to decode a list of it, and a sample from the API server.
struct Kind {
    name: &'static str,
    items: Items,
    sample: fn() -> Value,
}

fn made<T: Debug>(read: Result<T, Unreadable>) -> Made {
    match read {
        Ok(value) => Ok(format!("{value:?}")),
        Err(why) => Err(why.to_string()),
    }
}

/// Decodes and reads the items twice, as a list and as watch events.
fn items<T: super::Kind>(items: &[Value]) -> Vec<Made> {
    let list = json!({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items});
    let list: ObjectList<Watched<T>> =
        serde_json::from_str(&list.to_string()).expect("a list with any items");
    let listed = list.items.into_iter().map(|item| made(item.read()));
    let listed: Vec<Made> = listed.collect();
    for (item, listed) in items.iter().zip(&listed) {
        let event = format!(r#"{{"type":"MODIFIED","object":{item}}}"#);
        let event: WatchEvent<Watched<T>> =
            serde_json::from_str(&event).expect("an event of any object");
        let WatchEvent::Modified(object) = event else {
            panic!("another event: {event:?}");
        };
        assert_eq!(made(object.read()), *listed, "{item}");
    }
    listed
}

fn meta() -> Value {
    json!({
        "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"karpenter.sh/nodepool": "pool"},
        "annotations": {"nodegate.dev/readiness-ttl": "5m", "readiness.k8s.io/bootstrap-completed-r": "{}"},
        "finalizers": ["readiness.node.x-k8s.io/cleanup-taints"],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "du", "controller": true}],
    })
}

fn node() -> Value {
    json!({
        "metadata": meta(),
        "spec": {"providerID": "cloud://1",
                 "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "m",
                            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "allocatable": {"nvidia.com/gpu": "1"},
            "nodeInfo": {"bootID": "b"},
        },
    })
}

fn pod() -> Value {
    json!({
        "metadata": meta(),
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    })
}

fn csi_node() -> Value {
    let health = json!([{"name": "d", "healthConditions": [
        {"status": "StorageDegraded", "reason": "R", "message": "m", "accessMode": "ReadWriteOnce"}]}]);
    json!({"metadata": meta(), "spec": {"drivers": [{"name": "d", "allocatable": {"count": 5}}]},
           "status": {"storageHealth": health}})
}

fn slice() -> Value {
    json!({"metadata": meta(), "spec": {
        "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d", "taints": [{"key": "k", "effect": "NoSchedule"}]}],
    }})
}

fn daemon_set() -> Value {
    let terms = json!([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]);
    let required =
        json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    json!({"metadata": meta(), "spec": {"template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"nodeSelector": {"os": "linux"}, "affinity": {"nodeAffinity": required}, "hostNetwork": true,
                 "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]},
    }}})
}

fn rule() -> Value {
    json!({
        "metadata": meta(),
        "spec": {"conditions": [{"type": "Ready", "requiredStatus": "True"}], "enforcementMode": "continuous",
                 "taint": {"key": "readiness.k8s.io/x", "effect": "NoSchedule"},
                 "nodeSelector": {"matchLabels": {"a": "b"}}, "nodegate": {"gracePeriod": "5m"}},
        "status": {"conditions": [{"type": "Accepted", "status": "True", "reason": "Valid", "message": "",
                                   "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    })
}

fn claim() -> Value {
    json!({
        "metadata": meta(),
        "spec": {"readinessTTL": "5m"},
        "status": {"nodeName": "n", "providerID": "cloud://1",
                   "conditions": [{"type": "Initialized", "status": "True"}]},
    })
}

fn pool() -> Value {
    json!({"metadata": meta()})
}

const KINDS: [Kind; 8] = [
    Kind {
        name: "Node",
        items: items::<Node>,
        sample: node,
    },
    Kind {
        name: "Pod",
        items: items::<Pod>,
        sample: pod,
    },
    Kind {
        name: "CSINode",
        items: items::<CsiNode>,
        sample: csi_node,
    },
    Kind {
        name: "ResourceSlice",
        items: items::<ResourceSlice>,
        sample: slice,
    },
    Kind {
        name: "DaemonSet",
        items: items::<DaemonSet>,
        sample: daemon_set,
    },
    Kind {
        name: "NodeReadinessRule",
        items: items::<RuleObject>,
        sample: rule,
    },
    Kind {
        name: "NodeClaim",
        items: items::<NodeClaim>,
        sample: claim,
    },
    Kind {
        name: "NodePool",
        items: items::<NodePool>,
        sample: pool,
    },
];

/// The JSON pointers of all places in a value.
fn places(value: &Value) -> Vec<String> {
    let mut places = vec![String::new()];
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (name, value) in inner {
        places.extend(places_below(&name, value));
    }
    places
}

fn places_below(name: &str, value: &Value) -> impl Iterator<Item = String> {
    let below = places(value).into_iter();
    let name = name.to_owned();
    below.map(move |place| format!("/{name}{place}"))
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        select(
            &[
                "",
                "True",
                "Ready",
                "a",
                BEYOND,
                "0000-00-00T00:00:00Z",
                "2026-01-01T00:00:00Z"
            ][..]
        )
        .prop_map(Value::from),
    ];
    let names = select(
        &[
            "metadata",
            "spec",
            "status",
            "name",
            "uid",
            "labels",
            "conditions",
            "type",
            "template",
            "taints",
            "x",
        ][..],
    );
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..4).prop_map(|fields| {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect::<Map<_, _>>())
            }),
        ]
    })
}

/// A sample object with other values in some places.
fn any_object(kind: &'static Kind) -> impl Strategy<Value = Value> {
    let sample = (kind.sample)();
    let places = places(&sample);
    let some = subsequence(places, 0..4);
    let changed = some.prop_flat_map(|places| {
        let values = prop::collection::vec(any_value(), places.len());
        (Just(places), values)
    });
    prop_oneof![
        1 => any_value(),
        4 => changed.prop_map(move |(places, values)| {
            let mut object = sample.clone();
            for (place, value) in places.iter().zip(values) {
                // An earlier replacement may have removed this place.
                if let Some(there) = object.pointer_mut(place) {
                    *there = value;
                }
            }
            object
        }),
    ]
}

fn any_kind_and_object() -> impl Strategy<Value = (&'static Kind, Value)> {
    (0..KINDS.len()).prop_flat_map(|index| {
        let kind = &KINDS[index];
        (Just(kind), any_object(kind))
    })
}

impl Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_object_of_any_form_leaves_its_neighbours_as_they_are((kind, object) in any_kind_and_object()) {
        let sample = (kind.sample)();
        let alone = (kind.items)(std::slice::from_ref(&sample));
        prop_assert!(alone[0].is_ok(), "{:?}", alone[0]);
        let among = (kind.items)(&[sample.clone(), object.clone(), sample]);
        prop_assert_eq!(&among[0], &alone[0]);
        prop_assert_eq!(&among[2], &alone[0]);
        prop_assert_eq!(&among[1], &(kind.items)(&[object])[0]);
    }
}

#[test]
fn a_time_beyond_what_can_be_told_is_absent() {
    for kind in &KINDS {
        let sample = (kind.sample)();
        let times = places(&sample).into_iter().filter(|place| {
            let there = sample.pointer(place).and_then(Value::as_str);
            there.is_some_and(|text| text.starts_with("2026-"))
        });
        for place in times.filter(|place| !place.ends_with("/timeAdded")) {
            let with = |value: Value| {
                let mut object = sample.clone();
                *object.pointer_mut(&place).unwrap() = value;
                (kind.items)(&[object]).remove(0)
            };
            let beyond = with(json!(BEYOND));
            assert!(beyond.is_ok(), "{} {place}: {beyond:?}", kind.name);
            if kind.name != "NodeReadinessRule" {
                assert_eq!(beyond, with(Value::Null), "{} {place}", kind.name);
            }
        }
    }
}

#[test]
fn an_object_whose_deletion_has_begun_is_being_deleted_whenever_that_was() {
    let mut object = node();
    object["metadata"]["deletionTimestamp"] = json!(BEYOND);
    let object: Watched<Node> = serde_json::from_value(object).unwrap();
    assert!(object.read().unwrap().deleting);
}

#[test]
fn a_wrong_required_field_is_named() {
    let odd = |field: &str, wanted: &str| {
        format!("{field}: invalid type: integer `5`, expected {wanted}")
    };
    #[rustfmt::skip]
    let cases = [
        ("Node", "/metadata", "metadata: invalid type: integer `5`, expected struct Metadata".to_owned()),
        ("Node", "/metadata/labels/karpenter.sh~1nodepool", odd("metadata.labels.karpenter.sh/nodepool", "a string")),
        ("Node", "/spec/taints/0", odd("spec.taints[0]", "struct Taint")),
        ("Node", "/spec/taints/0/effect", odd("spec.taints[0].effect", "a string")),
        ("Node", "/status", odd("status", "struct Status")),
        ("Node", "/status/conditions/0/type", odd("status.conditions[0].type", "a string")),
        ("Pod", "/spec/nodeName", odd("spec.nodeName", "a string")),
        ("CSINode", "/spec/drivers", odd("spec.drivers", "a sequence")),
        ("ResourceSlice", "/spec/pool", odd("spec.pool", "struct Pool")),
        ("DaemonSet", "/spec/template/spec/nodeSelector", odd("spec.template.spec.nodeSelector", "a map")),
        ("NodeClaim", "/status", odd("status", "struct Status")),
        ("NodeReadinessRule", "/metadata/name", odd("metadata.name", "a string")),
    ];
    for (kind, place, complaint) in cases {
        let of = KINDS.iter().find(|it| it.name == kind).unwrap();
        let mut object = (of.sample)();
        *object.pointer_mut(place).unwrap() = json!(5);
        assert_eq!((of.items)(&[object])[0], Err(complaint), "{kind} {place}");
    }
}

#[test]
fn a_daemon_set_whose_selector_fits_no_request_is_unreadable() {
    let of = KINDS.iter().find(|it| it.name == "DaemonSet").unwrap();
    for (count, is_read) in [(100, true), (400, false)] {
        let mut object = (of.sample)();
        let values: Vec<_> = (0..count).map(|it| format!("{it:060}")).collect();
        let expression = json!({"key": "app", "operator": "In", "values": values});
        object["spec"]["selector"] = json!({"matchExpressions": [expression]});
        assert_eq!((of.items)(&[object])[0].is_ok(), is_read, "{count}");
    }
}

#[test]
fn a_wrong_optional_field_counts_as_absent() {
    for (kind, place) in [
        ("Node", "/spec/providerID"),
        ("Node", "/status/conditions/0/status"),
        ("Node", "/status/allocatable"),
        ("Node", "/status/nodeInfo"),
        ("Node", "/metadata/resourceVersion"),
        ("Pod", "/metadata/ownerReferences"),
        ("CSINode", "/status/storageHealth"),
        ("NodeClaim", "/status/nodeName"),
        ("NodeClaim", "/status/providerID"),
        ("NodeReadinessRule", "/status"),
    ] {
        let of = KINDS.iter().find(|it| it.name == kind).unwrap();
        let with = |value: Value| {
            let mut object = (of.sample)();
            *object.pointer_mut(place).unwrap() = value;
            (of.items)(&[object]).remove(0)
        };
        let odd = with(json!([5]));
        assert!(odd.is_ok(), "{kind} {place}: {odd:?}");
        assert_eq!(odd, with(Value::Null), "{kind} {place}");
    }
}

#[test]
fn an_object_without_name_or_uid_is_unreadable() {
    for (field, name) in [("name", "metadata.name"), ("uid", "metadata.uid")] {
        let mut object = node();
        object["metadata"][field].take();
        let complaint = format!("{name} is missing");
        assert_eq!(items::<Node>(&[object]), [Err(complaint)]);
    }
}

#[test]
fn a_device_counts_as_tainted_by_a_taint_that_keeps_pods_off_it() {
    for (effect, tainted) in [("NoSchedule", 1), ("NoExecute", 1), ("None", 0)] {
        let mut object = slice();
        object["spec"]["devices"][0]["taints"][0]["effect"] = json!(effect);
        let object: Watched<ResourceSlice> = serde_json::from_value(object).unwrap();
        assert_eq!(object.node_name(), Some("n"));
        assert_eq!(object.read().unwrap().tainted, tainted, "{effect}");
    }
}
