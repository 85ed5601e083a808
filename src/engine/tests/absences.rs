//! Labels and `DaemonSet`s that go for a moment.

use serde_json::{Value, json};

use super::Bench;
use crate::testing::{
    Builder, DaemonSetBuilder, GATE, PodBuilder, RuleBuilder, daemon_set, node, pod, rule,
};
use nodegate_core::condition::{ComponentGroup, Watch};

const PODS: Watch = Watch::Pods(ComponentGroup::Class(0));
const DAEMON_SETS: Watch = Watch::DaemonSets(ComponentGroup::Class(0));
const LABEL: &str = "feature.node.kubernetes.io/gpu";

fn driver() -> DaemonSetBuilder {
    let driver = daemon_set("kube-system/driver").critical();
    driver
        .node_selector(LABEL, "true")
        .toleration("{operator: Exists}")
}

fn driver_pod() -> PodBuilder {
    pod("kube-system/driver-1").of(&driver()).on("n")
}

fn critical() -> RuleBuilder {
    rule("r").waits_for("node.gardener.cloud/CriticalComponentsReady")
}

/// A class's `DaemonSet` and its pod, on a node with its label.
fn bench(rule: &RuleBuilder, pod: &PodBuilder) -> Bench {
    let node = node("n").label(LABEL, "true");
    let mut bench = Bench::of(&super::settings());
    for (watch, mut object) in [
        (DAEMON_SETS, driver().json().clone()),
        (PODS, pod.clone().json().clone()),
    ] {
        object["metadata"]["resourceVersion"] = json!("1");
        bench.cluster.put(watch, object);
    }
    bench.begin(std::slice::from_ref(rule), &[node]);
    bench.wait(3000);
    bench
}

/// A labeller takes its label off, or puts it on.
fn labels(bench: &mut Bench, value: Value) {
    bench.change("n", |node| node["metadata"]["labels"][LABEL] = value);
}

fn no_label(bench: &mut Bench) {
    bench.change("n", |node| {
        let labels = node["metadata"]["labels"].as_object_mut();
        labels.unwrap().remove(LABEL);
    });
}

#[test]
fn a_labeller_that_restarts_neither_releases_nor_gates() {
    let ready = driver_pod().ready();
    for (pod, taints) in [(driver_pod(), &[GATE][..]), (ready, &[])] {
        let mut bench = bench(&critical(), &pod);
        assert_eq!(bench.taints("n"), taints);
        bench.asked();
        no_label(&mut bench);
        bench.shows_gone(PODS, "driver-1");
        bench.wait(3000);
        labels(&mut bench, json!("true"));
        assert_eq!(bench.taints("n"), taints);
        bench.shows(PODS, pod.clone().json().clone());
        bench.wait(600_000);
        assert_eq!(bench.taints("n"), taints);
        let asked = bench.asked();
        let writes = asked.iter().filter(|it| *it == "node n");
        assert_eq!(writes.count(), 0, "{asked:?}");
    }
}

#[test]
fn labels_that_do_not_come_back_count_as_gone_after_five_minutes() {
    let mut bench = bench(&critical(), &driver_pod());
    no_label(&mut bench);
    bench.shows_gone(PODS, "driver-1");
    bench.wait(295_000);
    assert_eq!(bench.taints("n"), [GATE]);
    bench.wait(6000);
    assert_eq!(bench.taints("n"), [""; 0]);
}

#[test]
fn a_rule_holds_what_it_held_while_the_label_that_it_selects_by_is_gone() {
    for (back, is_held) in [(true, true), (false, false)] {
        let of_label = critical().selects(LABEL, "true");
        let mut bench = bench(&of_label, &driver_pod());
        assert_eq!(bench.taints("n"), [GATE]);
        no_label(&mut bench);
        bench.wait(3000);
        assert_eq!(bench.taints("n"), [GATE]);
        assert_eq!(bench.held_and_released("r"), [Some(1), Some(0)]);
        if back {
            labels(&mut bench, json!("true"));
        }
        bench.wait(400_000);
        assert_eq!(!bench.taints("n").is_empty(), is_held, "{back}");
    }
}

#[test]
fn a_pod_that_is_ready_releases_at_once_while_labels_are_gone() {
    let mut bench = bench(&critical(), &driver_pod());
    no_label(&mut bench);
    bench.wait(3000);
    assert_eq!(bench.taints("n"), [GATE]);
    bench.shows(PODS, driver_pod().ready().json().clone());
    bench.wait(100);
    assert_eq!(bench.taints("n"), [""; 0]);
}

#[test]
fn a_class_that_is_deleted_and_made_again_releases_nothing() {
    let mut bench = bench(&critical(), &driver_pod());
    bench.shows_gone(PODS, "driver-1");
    bench.shows_gone(DAEMON_SETS, "driver");
    bench.wait(5000);
    bench.shows(DAEMON_SETS, driver().json().clone());
    bench.wait(60_000);
    assert_eq!(bench.taints("n"), [GATE]);
    bench.shows_gone(DAEMON_SETS, "driver");
    bench.wait(14_900);
    assert_eq!(bench.taints("n"), [GATE]);
    bench.wait(200);
    assert_eq!(bench.taints("n"), [""; 0], "it is gone for good");
}
