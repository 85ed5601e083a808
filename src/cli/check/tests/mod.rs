//! Each fault is found, and a faultless input has no findings.

use super::*;
use crate::explain::{explain_daemon_set, explain_node};
use crate::page::{Page, Render};
use crate::read::{Lists, ObjectSource, put, snapshot};
use crate::snapshot::Wanted;
use crate::testing::at;
use futures::FutureExt;
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::api::names::LEASE;
use nodegate_core::object::ObjectKey;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const READY: &str = "node.gardener.cloud/CriticalComponentsReady";

fn rule(name: &str, condition: &str) -> Value {
    json!({
        "kind": "NodeReadinessRule",
        "metadata": {"name": name},
        "spec": {
            "enforcementMode": "bootstrap-only",
            "conditions": [{"type": condition, "requiredStatus": "True"}],
            "taint": {"key": format!("readiness.k8s.io/{name}"), "value": "pending", "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
        },
    })
}

/// A `DaemonSet` without faults.
fn daemon_set(key: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    let labels = json!({"app": name, "node.gardener.cloud/critical-component": "true"});
    json!({
        "kind": "DaemonSet",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": name, "readinessProbe": {}}]},
            },
        },
    })
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    *object.pointer_mut(path).unwrap() = value;
    object
}

/// These objects as a cluster has them.
fn lists(objects: &[Value]) -> Lists {
    let mut lists = Lists::of(at(0), BTreeMap::new());
    for object in objects {
        put(&mut lists, object.clone(), "file.yaml:1");
    }
    lists
}

fn checked(lists: Lists) -> Checkup {
    let source = ObjectSource::Memory(lists);
    let wanted = Wanted::checkup();
    let read = snapshot(&source, None, &wanted).now_or_never();
    check(Vec::new(), &read.unwrap().unwrap())
}

fn found(objects: &[Value]) -> Vec<(&'static str, String)> {
    let findings = checked(lists(objects)).findings.into_iter();
    findings
        .map(|fault| (fault.check.id, fault.object))
        .collect()
}

