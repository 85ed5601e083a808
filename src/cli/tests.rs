//! What the commands print about one fleet at usual widths, as `golden/` has it. `UPDATE_GOLDEN=1` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use futures::FutureExt;
use serde::Serialize;
use serde_json::{Value, json};

use super::check::check;
use super::explain::{explain_node, explain_pod, explain_rule};
use super::page::{Page, Render};
use super::preview;
use super::read::{Lists, ObjectSource, snapshot, with_rules};
use super::rows::rows;
use super::snapshot::{PendingPod, Snapshot, Wanted};
use super::status::status;
use crate::testing::{Builder, PodBuilder, RuleBuilder, at, csi_node, daemon_set, node, pod, rule};
use nodegate_cluster::ResourceKind;
use nodegate_core::api::names;
use nodegate_core::config::{Config, RunsWith};
use nodegate_core::guard::Limits;

/// The widths that are checked, and that of the golden files.
const WIDTHS: [usize; 4] = [80, 100, 120, 200];
const GOLDEN: usize = 80;
/// When the fleet is looked at.
const NOW: i64 = 600;

const CILIUM: &str = "daemonset.nodegate.dev/kube-system.cilium";
const EBS: &str = "csidriver.nodegate.dev/ebs.csi.aws.com";
const HELD: &str = "ip-10-0-12-34.eu-central-1.compute.internal";
const JOINING: &str = "ip-10-0-12-35.eu-central-1.compute.internal";
const RELEASED: &str = "ip-10-0-12-36.eu-central-1.compute.internal";

fn on(rule: RuleBuilder, key: &str, condition: &str) -> RuleBuilder {
    let rule = rule.taint(&format!("readiness.k8s.io/{key}"), "NoSchedule");
    rule.waits_for(condition)
}

