//! Each fault is found where it is, and nothing where there is none.

use super::*;
use crate::cli::answer::Answer;
use crate::cli::page::Page;
use crate::config::Config;
use crate::testing::at;
use serde_json::{Value, json};

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

/// A `DaemonSet` that is as it should be.
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
                "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": name}]},
            },
        },
    })
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    *object.pointer_mut(path).unwrap() = value;
    object
}

fn inventory(objects: &[Value]) -> Inventory {
    let mut inventory = Inventory {
        classes: Config::default().classes().unwrap(),
        ..Inventory::default()
    };
    for object in objects {
        let kind = object["kind"].as_str().unwrap();
        inventory.take(kind, object.clone(), "file.yaml:1");
    }
    inventory
}

fn found(objects: &[Value]) -> Vec<(&'static str, String)> {
    let findings = lint(&inventory(objects)).findings.into_iter();
    findings.map(|fault| (fault.id, fault.object)).collect()
}

#[test]
fn nothing_is_found_where_there_is_nothing() {
    let objects = [rule("network", READY), daemon_set("kube-system/cni")];
    assert_eq!(found(&objects), []);
}

#[test]
fn each_fault_is_found_where_it_is() {
    let good = || daemon_set("kube-system/cni");
    let spec = "/spec/template/spec";
    let blind = || with(good(), "/spec/template/spec/tolerations", json!([]));
    let class_rule = || rule("network", READY);
    let late = |object: Value| {
        let mut object = object;
        object.pointer_mut(spec).unwrap()["nodeSelector"] =
            json!({"nvidia.com/gpu.present": "true"});
        object
    };
    let discovery = json!({
        "kind": "DaemonSet",
        "metadata": {"namespace": "nfd", "name": "worker"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "w", "image": "registry.k8s.io/nfd/node-feature-discovery:v0.18"}]}}},
    });
    let keyed = |key: &str, taint: &str| {
        let tolerations = json!([{"key": taint, "operator": "Exists"}]);
        with(
            daemon_set(key),
            "/spec/template/spec/tolerations",
            tolerations,
        )
    };
    let named = |name: &str, daemon_set: &str| {
        rule(
            name,
            &format!("daemonset.nodegate.dev/kube-system.{daemon_set}"),
        )
    };
    let mut impatient = rule("reported", "example.com/Ready");
    impatient["spec"]["enforcementMode"] = json!("continuous");
    impatient["spec"]["heartbeatTimeout"] = json!("7m");
    let mut reporter = good();
    reporter.pointer_mut(spec).unwrap()["containers"] = json!([{"name": "r", "image": "nodegate", "args": ["reporter"],
        "env": [{"name": "CONDITION_TYPE", "value": "example.com/Ready"}, {"name": "HEARTBEAT_PERIOD", "value": "10m"}]}]);
    let pool = |startup: Value| json!({"kind": "NodePool", "metadata": {"name": "default"}, "spec": {"template": {"spec": {"startupTaints": startup}}}});
    let autoscaler = |flag: &str| {
        json!({"kind": "Deployment", "metadata": {"namespace": "kube-system", "name": "ca"}, "spec": {"template": {"spec": {
            "containers": [{"name": "ca", "image": "cluster-autoscaler:v1", "command": ["./cluster-autoscaler", flag]}]}}}})
    };
    let network = || "readiness.k8s.io/network";
    let cases: Vec<(Vec<Value>, Vec<(&str, &str)>)> = vec![
        (
            vec![class_rule(), with(good(), "/metadata/labels", json!({}))],
            vec![
                ("NG001", "daemonset/kube-system/cni"),
                ("NG003", "rule/network"),
            ],
        ),
        (
            vec![class_rule(), blind()],
            vec![("NG002", "daemonset/kube-system/cni")],
        ),
        (vec![class_rule()], vec![("NG003", "rule/network")]),
        (
            vec![class_rule(), good(), daemon_set("tenant/agent")],
            vec![("NG004", "daemonset/tenant/agent")],
        ),
        (
            vec![class_rule(), late(good()), discovery],
            vec![
                ("NG005", "daemonset/nfd/worker"),
                ("NG006", "daemonset/kube-system/cni"),
            ],
        ),
        (
            vec![
                named("a", "one"),
                named("b", "two"),
                keyed("kube-system/one", "readiness.k8s.io/a"),
                keyed("kube-system/two", "readiness.k8s.io/b"),
            ],
            vec![("NG005", "rule/a")],
        ),
        (
            vec![class_rule(), late(good())],
            vec![("NG006", "daemonset/kube-system/cni")],
        ),
        (
            vec![
                with(class_rule(), "/spec/taint/effect", json!("NoExecute")),
                good(),
            ],
            vec![("NG007", "rule/network")],
        ),
        (vec![impatient, reporter], vec![("NG008", "rule/reported")]),
        (
            vec![class_rule(), good(), pool(json!([]))],
            vec![("NG009", "nodepool/default")],
        ),
        (
            vec![
                class_rule(),
                good(),
                pool(json!([{"key": network(), "effect": "NoSchedule"}])),
            ],
            vec![],
        ),
        (
            vec![class_rule(), good(), autoscaler("--v=4")],
            vec![("NG010", "deployment/kube-system/ca")],
        ),
        (
            vec![
                class_rule(),
                good(),
                autoscaler("--startup-taint=readiness.k8s.io/network"),
            ],
            vec![],
        ),
        (
            vec![
                class_rule(),
                good(),
                autoscaler("--startup-taint-prefix=readiness.k8s.io/"),
            ],
            vec![],
        ),
        (vec![named("a", "none")], vec![("NG011", "rule/a")]),
        (
            vec![
                class_rule(),
                good(),
                with(class_rule(), "/metadata/name", json!("other")),
            ],
            vec![("NG012", "rule/other")],
        ),
        (
            vec![with(class_rule(), "/spec/conditions", json!([]))],
            vec![("NG013", "rule/network")],
        ),
        (
            vec![rule("a", "node.gardener.cloud/CriticalPodsReadyy")],
            vec![("NG014", "rule/a")],
        ),
        (
            vec![json!({"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": 1})],
            vec![("NG015", "file.yaml:1")],
        ),
    ];
    for (objects, expected) in cases {
        let expected: Vec<_> = expected
            .iter()
            .map(|(id, object)| (*id, (*object).to_owned()))
            .collect();
        assert_eq!(found(&objects), expected, "{objects:#?}");
    }
}

