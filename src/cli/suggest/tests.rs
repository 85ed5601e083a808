//! The suggestions for each kind of `DaemonSet`, and that they can be applied unchanged.

use super::*;
use crate::page::{Page, Render};
use crate::read::{Lists, ObjectSource, snapshot};
use crate::snapshot::Wanted;
use crate::testing::at;
use futures::FutureExt;
use nodegate_cluster::ResourceKind;
use nodegate_core::config::Config;
use nodegate_core::object::RuleObject;
use nodegate_core::rule::Rule;
use std::collections::BTreeMap;

fn daemon_set(key: &str, images: &[&str], tolerations: &Value) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    let containers = images
        .iter()
        .map(|image| json!({"name": "c", "image": image}));
    let containers: Vec<Value> = containers.collect();
    json!({
        "metadata": {"namespace": namespace, "name": name, "uid": key},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"tolerations": tolerations, "containers": containers},
        }},
    })
}

fn suggested(objects: Vec<(ResourceKind, Value)>) -> Suggestions {
    suggest(&read(objects))
}

fn read(objects: Vec<(ResourceKind, Value)>) -> Snapshot {
    let mut lists = Lists::of(at(0), BTreeMap::new());
    for (kind, object) in objects {
        let all = lists.objects.entry(kind).or_default();
        all.push(object.to_string());
    }
    let wanted = Wanted::outline(&[ResourceKind::DaemonSets, ResourceKind::CsiDrivers]);
    let source = ObjectSource::Memory(lists);
    let read = snapshot(&source, None, &wanted).now_or_never();
    read.unwrap().unwrap()
}

#[test]
fn a_daemon_set_that_does_not_tolerate_the_taint_yet_is_told_of_with_what_to_do() {
    for (adds_tolerations, expected) in [
        (
            false,
            "#   add to its pod template: tolerations: [{key: readiness.k8s.io/storage, operator: Exists}], or have the API server",
        ),
        (
            true,
            "annotate --overwrite ds/ebs-csi-node nodegate.dev/tolerate=storage",
        ),
    ] {
        let mut read = read(cluster());
        read.adds_tolerations = adds_tolerations;
        let text = suggest(&read).text(&Page::plain(at(0)));
        let (_, after) = text
            .split_once("yet, and cannot start on a node that has it:\n")
            .unwrap();
        assert!(after.lines().next().unwrap().contains(expected), "{text}");
    }
}

fn of(daemon_sets: &[Value]) -> Vec<(ResourceKind, Value)> {
    let all = daemon_sets.iter().cloned();
    all.map(|it| (ResourceKind::DaemonSets, it)).collect()
}

fn cluster() -> Vec<(ResourceKind, Value)> {
    let all = json!([{"operator": "Exists"}]);
    of(&[
        daemon_set(
            "kube-system/cilium",
            &["quay.io/cilium/cilium:v1.18.1"],
            &all,
        ),
        daemon_set(
            "kube-system/kube-proxy",
            &["registry.k8s.io/kube-proxy:v1.36.0"],
            &all,
        ),
        daemon_set(
            "kube-system/ebs-csi-node",
            &[
                "public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v1.50.0",
                "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0",
            ],
            &json!([]),
        ),
        daemon_set(
            "monitoring/node-exporter",
            &["quay.io/prometheus/node-exporter:v1.9.0"],
            &all,
        ),
    ])
}

/// The compiled rules of a text.
fn rules(text: &str) -> Vec<Rule> {
    let documents = text.split("---\n").skip(1);
    let classes = Config::default().classes().unwrap();
    let rules = documents.map(|text| {
        let rule: RuleObject = serde_saphyr::from_str(text).unwrap();
        Rule::compile(&rule.metadata, rule.spec, &classes)
    });
    rules.collect()
}

#[test]
fn a_daemon_set_that_a_rule_waits_for_is_not_suggested_again() {
    let mut objects = cluster();
    let rule = json!({"metadata": {"name": "network", "uid": "u"}, "spec": {
        "enforcementMode": "bootstrap-only",
        "conditions": [{"type": "daemonset.nodegate.dev/kube-system.cilium", "requiredStatus": "True"}],
        "taint": {"key": "readiness.k8s.io/cni", "effect": "NoSchedule"},
        "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
    }});
    objects.push((ResourceKind::Rules, rule));
    let answer = suggested(objects);
    assert_eq!(
        answer.already,
        [("kube-system/cilium".to_owned(), "network".to_owned())]
    );
    let rule = &answer.rules[0].rule;
    assert_eq!(rule["metadata"]["name"], "network-2");
    assert_eq!(rule["spec"]["taint"]["key"], "readiness.k8s.io/network-2");
}