/// Asserts these findings, by id and object, and no others.
fn finds(objects: &[Value], expected: &[(&'static str, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(id, object)| (*id, (*object).to_owned()))
        .collect();
    assert_eq!(found(objects), expected, "{objects:#?}");
}

const POD_SPEC: &str = "/spec/template/spec";
const TOLERATIONS: &str = "/spec/template/spec/tolerations";
const CNI: &str = "daemonset/kube-system/cni";

fn cni() -> Value {
    daemon_set("kube-system/cni")
}

fn network() -> Value {
    rule("network", READY)
}

/// A rule that names a `DaemonSet`.
fn named(name: &str, daemon_set: &str) -> Value {
    rule(
        name,
        &format!("daemonset.nodegate.dev/kube-system.{daemon_set}"),
    )
}

/// A `DaemonSet` that selects nodes by a late label.
fn late() -> Value {
    let mut object = cni();
    object.pointer_mut(POD_SPEC).unwrap()["nodeSelector"] =
        json!({"nvidia.com/gpu.present": "true"});
    object
}

#[test]
fn faults_of_daemon_sets_are_found() {
    let bare = with(cni(), "/metadata/labels", json!({}));
    finds(
        &[network(), bare],
        &[("NG001", CNI), ("NG003", "rule/network")],
    );
    let blind = with(cni(), TOLERATIONS, json!([]));
    finds(&[network(), blind], &[("NG002", CNI)]);
    let outside = [network(), cni(), daemon_set("tenant/agent")];
    finds(&outside, &[("NG004", "daemonset/tenant/agent")]);
    finds(&[network(), late()], &[("NG006", CNI)]);
}

#[test]
fn a_named_daemon_set_without_a_readiness_probe_is_found() {
    let containers = |containers: Value| with(cni(), "/spec/template/spec/containers", containers);
    let bare = containers(json!([{"name": "plugin"}, {"name": "registrar"}]));
    let found = checked(lists(&[named("a", "cni"), bare.clone()])).findings;
    let [finding] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((finding.check.id, &*finding.object), ("NG020", CNI));
    for part in [
        "plugin",
        "csidriver.nodegate.dev/<driver>",
        "resource",
        "reporter",
    ] {
        assert!(
            finding.message.contains(part),
            "{part}: {}",
            finding.message
        );
    }
    // One probe decides when the pod is Ready, a sidecar's as well.
    let sidecar = json!([{"name": "s", "restartPolicy": "Always", "readinessProbe": {}}]);
    let mut with_sidecar = bare.clone();
    with_sidecar.pointer_mut(POD_SPEC).unwrap()["initContainers"] = sidecar;
    finds(&[named("a", "cni"), with_sidecar], &[]);
    let one = json!([{"name": "plugin", "readinessProbe": {"exec": {}}}, {"name": "registrar"}]);
    finds(&[named("a", "cni"), containers(one)], &[]);
    // What it provides is waited for, or no rule names it.
    let mut both = named("a", "cni");
    let driver = json!({"type": "csidriver.nodegate.dev/a.csi", "requiredStatus": "True"});
    both["spec"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(driver);
    finds(&[both, bare.clone()], &[]);
    finds(&[network(), bare], &[]);
}

#[test]
fn a_daemon_set_that_waits_for_a_label_is_not_said_to_be_waited_for_on_each_node() {
    let blind = with(late(), TOLERATIONS, json!([]));
    let found = checked(lists(&[named("a", "cni"), blind])).findings;
    let said: Vec<_> = found.iter().map(|it| (it.check.id, &*it.message)).collect();
    let [("NG002", stuck), ("NG006", early)] = said[..] else {
        panic!("{said:?}");
    };
    assert!(!stuck.contains("waited for in vain"), "{stuck}");
    assert!(
        stuck.ends_with("a node for which it is meant waits in vain"),
        "{stuck}"
    );
    assert!(
        early.ends_with("the node may be released without it"),
        "{early}"
    );
}

#[test]
fn deadlocks_are_found() {
    let discovery = json!({
        "kind": "DaemonSet",
        "metadata": {"namespace": "nfd", "name": "worker"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "w", "image": "registry.k8s.io/nfd/node-feature-discovery:v0.18"}]}}},
    });
    let expected = [("NG005", "daemonset/nfd/worker"), ("NG006", CNI)];
    finds(&[network(), late(), discovery], &expected);
    let tolerating = |key: &str, taint: &str| {
        let tolerations = json!([{"key": taint, "operator": "Exists"}]);
        with(daemon_set(key), TOLERATIONS, tolerations)
    };
    let each_other = [
        named("a", "one"),
        named("b", "two"),
        tolerating("kube-system/one", "readiness.k8s.io/a"),
        tolerating("kube-system/two", "readiness.k8s.io/b"),
    ];
    finds(&each_other, &[("NG005", "rule/a")]);
}

#[test]
fn faults_of_rules_are_found() {
    finds(&[network()], &[("NG003", "rule/network")]);
    let evicts = with(network(), "/spec/taint/effect", json!("NoExecute"));
    finds(&[evicts, cni()], &[("NG007", "rule/network")]);
    finds(&[named("a", "none")], &[("NG011", "rule/a")]);
    let other = with(network(), "/metadata/name", json!("other"));
    finds(&[network(), cni(), other], &[("NG012", "rule/other")]);
    let empty = with(network(), "/spec/conditions", json!([]));
    finds(&[empty], &[("NG013", "rule/network")]);
    let misspelt = rule("a", "node.gardener.cloud/CriticalPodsReadyy");
    finds(&[misspelt], &[("NG014", "rule/a")]);
    let odd = json!({"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": 1});
    finds(&[odd], &[("NG015", "file.yaml:1")]);
}

#[test]
fn rules_that_mean_something_else_to_the_other_controller_are_found() {
    let upstreams = || rule("r", "Ready");
    let with_spec = |field: &str, value: Value| {
        let mut rule = upstreams();
        rule["spec"][field] = value;
        rule
    };
    let leaving = || with_spec("nodegate", json!({"existingNodes": "Leave"}));
    let mut dry = leaving();
    dry["spec"]["dryRun"] = json!(true);
    let mut held_back = upstreams();
    held_back["status"] = json!({"conditions": [{"type": "HeldBack", "status": "True", "reason": "WouldGateTooMany",
        "message": "", "observedGeneration": 0, "lastTransitionTime": at(0)}]});
    #[rustfmt::skip]
    let cases = [
        (upstreams(), None),
        (dry, None),
        (leaving(), Some("its fields under nodegate")),
        (rule("r", "resource.nodegate.dev/nvidia.com/gpu"), Some("resource.nodegate.dev/nvidia.com/gpu")),
        (rule("r", READY), Some(READY)),
        (with_spec("conditionPolicy", json!("anyOf")), Some("why it changes nothing here")),
        (held_back, Some("why it changes nothing here")),
    ];
    for (rule, expected) in cases {
        let source = ObjectSource::Memory(lists(std::slice::from_ref(&rule)));
        let read = snapshot(&source, None, &Wanted::checkup()).now_or_never();
        let found = upstream(&read.unwrap().unwrap());
        let found: Vec<&str> = found.iter().map(|it| &*it.message).collect();
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
        let says = |it: &&str| it.contains(&format!("does not know {}:", expected.unwrap()));
        assert!(found.iter().all(says), "{found:?}");
    }
}

