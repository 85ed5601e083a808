//! Starts of nodes as values, from their objects at second 100: the node is created at second 0.

use futures::FutureExt;
use serde_json::{Value, json};

use super::*;
use crate::page::Render;
use crate::read::{Lists, ObjectSource, put, snapshot as read};
use crate::snapshot::Wanted;
use crate::testing::{Builder, GATE, at, daemon_set, node, rule};

const CNI: &str = "daemonset.nodegate.dev/kube-system.cni";
const CRITICAL: &str = "node.gardener.cloud/critical-component";
const DRIVER: &str = "csidriver.nodegate.dev/ebs.csi.aws.com";

fn turned(kind: &str, second: i64) -> Value {
    json!({"type": kind, "status": "True", "lastTransitionTime": at(second)})
}

/// A pod of `kube-system/cni` on node n: when it was created, bound, started and Ready, as far as it was.
fn pod(seconds: [Option<i64>; 4]) -> Value {
    let [created, bound, started, ready] = seconds;
    let named = [("PodScheduled", bound), ("Ready", ready)].into_iter();
    let conditions = named.filter_map(|(kind, second)| Some(turned(kind, second?)));
    let state = started.map(|second| json!({"running": {"startedAt": at(second)}}));
    json!({
        "kind": "Pod",
        "metadata": {"namespace": "kube-system", "name": "cni-x7k2p", "labels": {"app": "cni", CRITICAL: "true"},
            "creationTimestamp": created.map(at), "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "cni-uid", "controller": true}]},
        "spec": {"nodeName": "n", "containers": [{"name": "agent", "readinessProbe": {"periodSeconds": 10}}]},
        "status": {"phase": "Running", "conditions": conditions.collect::<Vec<_>>(), "containerStatuses": [
            {"name": "agent", "ready": true, "restartCount": 0, "image": "", "imageID": "", "state": state}]},
    })
}

fn event(reason: &str, note: &str, second: i64) -> Value {
    json!({"kind": "Event", "metadata": {"namespace": "default", "name": format!("{reason}.{second}")},
        "reason": reason, "message": note, "eventTime": at(second).to_string().replace('Z', ".000000Z"),
        "involvedObject": {"kind": "Node", "name": "n"}})
}

fn removed(second: i64) -> Value {
    let note = "Taint 'readiness.k8s.io/gate:NoSchedule' removed by rule 'r'";
    event("TaintRemoved", note, second)
}

/// What is read of node n, created at second 0, under a rule that waits for these, beside these objects.
fn seen(waits_for: &[&str], held: bool, conditions: &[Value], objects: &[Value]) -> Snapshot {
    let waiting = waits_for.iter();
    let mut rule = waiting.fold(rule("r").bootstrap_only(), |it, kind| it.waits_for(kind));
    let mut node = node("n").created(at(0));
    for condition in conditions {
        node = node.condition_with(condition.clone());
    }
    let mut node = if held {
        node.taint(GATE, "NoSchedule")
    } else {
        node.completed("r-uid")
    };
    let mut cni = daemon_set("kube-system/cni").selecting("app", "cni");
    cni = cni.critical().toleration("{operator: Exists}");
    let mut drivers = crate::testing::csi_node("n").driver("ebs.csi.aws.com");
    let known = [
        ("NodeReadinessRule", rule.json().clone()),
        ("Node", node.json().clone()),
        ("DaemonSet", cni.json().clone()),
        ("CSINode", drivers.json().clone()),
    ];
    let mut lists = Lists::of(at(100), BTreeMap::new());
    for (kind, mut object) in known {
        object["kind"] = kind.into();
        put(&mut lists, object, "file.yaml:1");
    }
    for object in objects {
        put(&mut lists, object.clone(), "file.yaml:1");
    }
    let wanted = Wanted {
        starts: true,
        ..Wanted::of_node("n")
    };
    let source = ObjectSource::Memory(lists);
    read(&source, None, &wanted)
        .now_or_never()
        .unwrap()
        .unwrap()
}

/// The phases of the pod in seconds, and the note.
fn of_cni(snapshot: &Snapshot) -> String {
    let start = startup(snapshot, "n").unwrap();
    let mut all = start.components.iter();
    let it = all.find(|it| it.component == "kube-system/cni").unwrap();
    let phases = it.phases.iter().map(|(phase, ends)| {
        let [from, until] = ends.map(|it| seconds((start.created, it)));
        format!("{phase:?} {from}-{until} ")
    });
    phases.collect::<String>() + &it.note()
}

#[test]
fn each_phase_counts_whose_ends_are_known() {
    #[rustfmt::skip]
    let cases = [
        ("all", [Some(1), Some(2), Some(10), Some(28)], false,
            "Scheduled 1-2 Prepared 2-10 Started 10-28 18s from start to Ready; probed every 10s"),
        ("binding unknown", [Some(1), None, Some(10), Some(28)], false,
            "Started 10-28 18s from start to Ready; probed every 10s"),
        ("start unknown", [Some(1), Some(2), None, Some(28)], false, "Scheduled 1-2 probed every 10s"),
        ("not bound yet", [Some(1), None, None, None], true, "Scheduled 1-100 probed every 10s"),
        ("not started yet", [Some(1), Some(2), None, None], true, "Scheduled 1-2 Prepared 2-100 probed every 10s"),
        ("not Ready yet", [Some(1), Some(2), Some(9), None], true,
            "Scheduled 1-2 Prepared 2-9 Started 9-100 probed every 10s"),
        ("not Ready any more", [Some(1), Some(2), Some(9), None], false, "Scheduled 1-2 Prepared 2-9 "),
        ("a kubelet's clock behind", [Some(10), Some(11), Some(5), Some(28)], false,
            "Scheduled 10-11 Started 5-28 older than the node, or clocks differ; 23s from start to Ready; probed every 10s"),
        ("older than the node", [Some(-9), Some(-8), Some(-5), Some(28)], false,
            "older than the node, or clocks differ; probed every 10s"),
        ("restarted since", [Some(1), Some(2), Some(60), Some(70)], false, "restarted or changed since"),
    ];
    for (what, seconds, held, expected) in cases {
        let snapshot = seen(
            &[CNI],
            held,
            &[turned("Ready", 4)],
            &[pod(seconds), removed(41)],
        );
        assert_eq!(of_cni(&snapshot), expected, "{what}");
    }
}

#[test]
fn a_pod_that_restarted_before_the_release_says_so() {
    let mut restarted = pod([Some(1), Some(2), Some(20), Some(28)]);
    restarted["status"]["containerStatuses"][0]["restartCount"] = 2.into();
    let conditions = restarted["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(turned("Initialized", 7));
    restarted["spec"]["initContainers"] = json!([{"name": "install"}]);
    let snapshot = seen(&[CNI], false, &[], &[restarted, removed(41)]);
    let expected = "Scheduled 1-2 Started 20-28 5s until its init containers had ended; restarts: 2; \
                    8s from start to Ready; probed every 10s";
    assert_eq!(of_cni(&snapshot), expected);
}

#[test]
fn the_release_is_the_first_one_by_every_rule_as_far_as_events_are_left() {
    let other = |second| event("TaintRemoved", "Taint 'b' removed by rule 'b'", second);
    let added = |second| event("TaintAdded", "Taint 'b' added by rule 'b'", second);
    for (what, events, expected) in [
        ("none is left", vec![], None),
        ("one rule", vec![removed(41)], Some(at(41))),
        ("two rules", vec![removed(41), other(50)], Some(at(50))),
        (
            "gated again",
            vec![other(50), removed(41), added(80), other(90)],
            Some(at(50)),
        ),
        ("only later ones are left", vec![added(80), other(90)], None),
        ("of an earlier node", vec![removed(-5)], None),
    ] {
        let snapshot = seen(&[CNI], false, &[], &events);
        let start = startup(&snapshot, "n").unwrap();
        assert_eq!((start.released, start.held), (expected, false), "{what}");
    }
    let later = pod([Some(1), Some(2), Some(60), Some(70)]);
    let unknown = startup(&seen(&[CNI], false, &[], &[later, removed(41)]), "n").unwrap();
    assert_eq!((unknown.released, unknown.last), (Some(at(41)), None));
    let held = startup(&seen(&[CNI], true, &[], &[removed(41)]), "n").unwrap();
    assert_eq!((held.released, held.last), (None, None));
}

#[test]
fn a_class_is_told_by_its_pods_and_by_its_condition_where_that_is_about_drivers_too() {
    for (asks, expected) in [
        ("CriticalPodsReady", "Ready kube-system/cni"),
        (
            "CriticalComponentsReady",
            "Ready kube-system/cni node.gardener.cloud/CriticalComponentsReady",
        ),
    ] {
        let asks = format!("node.gardener.cloud/{asks}");
        let conditions = [turned("Ready", 4), turned(&asks, 29)];
        let pod = pod([Some(0), Some(1), Some(9), Some(28)]);
        let snapshot = seen(&[&asks], false, &conditions, &[pod, removed(29)]);
        let start = startup(&snapshot, "n").unwrap();
        let all = start.components.iter().map(|it| &*it.component);
        assert_eq!(all.collect::<Vec<_>>().join(" "), expected);
        assert_eq!(start.last.as_deref(), Some("kube-system/cni"), "{asks}");
    }
}

/// The starts of one node whose driver came last.
pub(crate) fn drawn() -> Startups {
    startups(&whole(), 100)
}

fn whole() -> Snapshot {
    let mut cni = pod([Some(0), Some(1), Some(9), Some(28)]);
    cni["spec"]["volumes"] = json!([{"name": "plugin", "hostPath": {"path": "/var/lib/kubelet/plugins/ebs.csi.aws.com/"}}]);
    let conditions = [turned("Ready", 4), turned(DRIVER, 41), turned(CNI, 29)];
    seen(&[CNI, DRIVER], false, &conditions, &[cni, removed(41)])
}

#[test]
fn a_start_is_drawn_to_the_width_of_the_page_with_numbers_beside() {
    let start = startup(&whole(), "n").unwrap();
    let expected = "\
node/n  released 41s after it was created, 59s ago
                                       0s        10s       20s       30s       40s
kubelet Ready                     4s   ████
daemonset/cni -n kube-system     28s   ░▒▒▒▒▒▒▒▒███████████████████                         19s from start to Ready; probed every 10s
csidriver ebs.csi.aws.com        41s                               ·············            13s after its pod was Ready
last: csidriver ebs.csi.aws.com
░ scheduled  ▒ images and init containers  █ started, not Ready yet  · waiting for something else
";
    assert_eq!(start.text(&Page::plain(at(100))), expected);
    let narrow = Page {
        width: Some(110),
        ascii: true,
        ..Page::plain(at(100))
    };
    let expected = "\
node/n  released 41s after it was created, 59s ago
                                       0s        20s       40s
kubelet Ready                     4s   ##
daemonset/cni -n kube-system     28s   ====##########                   19s from start to Ready; probed every 10s
csidriver ebs.csi.aws.com        41s                 ......             13s after its pod was Ready
last: csidriver ebs.csi.aws.com
: scheduled  = images and init containers  # started, not Ready yet  . waiting for something else
";
    assert_eq!(start.text(&narrow), expected);
    let text = start.text(&Page {
        width: Some(80),
        ..narrow
    });
    let note = "\ncsidriver ebs.csi.aws.com: 13s after its pod was Ready\n";
    assert!(text.contains(note), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn what_most_nodes_waited_for_last_comes_first_with_what_it_costs() {
    let starts = drawn();
    let text = starts.text(&Page::plain(at(100)));
    let expected = "\
1 node that joined last: 1 released, 0 held, 0 without an Event of the release
COMPONENT         LAST   IMAGES   START     PROBE     WHOLE     GAIN
ebs.csi.aws.com   1      -        -         -         41s/41s   13s/13s
Ready             0      -        4s/4s     -         4s/4s     -
kube-system/cni   0      8s/8s    19s/19s   10s/10s   28s/28s   -
ebs.csi.aws.com was last on 1 of 1 node; if it took no time, up to 13s (median)
";
    assert_eq!(text, expected);
    let json = serde_json::to_value(starts.typed()).unwrap();
    let cni = &json["nodes"][0]["components"][1];
    let started = json!([at(9), at(28)]);
    assert_eq!(
        (&cni["component"], &cni["phases"]["started"]),
        (&json!("kube-system/cni"), &started)
    );
    assert_eq!(json["components"][0]["parts"]["gain"], json!([13, 13]));
    let mut late = pod([Some(0), Some(1), Some(9), Some(40)]);
    late["spec"]["containers"][0]["readinessProbe"]["periodSeconds"] = 30.into();
    let snapshot = seen(&[CNI], false, &[turned("Ready", 4)], &[late, removed(41)]);
    let text = startups(&snapshot, 100).text(&Page::plain(at(100)));
    let expected = "kube-system/cni was last on 1 of 1 node; without its wait for the next probe (median at most \
                    30s) these would be up to 30s faster; if it took no time, up to 36s (median)\n";
    assert!(text.ends_with(expected), "{text}");
    assert!(startups(&snapshot, 0).nodes.is_empty());
}