#[test]
fn a_hostile_image_name_stays_in_its_comment() {
    let image = "csi-node-driver-registrar\nkind: Evil\n# x";
    let answer = suggested(of(&[daemon_set("a/b", &[image], &json!([]))]));
    let text = answer.text(&Page::plain(at(0)));
    assert!(!text.contains("\nkind: Evil"), "{text}");
    assert_eq!(rules(&text).len(), 1);
}

#[test]
fn where_nothing_is_suggested_one_object_is_written_that_is_not_stored() {
    let answer = suggested(of(&[]));
    let text = answer.text(&Page::plain(at(0)));
    let head = "# No known component lacks a rule; 0 DaemonSets were checked.\n";
    assert!(text.starts_with(head), "{text}");
    let object: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(object["kind"], "SelfSubjectReview");
    let list = serde_json::to_value(answer.typed()).unwrap();
    assert_eq!(list["items"], json!([]));
}

fn driver(name: &str) -> (ResourceKind, Value) {
    let driver = json!({"metadata": {"name": name}, "spec": {}});
    (ResourceKind::CsiDrivers, driver)
}

/// What the only suggested rule waits for, and the label of its nodes.
fn awaited(objects: Vec<(ResourceKind, Value)>) -> (Vec<String>, String) {
    let answer = suggested(objects);
    let [Suggestion { rule, .. }] = &answer.rules[..] else {
        panic!("{answer:?}");
    };
    let conditions = rule["spec"]["conditions"].as_array().unwrap().iter();
    let kinds = conditions.map(|it| it["type"].as_str().unwrap().to_owned());
    let labels = rule["spec"]["nodeSelector"]["matchLabels"].to_string();
    (kinds.collect(), labels)
}

#[test]
fn devices_are_waited_for_on_their_nodes_and_no_daemon_set_that_provides_them() {
    #[rustfmt::skip]
    let cases = [
        ("nvcr.io/nvidia/k8s-device-plugin:v0.17.4", "resource.nodegate.dev/nvidia.com/gpu", "nvidia-gpu"),
        ("gke.gcr.io/nvidia-gpu-device-plugin@sha256:0a", "resource.nodegate.dev/nvidia.com/gpu", "nvidia-gpu"),
        ("registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1", "resourceslice.nodegate.dev/gpu.nvidia.com", "nvidia-dra"),
        ("nvcr.io/nvidia/k8s-dra-driver-gpu:v25.3.2", "resourceslice.nodegate.dev/gpu.nvidia.com", "nvidia-dra"),
        ("docker.io/rocm/k8s-device-plugin:1.31", "resource.nodegate.dev/amd.com/gpu", "amd-gpu"),
        ("public.ecr.aws/neuron/neuron-device-plugin:2.26", "resource.nodegate.dev/aws.amazon.com/neuron", "neuron"),
    ];
    for (image, condition, pool) in cases {
        let plugin = daemon_set("gpu-operator/plugin", &[image], &json!([]));
        let expected = (
            vec![condition.to_owned()],
            json!({"example.com/pool": pool}).to_string(),
        );
        assert_eq!(awaited(of(&[plugin])), expected, "{image}");
    }
    // A rule may wait for them already.
    let mut objects = of(&[daemon_set("a/b", &["nvidia/k8s-device-plugin"], &json!([]))]);
    let rule = json!({"metadata": {"name": "gpu", "uid": "u"}, "spec": {
        "enforcementMode": "bootstrap-only",
        "conditions": [{"type": "resource.nodegate.dev/nvidia.com/gpu", "requiredStatus": "True"}],
        "taint": {"key": "readiness.k8s.io/gpu", "effect": "NoSchedule"},
        "nodeSelector": {"matchLabels": {"pool": "gpu"}},
    }});
    objects.push((ResourceKind::Rules, rule));
    assert_eq!(
        suggested(objects).already,
        [("a/b".into(), "gpu".to_owned())]
    );
}