#[test]
fn what_the_controller_says_of_a_rules_nodes_is_found() {
    for (kind, id) in [("MetByNoNode", "NG024"), ("SelectsNoNode", "NG025")] {
        let mut rule = rule("r", "Ready");
        rule["status"] = json!({"conditions": [{"type": kind, "status": "True", "reason": "A", "message": "none",
            "lastTransitionTime": at(0)}]});
        finds(&[rule], &[(id, "rule/r")]);
    }
}

#[test]
fn of_several_leases_a_live_one_counts_and_two_live_ones_are_an_error() {
    let lease = |namespace: &str, renewed: i64| {
        json!({"kind": "Lease", "metadata": {"namespace": namespace, "name": LEASE},
            "spec": {"holderIdentity": namespace, "leaseDurationSeconds": 15, "renewTime": at(renewed)}})
    };
    for (leases, leader, rival) in [
        ([lease("old", -600), lease("new", -5)], "new", None),
        (
            [lease("a", -5), lease("b", -4)],
            "b",
            Some("a in namespace a"),
        ),
    ] {
        let source = ObjectSource::Memory(lists(&leases));
        let read = snapshot(&source, None, &Wanted::checkup()).now_or_never();
        let found = read.unwrap().unwrap().leader.unwrap();
        assert_eq!(found.namespace, leader);
        assert_eq!(found.rival.as_deref(), rival);
    }
}

#[test]
fn a_driver_that_the_scheduler_waits_for_is_found() {
    let driver = |name: &str, prevents: &Value| json!({"kind": "CSIDriver", "metadata": {"name": name}, "spec": {"preventPodSchedulingIfMissing": prevents}});
    let waits = rule("storage", "csidriver.nodegate.dev/a.csi");
    for (name, prevents, expected) in [
        ("a.csi", json!(true), &[("NG019", "rule/storage")][..]),
        ("a.csi", json!(false), &[]),
        ("a.csi", json!(null), &[]),
        ("b.csi", json!(true), &[]),
    ] {
        finds(&[waits.clone(), driver(name, &prevents)], expected);
    }
}

#[test]
fn a_timeout_below_the_reporters_beat_is_found() {
    let mut impatient = rule("reported", "example.com/Ready");
    impatient["spec"]["enforcementMode"] = json!("continuous");
    impatient["spec"]["nodegate"]["heartbeatTimeout"] = json!("7m");
    let beating = |period: &str| {
        let mut reporter = cni();
        reporter.pointer_mut(POD_SPEC).unwrap()["containers"] = json!([{
        "name": "r", "image": "nodegate", "command": ["/nodegate-reporter"], "env": [
            {"name": "CONDITION_TYPE", "value": "example.com/Ready"},
            {"name": "HEARTBEAT_PERIOD", "value": period},
        ]}]);
        reporter
    };
    let expected = [("NG008", "rule/reported")];
    finds(&[impatient.clone(), beating("10m")], &expected);
    finds(&[impatient, beating("5m")], &[]);
}

#[test]
fn faults_of_node_pools_and_autoscalers_are_found() {
    let pool = |startup: Value| {
        let spec = json!({"template": {"spec": {"startupTaints": startup}}});
        json!({"kind": "NodePool", "metadata": {"name": "default"}, "spec": spec})
    };
    let taint = json!([{"key": "readiness.k8s.io/network", "effect": "NoSchedule"}]);
    let expected = [("NG009", "nodepool/default")];
    finds(&[network(), cni(), pool(json!([]))], &expected);
    finds(&[network(), cni(), pool(taint)], &[]);
    let autoscaler = |flag: &str| {
        let container = json!({"name": "ca", "image": "cluster-autoscaler:v1", "command": ["./cluster-autoscaler", flag]});
        json!({"kind": "Deployment", "metadata": {"namespace": "kube-system", "name": "ca"},
            "spec": {"template": {"spec": {"containers": [container]}}}})
    };
    let expected = [("NG010", "deployment/kube-system/ca")];
    finds(&[network(), cni(), autoscaler("--v=4")], &expected);
    for flag in [
        "--startup-taint=readiness.k8s.io/network",
        "--startup-taint-prefix=readiness.k8s.io/",
    ] {
        finds(&[network(), cni(), autoscaler(flag)], &[]);
    }
}

