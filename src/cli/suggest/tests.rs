//! The suggestions for each kind of `DaemonSet`, and that they can be applied unchanged.

use super::*;
use crate::cli::page::{Page, Render, Typed};
use crate::cli::read::{Lists, ObjectSource, snapshot};
use crate::cli::snapshot::Wanted;
use crate::cluster::ResourceKind;
use crate::config::Config;
use crate::object::RuleObject;
use crate::rule::Rule;
use crate::testing::at;
use futures::FutureExt;
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
    let mut lists = Lists::of(at(0), BTreeMap::new());
    for (kind, object) in objects {
        let all = lists.objects.entry(kind).or_default();
        all.push(object.to_string());
    }
    let wanted = Wanted::outline(&[ResourceKind::DaemonSets]);
    let source = ObjectSource::Memory(lists);
    let read = snapshot(&source, None, &wanted).now_or_never();
    suggest(&read.unwrap().unwrap())
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
fn what_is_suggested_is_a_dry_run_that_can_be_applied() {
    let answer = suggested(cluster());
    let text = answer.text(&Page::plain(at(0)));
    let rules = rules(&text);
    let names: Vec<_> = rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["network", "storage"]);
    for rule in &rules {
        assert!(rule.spec.as_ref().unwrap().dry_run);
    }
    let waits: Vec<_> = rules[0]
        .spec
        .as_ref()
        .unwrap()
        .daemon_sets()
        .map(ToString::to_string)
        .collect();
    assert_eq!(waits, ["kube-system/cilium", "kube-system/kube-proxy"]);
}

#[test]
fn what_is_waited_for_is_not_suggested_again_and_no_rule_is_overwritten() {
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
fn hostile_words_stay_in_their_comment() {
    let image = "x\nkind: Evil\n# csi-node-driver-registrar";
    let answer = suggested(of(&[daemon_set("a/b", &[image], &json!([]))]));
    let text = answer.text(&Page::plain(at(0)));
    assert!(!text.contains("\nkind: Evil"), "{text}");
    assert_eq!(rules(&text).len(), 1);
}

#[test]
fn as_an_object_it_is_the_list_of_the_same_rules() {
    let answer = suggested(cluster());
    let object = serde_json::to_value(Typed::of(&answer)).unwrap();
    let (version, kind) = (&object["apiVersion"], &object["kind"]);
    assert_eq!((version, kind), (&json!("v1"), &json!("List")));
    let text = answer.text(&Page::plain(at(0)));
    let documents = text.split("---\n").skip(1);
    let documents: Vec<Value> = documents
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect();
    assert_eq!(object["items"], Value::from(documents));
}

#[test]
fn where_nothing_is_suggested_one_object_is_written_that_is_not_stored() {
    let answer = suggested(of(&[]));
    let text = answer.text(&Page::plain(at(0)));
    let head = "# No known component lacks a rule; 0 DaemonSets were checked.\n";
    assert!(text.starts_with(head), "{text}");
    let object: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(object["kind"], "SelfSubjectReview");
    let list = serde_json::to_value(Typed::of(&answer)).unwrap();
    assert_eq!(list["items"], json!([]));
}