#[test]
fn a_component_is_known_by_its_image_in_a_mirror_too() {
    let suggests = |image: &str| {
        let answer = suggested(of(&[daemon_set("a/b", &[image], &json!([]))]));
        let rules = answer.rules.iter();
        let names = rules.map(|it| it.rule["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    #[rustfmt::skip]
    let cases = [
        ("docker.io/rancher/mirrored-cilium-cilium:v1.18.1", "network"),
        ("registry.example.com:5000/mirrored-calico-node:v3.31.0", "network"),
        ("quay.io/calico/node@sha256:0a", "network"),
        ("docker.io/rancher/hardened-calico:v3.31.0-build20260101", "network"),
        ("rancher/hardened-dns-node-cache:1.26.5", "network"),
        ("quay.io/isovalent/cilium:v1.18.1-cee.1", "network"),
        ("quay.io/tigera/cnx-node:v3.22.0", "network"),
        ("123.dkr.ecr.eu-central-1.amazonaws.com/mirror/nvcr.io/nvidia/k8s-device-plugin:v0.17.4", "nvidia-gpu"),
        ("ghcr.io/enix/kube-image-keeper:1.13.0", "registry"),
        ("ghcr.io/spegel-org/spegel:v0.4.0", "registry"),
        ("mirror.io/csi-secrets-store-driver:v1.5.0", "storage"),
        ("quay.io/calico/node-driver-registrar:v3.31.0", ""),
        ("falco.example.com/shop/web:v1", ""),
        ("antrea.example.com:5000/web", ""),
    ];
    for (image, expected) in cases {
        assert_eq!(suggests(image), expected, "{image}");
    }
}

#[test]
fn a_csi_driver_is_waited_for_by_its_name_where_there_is_a_csi_driver_of_that_name() {
    const REGISTRAR: &str = "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0";
    let efs = || {
        daemon_set(
            "kube-system/efs-csi-node",
            &["e.io/aws-efs-csi-driver:v2", REGISTRAR],
            &json!([]),
        )
    };
    let mut rook = daemon_set(
        "rook/csi-rbdplugin",
        &["quay.io/cephcsi/cephcsi:v3", REGISTRAR],
        &json!([]),
    );
    let containers = rook.pointer_mut("/spec/template/spec/containers").unwrap();
    containers[1]["args"] = json!([
        "--kubelet-registration-path=/var/lib/kubelet/plugins/rook.rbd.csi.ceph.com/csi.sock"
    ]);
    let mut azure = daemon_set(
        "kube-system/csi-azuredisk-node",
        &["mirror.io/disk:v1", REGISTRAR],
        &json!([]),
    );
    let containers = azure.pointer_mut("/spec/template/spec/containers").unwrap();
    containers[1]["env"] = json!([{"name": "SOCKET", "value": "/var/lib/kubelet/plugins/disk.csi.azure.com/csi.sock"}]);
    #[rustfmt::skip]
    let cases = [
        (efs(), &["efs.csi.aws.com", "ebs.csi.aws.com"][..], "csidriver.nodegate.dev/efs.csi.aws.com"),
        (efs(), &["ebs.csi.aws.com"], "daemonset.nodegate.dev/kube-system.efs-csi-node"),
        (rook, &["rbd.csi.ceph.com", "rook.rbd.csi.ceph.com"], "csidriver.nodegate.dev/rook.rbd.csi.ceph.com"),
        (azure, &["disk.csi.azure.com"], "csidriver.nodegate.dev/disk.csi.azure.com"),
    ];
    for (daemon_set, drivers, expected) in cases {
        let mut objects = of(&[daemon_set]);
        objects.extend(drivers.iter().map(|name| driver(name)));
        assert_eq!(awaited(objects).0, [expected]);
    }
}

#[test]
fn each_line_about_a_known_component_can_be_used() {
    let lines = include_str!("known.txt").lines();
    let lines = lines.filter(|line| line.contains('|'));
    let rows: usize = known::purposes().map(|it| it.known.len()).sum();
    assert_eq!(lines.count(), rows);
    for purpose in known::purposes() {
        for [_, kind, _] in purpose.known {
            assert_eq!(names_nothing(known::type_of(kind)), None, "{kind}");
        }
    }
}

#[test]
fn a_label_that_says_that_a_component_is_done_is_waited_for_with_its_value() {
    let image = "nvcr.io/nvidia/cloud-native/k8s-mig-manager:v0.12.1";
    let manager = daemon_set("gpu-operator/nvidia-mig-manager", &[image], &json!([]));
    let found = suggested(of(&[manager]));
    let expected = json!([{
        "type": "label.nodegate.dev/nvidia.com/mig.config.state",
        "requiredStatus": "True",
        "nodegate": {"values": ["success"]},
    }]);
    assert_eq!(found.rules[0].rule["spec"]["conditions"], expected);
}