fn linux(name: &str, taints: &Value) -> Value {
    json!({
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/os": "linux"}},
        "spec": {"taints": taints},
    })
}

#[test]
fn taints_that_no_rule_removes_are_found() {
    let taint =
        |key: &str| json!([{"key": format!("readiness.k8s.io/{key}"), "effect": "NoSchedule"}]);
    let nodes = [
        linux("b", &taint("netwrok")),
        linux("a", &taint("netwrok")),
        linux("c", &taint("network")),
    ];
    let objects = [[network(), cni()].as_slice(), &nodes].concat();
    finds(&objects, &[("NG017", "node/a")]);
    let mut dry = network();
    dry["spec"]["dryRun"] = json!(true);
    let spec = json!({"template": {"spec": {"startupTaints": taint("network")}}});
    let pool = json!({"kind": "NodePool", "metadata": {"name": "default"}, "spec": spec});
    finds(&[dry, cni(), pool], &[("NG017", "nodepool/default")]);
}

#[test]
fn conditions_that_are_met_on_no_node_are_found() {
    let node = || linux("a", &json!([]));
    for kind in [
        "daemonsets.nodegate.dev/a.b",
        "daemon-sets.nodegate.dev/a.b",
        "csidriver.nodegate.dev/",
        "csidriver.nodegate.dev/a.csi",
    ] {
        let driver = json!({"kind": "CSINode", "metadata": {"name": "a", "uid": "a"},
            "spec": {"drivers": [{"name": "b.csi", "nodeID": "a"}]}});
        finds(&[rule("r", kind), node(), driver], &[("NG014", "rule/r")]);
    }
    let mut elsewhere = cni();
    elsewhere.pointer_mut(POD_SPEC).unwrap()["nodeSelector"] = json!({"pool": "none"});
    finds(
        &[named("r", "cni"), elsewhere.clone(), node()],
        &[("NG018", "rule/r")],
    );
    finds(&[named("r", "cni"), elsewhere], &[]);
}

#[test]
fn where_the_api_server_adds_tolerations_an_update_of_the_daemon_set_is_enough() {
    const KEY: &str = "tolerations: [{key: readiness.k8s.io/network, operator: Exists}]";
    const ANNOTATE: &str = "which rolls its pods once, as any change of a template does: kubectl -n kube-system annotate --overwrite \
                            ds/cni nodegate.dev/tolerate=network";
    let blind = with(cni(), TOLERATIONS, json!([]));
    let objects = [network(), blind, linux("a", &json!([]))];
    for (adds_tolerations, expected, not) in [
        (
            false,
            format!("{KEY}, or have the API server add it: config/tolerations"),
            ANNOTATE,
        ),
        (true, ANNOTATE.to_owned(), KEY),
    ] {
        let source = ObjectSource::Memory(lists(&objects));
        let read = snapshot(&source, None, &Wanted::checkup()).now_or_never();
        let mut read = read.unwrap().unwrap();
        read.adds_tolerations = adds_tolerations;
        let rule = read.view.rules().rules()[0].clone();
        let previewed = read.remarks(&rule).unwrap().findings;
        for found in [&check(Vec::new(), &read).findings, &previewed] {
            let found = found.iter().find(|it| it.check == Check::SHUT_OUT);
            let found = found.unwrap();
            assert!(found.fix.ends_with(&expected), "{found:?}");
            assert!(!found.fix.contains(not), "{found:?}");
        }
        // A preview prints messages alone.
        let expected = format!("{expected})");
        let mut messages = previewed.iter().map(|it| &it.message);
        assert!(messages.any(|it| it.ends_with(&expected)), "{previewed:?}");
    }
}