/// A pod whose container is killed again and again.
fn crashing(mut pod: PodBuilder) -> PodBuilder {
    let container = json!({
        "name": "cilium-agent", "ready": false, "restartCount": 7, "image": "", "imageID": "",
        "state": {"waiting": {"reason": "CrashLoopBackOff",
            "message": "back-off 5m0s restarting failed container=cilium-agent"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    });
    pod.json()["spec"]["containers"] = json!([{"name": "cilium-agent"}]);
    pod.json()["status"] = json!({"phase": "Running", "containerStatuses": [container], "conditions": [
        {"type": "Ready", "status": "False", "lastTransitionTime": at(30)}]});
    pod
}

fn pending() -> PendingPod {
    let pod = json!({
        "metadata": {"namespace": "shop", "name": "checkout-6d5f7c9b8-x2x9z", "creationTimestamp": at(NOW - 90)},
        "spec": {"nodeSelector": {"kubernetes.io/os": "linux", "example.com/pool": "general"},
            "containers": [{"name": "web", "image": "example.com/shop"}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available"}]},
    });
    PendingPod::read(&pod.to_string()).unwrap()
}

fn texts<B: Builder>(all: &mut [B]) -> Vec<String> {
    all.iter_mut().map(|it| it.json().to_string()).collect()
}

/// One node whose network crashes, one whose storage has not come yet, and one that is not held.
fn fleet() -> ObjectSource {
    let cilium = daemon_set("kube-system/cilium").selecting("k8s-app", "cilium");
    let mut cilium = cilium.toleration("operator: Exists");
    let mut proxy = daemon_set("kube-system/kube-proxy").selecting("k8s-app", "kube-proxy");
    proxy = proxy.label("node.gardener.cloud/critical-component", "true");
    let mut rules = [
        on(rule("network"), "network", CILIUM),
        on(rule("storage").bootstrap_only(), "storage", EBS),
        on(
            rule("gpu-devices").dry_run(),
            "gpu",
            "resource.nodegate.dev/nvidia.com/gpu",
        ),
    ];
    let general = |name: &str| node(name).label("example.com/pool", "general");
    let held = |name: &str, key: &str| {
        general(name).dated_taint(&format!("readiness.k8s.io/{key}"), "NoSchedule")
    };
    let mut nodes = [
        held(HELD, "network").completed("storage-uid"),
        held(JOINING, "storage"),
        general(RELEASED).completed("storage-uid"),
    ];
    let mut pods = [
        crashing(pod("kube-system/cilium-7h2kd").of(&cilium).on(HELD)),
        pod("kube-system/cilium-9fbqd")
            .of(&cilium)
            .on(JOINING)
            .ready(),
        pod("kube-system/cilium-x7k2p")
            .of(&cilium)
            .on(RELEASED)
            .ready(),
    ];
    let mut drivers = [
        csi_node(HELD).driver("ebs.csi.aws.com"),
        csi_node(JOINING),
        csi_node(RELEASED).driver("ebs.csi.aws.com"),
    ];
    let controller = json!({
        "metadata": {"namespace": "nrr-system", "name": "nrr-controller-manager-7c6b9d5f48-l2xq7",
            "labels": {"control-plane": "controller-manager"}},
        "spec": {"nodeName": RELEASED, "containers": [{"name": "manager", "image": "example.com/nodegate:0.1.0"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let (config, limits) = (Config::default(), Limits::default());
    let runs_with = RunsWith { config, limits }.text();
    let lease = json!({
        "metadata": {"namespace": "nrr-system", "name": names::LEASE, "annotations": {names::RUNS_WITH: runs_with}},
        "spec": {"holderIdentity": "nrr-controller-manager-7c6b9d5f48-l2xq7_1-18f", "leaseDurationSeconds": 15,
            "renewTime": at(NOW - 1)},
    });
    let pool = json!({"metadata": {"name": "general"}, "spec": {"template": {"spec": {}}}});
    let text = |object: &Value| vec![object.to_string()];
    let mut pods = texts(&mut pods);
    pods.extend(text(&controller));
    let mut objects = BTreeMap::new();
    objects.insert(ResourceKind::Rules, texts(&mut rules));
    objects.insert(ResourceKind::Nodes, texts(&mut nodes));
    objects.insert(ResourceKind::Pods, pods);
    objects.insert(ResourceKind::CsiNodes, texts(&mut drivers));
    let daemon_sets = [
        texts(std::slice::from_mut(&mut cilium)),
        texts(std::slice::from_mut(&mut proxy)),
    ];
    objects.insert(ResourceKind::DaemonSets, daemon_sets.concat());
    objects.insert(ResourceKind::Leases, text(&lease));
    objects.insert(ResourceKind::NodePools, text(&pool));
    ObjectSource::Memory(Lists::of(at(NOW), objects))
}

fn read(source: &ObjectSource, wanted: &Wanted) -> Snapshot {
    let classes = Config::default().classes().unwrap();
    let read = snapshot(source, Some((classes, Vec::new())), wanted).now_or_never();
    read.unwrap().unwrap()
}

/// What a rule that two nodes do not fulfil would do.
fn previewed(source: &ObjectSource) -> preview::Preview {
    let file = (
        "rule.yaml".into(),
        "{apiVersion: readiness.node.x-k8s.io/v1alpha1, kind: NodeReadinessRule, metadata: {name: security}, spec: {\
            enforcementMode: bootstrap-only, conditions: [{type: example.com/RuntimeSecurityAgentReady, requiredStatus: 'True'}], \
            taint: {key: readiness.k8s.io/security, effect: NoSchedule}, nodeSelector: {matchLabels: {kubernetes.io/os: linux}}}}"
            .into(),
    );
    let written = preview::rules(&[file]).unwrap();
    let read = read(source, &Wanted::default());
    let before = rows(&read);
    let rules = written.iter().map(|it| it.applied(at(NOW)));
    let after = with_rules(source, read, rules.collect()).now_or_never();
    preview::preview(&before, &after.unwrap().unwrap(), &written, &[Ok(None)])
}

/// What each command prints at this width.
fn printed(width: Option<usize>) -> Vec<(&'static str, String)> {
    let source = fleet();
    let page = Page {
        width,
        ..Page::plain(at(NOW))
    };
    let all = read(&source, &Wanted::status());
    let of_node = read(&source, &Wanted::of_node(HELD));
    let of_released = read(&source, &Wanted::of_node(RELEASED));
    let checkup = read(&source, &Wanted::checkup());
    vec![
        ("status", status(&all).text(&page)),
        (
            "explain-node",
            explain_node(&of_node, HELD).unwrap().text(&page),
        ),
        (
            "explain-not-held",
            explain_node(&of_released, RELEASED).unwrap().text(&page),
        ),
        (
            "explain-rule",
            explain_rule(&all, "network").unwrap().text(&page),
        ),
        ("explain-pod", explain_pod(&all, &pending()).text(&page)),
        ("preview", previewed(&source).text(&page)),
        ("check", check(Vec::new(), &checkup).text(&page)),
    ]
}

fn json(answer: impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap()
}

/// The fields of an answer, and of the first of each of its lists that the page explains.
fn fields(answer: &Value) -> BTreeSet<String> {
    let lists = ["rules", "held", "gates", "findings"];
    let firsts = lists.iter().map(|list| &answer[list][0]);
    let objects = firsts.chain([answer]).filter_map(Value::as_object);
    objects.flat_map(|it| it.keys().cloned()).collect()
}

#[test]
fn the_page_names_every_field_of_an_answer() {
    let source = fleet();
    let all = read(&source, &Wanted::status());
    let of_node = read(&source, &Wanted::of_node(HELD));
    let checkup = read(&source, &Wanted::checkup());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kubectl.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("## In scripts").unwrap();
    let (section, _) = section.split_once("| exit code").unwrap();
    let known: BTreeSet<&str> = section.split(['`', '[']).collect();
    for (command, answer) in [
        ("explain node", json(explain_node(&of_node, HELD))),
        ("explain pod", json(explain_pod(&all, &pending()))),
        ("explain rule", json(explain_rule(&all, "network"))),
        ("status", json(status(&all))),
        ("preview", json(previewed(&source))),
        ("check", json(check(Vec::new(), &checkup))),
    ] {
        let row = format!("| `{command}` |");
        assert!(section.contains(&row), "docs/kubectl.md has no {row}");
        for field in fields(&answer) {
            assert!(known.contains(&*field), "docs/kubectl.md: {row} no {field}");
        }
    }
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

#[test]
fn nothing_is_wider_than_the_page_nor_broken_within_a_word() {
    let unbroken = printed(None);
    let whole: String = unbroken.iter().map(|(_, text)| text.as_str()).collect();
    let mut known = words(&whole);
    known.insert("│");
    for width in WIDTHS {
        for (command, text) in printed(Some(width)) {
            for line in text.lines() {
                assert!(
                    line.chars().count() <= width,
                    "{command} at {width}: {line}"
                );
            }
            let broken = words(&text).into_iter();
            let broken: Vec<_> = broken.filter(|word| !known.contains(word)).collect();
            assert!(
                broken.is_empty(),
                "{command} at {width}: {broken:?}\n{text}"
            );
        }
    }
}

#[test]
fn what_is_printed_is_as_the_golden_files_have_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    for (command, text) in printed(Some(GOLDEN)) {
        let path = folder.join(format!("{command}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(golden, text, "{}", path.display());
    }
}