#[test]
fn what_is_not_among_files_may_be_elsewhere() {
    let mut files = inventory(&[rule("a", "daemonset.nodegate.dev/kube-system.none")]);
    files.is_of_files = true;
    let answer = lint(&files);
    assert_eq!(
        (answer.findings[0].severity, answer.is_no()),
        (Severity::Warning, false)
    );
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
fn the_page_about_it_has_a_heading_for_each_id() {
    let book = include_str!("../../../docs/lint.md");
    for (check, id, severity, title) in Check::ALL {
        let word = if severity == Severity::Error {
            "error"
        } else {
            "warning"
        };
        let heading = format!("\n## {id}\n\n**{title}** ({word}");
        assert!(book.contains(&heading), "docs/lint.md lacks {heading}");
        assert_eq!((check.id(), check.title()), (id, title));
    }
    assert_eq!(book.matches("\n## NG").count(), Check::ALL.len());
    let blind = with(
        daemon_set("kube-system/cni"),
        "/spec/template/spec/tolerations",
        json!([]),
    );
    let pool = json!({"kind": "NodePool", "metadata": {"name": "default"}, "spec": {}});
    let printed =
        lint(&inventory(&[rule("network", READY), blind, pool])).text(&Page::plain(at(0)));
    assert!(book.contains(&printed), "docs/lint.md lacks\n{printed}");
}