/// What `explain` says of node `a` among these objects.
fn explained(objects: &[Value]) -> String {
    let source = ObjectSource::Memory(lists(objects));
    let read = snapshot(&source, None, &Wanted::of_node("a")).now_or_never();
    let explained = explain_node(&read.unwrap().unwrap(), "a").unwrap();
    explained.text(&Page::plain(at(0)))
}

#[test]
fn pods_that_stand_in_place_of_a_named_daemon_set_are_told_of() {
    let pod = |namespace: &str, name: &str, owners: Value| {
        let metadata = json!({"namespace": namespace, "name": name, "ownerReferences": owners});
        let spec = json!({"nodeName": "a", "containers": []});
        vec![
            json!({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}),
        ]
    };
    let of = |kind: &str, version: &str| {
        let owner = json!({"apiVersion": version, "kind": kind, "name": "proxy", "uid": "u", "controller": true});
        pod("kube-system", "proxy-a", json!([owner]))
    };
    #[rustfmt::skip]
    let cases = [
        ("static", of("Node", "v1"), "static pods"),
        ("OpenKruise", of("DaemonSet", "apps.kruise.io/v1alpha1"), "pods of kind DaemonSet (apps.kruise.io/v1alpha1)"),
        ("bare", pod("kube-system", "proxy-a", json!([])), "pods that nothing controls"),
        ("of a DaemonSet that is gone", of("DaemonSet", "apps/v1"), ""),
        ("of another namespace", pod("other", "proxy-a", json!([])), ""),
        ("of another name", pod("kube-system", "proxying-a", json!([])), ""),
        ("none", vec![], ""),
    ];
    for (what, pods, expected) in cases {
        let mut rule = named("r", "proxy");
        rule["metadata"]["finalizers"] = json!(["readiness.node.x-k8s.io/cleanup-taints"]);
        let objects = [vec![rule, linux("a", &json!([]))], pods].concat();
        let findings = checked(lists(&objects)).findings;
        assert_eq!(findings.len(), 1, "{what}: {findings:?}");
        for said in [&findings[0].message, &explained(&objects)] {
            let says = said.contains("pods of that name are");
            assert_eq!(says, !expected.is_empty(), "{what}: {said}");
            assert!(said.contains(expected), "{what}: {said}");
        }
    }
}

#[test]
fn what_a_class_leaves_out_on_a_node_is_explained_while_another_daemon_set_holds_it() {
    const LEFT_OUT: &str =
        "DaemonSet kube-system/agent does not tolerate the taint dedicated:NoSchedule";
    let tainted = |keys: &[&str]| {
        let taints = keys.iter();
        let taints = taints.map(|key| json!({"key": key, "effect": "NoSchedule"}));
        linux("a", &taints.collect())
    };
    let gated = || tainted(&["readiness.k8s.io/network"]);
    let both = || tainted(&["readiness.k8s.io/network", "dedicated"]);
    let tolerant = json!([{"key": "readiness.k8s.io/network", "operator": "Exists"}]);
    let agent = || {
        with(
            daemon_set("kube-system/agent"),
            TOLERATIONS,
            tolerant.clone(),
        )
    };
    let mut known = agent();
    known["metadata"]["uid"] = json!("u");
    let labels = &known["spec"]["template"]["metadata"]["labels"];
    let pod = json!({"kind": "Pod", "spec": {"nodeName": "a", "containers": []}, "status": {"phase": "Running"},
        "metadata": {"namespace": "kube-system", "name": "agent-a", "labels": labels, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": true}]}});
    let all = || rule("network", "daemonsets.nodegate.dev/all");
    #[rustfmt::skip]
    let cases = [
        ("of a class", network(), both(), vec![agent()], true),
        ("of all", all(), both(), vec![agent()], true),
        ("no such taint", all(), gated(), vec![agent()], false),
        ("its pod runs there", network(), both(), vec![known, pod], false),
    ];
    for (what, mut rule, node, agents, expected) in cases {
        rule["metadata"]["finalizers"] = json!(["readiness.node.x-k8s.io/cleanup-taints"]);
        let text = explained(&[vec![rule, node, cni()], agents].concat());
        let missing = "kube-system/cni ha";
        assert!(text.contains(missing), "{what}: {text}");
        assert_eq!(text.contains(LEFT_OUT), expected, "{what}: {text}");
    }
}

#[test]
fn rules_that_wait_for_a_daemon_set_by_its_class_are_listed_with_it() {
    let without = rule("without", "Ready");
    let mut leaving = network();
    leaving["metadata"]["name"] = "leaving".into();
    leaving["spec"]["conditions"][0]["nodegate"] = json!({"except": ["kube-system/cni"]});
    let objects = [network(), named("named", "cni"), without, leaving, cni()];
    let source = ObjectSource::Memory(lists(&objects));
    let read = snapshot(&source, None, &Wanted::checkup()).now_or_never();
    let read = read.unwrap().unwrap();
    let key = ObjectKey::new("kube-system", "cni");
    let explained = explain_daemon_set(&read, &key);
    let rules: Vec<&str> = explained.rules.iter().map(|it| &**it).collect();
    assert_eq!(rules, ["named", "network"]);
    let checked = read.view.cached_rules().values();
    let checked = checked.filter(|it| {
        let spec = it.rule.spec.as_ref().unwrap();
        read.waits_for(spec, &read.manifests.daemon_sets[0])
    });
    let mut checked: Vec<&str> = checked.map(|it| &*it.rule.name).collect();
    checked.sort_unstable();
    assert_eq!(checked, rules, "check and suggest");
}

#[test]
fn an_object_missing_from_files_is_only_a_warning() {
    let rule = named("a", "none");
    for (objects, expected) in [
        (vec![rule.clone(), cni()], Some(Severity::Warning)),
        // A rule alone says nothing of what there is.
        (vec![rule], None),
    ] {
        let mut files = lists(&objects);
        files.are_files = true;
        let answer = checked(files);
        let found = answer.findings.first();
        assert_eq!(found.map(|it| it.check.severity), expected);
        assert!(!answer.is_no());
    }
}

#[test]
fn an_object_that_could_not_be_read_is_not_reported_as_missing() {
    let objects = [network(), named("a", "none")];
    for (kind, expected) in [
        (ResourceKind::DaemonSets, &[][..]),
        (ResourceKind::ConfigMaps, &["NG011"]),
        (ResourceKind::NodePools, &["NG003", "NG011"]),
    ] {
        let mut lists = lists(&objects);
        lists.missing.push(Gap::failed(kind, "no"));
        let answer = checked(lists);
        let mut found: Vec<_> = answer.findings.iter().map(|it| it.check.id).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{kind:?}");
        let unread = answer.unread.clone().unwrap();
        assert!(unread.contains(kind.name()), "{unread}");
        let text = answer.text(&Page::plain(crate::testing::at(0)));
        assert!(!text.contains("no faults found\n"), "{text}");
    }
}

#[test]
fn a_pool_that_the_rule_is_not_about_needs_no_taint() {
    let mut of_gpus = rule("gpu", READY);
    of_gpus["spec"]["nodeSelector"] = json!({"matchLabels": {"example.com/pool": "gpu"}});
    let pool = json!({"kind": "NodePool", "metadata": {"name": "default"}, "spec": {}});
    let objects = [of_gpus, daemon_set("kube-system/cni"), pool];
    assert_eq!(found(&objects), []);
}

#[test]
fn a_node_that_the_api_server_refuses_to_write_is_named_with_its_words() {
    let failed = json!({
        "nodeName": "n",
        "message": "failed to remove taint: refused by the provider",
        "lastEvaluationTime": "2026-01-01T00:00:00Z",
    });
    let mut rule = rule("r", "Net");
    rule["status"] = json!({"failedNodes": [failed]});
    let answer = checked(lists(&[rule]));
    let [
        Finding {
            check,
            object,
            message,
            ..
        },
    ] = &answer.findings[..]
    else {
        panic!("{answer:?}");
    };
    assert_eq!((check.id, &**object), ("NG016", "rule/r"));
    assert_eq!(
        message,
        "it cannot be applied to some nodes, such as node/n: failed to remove taint: refused by the provider"
    );
}

#[test]
fn the_page_about_it_has_a_heading_for_each_id() {
    let book = include_str!("../../../../docs/kubectl/check.md");
    for Check {
        id,
        severity,
        title,
        ..
    } in Check::ALL
    {
        let word = if *severity == Severity::Error {
            "error"
        } else {
            "warning"
        };
        let heading = format!("\n## {id}\n\n**{title}** ({word}");
        assert!(
            book.contains(&heading),
            "docs/kubectl/check.md lacks {heading}"
        );
    }
    let ids: BTreeSet<&str> = Check::ALL.iter().map(|it| it.id).collect();
    assert_eq!(book.matches("\n## NG").count(), ids.len());
}
