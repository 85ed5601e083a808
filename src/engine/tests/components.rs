//! Pods, `DaemonSet`s and `CSINode`s of critical components.

use super::Bench;
use crate::survey::CACHE_OBJECTS;
use crate::testing::{Builder, GATE, PodBuilder, RuleBuilder, csi_node, node, pod, rule};
use nodegate_core::condition::{ComponentGroup, Watch};

fn components() -> RuleBuilder {
    rule("r").waits_for("node.gardener.cloud/CriticalComponentsReady")
}

fn unready(node: &str) -> PodBuilder {
    pod("kube-system/p").critical().on(node)
}

/// The watch shows this pod, and some time passes.
fn show(bench: &mut Bench, pod: &PodBuilder) {
    bench.shows(
        Watch::Pods(ComponentGroup::Class(0)),
        pod.clone().json().clone(),
    );
    bench.wait(1100);
}

#[test]
fn a_pod_that_comes_again_under_its_name_on_another_node_has_left_the_first() {
    let mut bench = Bench::new(&[components()], &[node("a"), node("b")]);
    show(&mut bench, &unready("a"));
    assert_eq!((bench.taints("a"), bench.taints("b")), (vec![GATE], vec![]));
    show(&mut bench, &unready("b"));
    assert_eq!((bench.taints("a"), bench.taints("b")), (vec![], vec![GATE]));
    show(&mut bench, &unready("b").ready());
    assert_eq!((bench.taints("a"), bench.taints("b")), (vec![], vec![]));
}

#[test]
fn a_pod_in_a_namespace_that_its_class_does_not_cover_says_nothing() {
    let mut bench = Bench::new(&[components()], &[node("a")]);
    show(&mut bench, &pod("tenant/p").critical().on("a"));
    assert_eq!(bench.taints("a"), [""; 0]);
}

#[test]
fn a_driver_counts_once_it_is_registered_and_no_more_when_its_csi_node_is_gone() {
    let driver = "csi.example.com";
    let mut bench = Bench::new(&[components()], &[node("a")]);
    show(&mut bench, &unready("a").ready().waits_for_driver(driver));
    assert_eq!(bench.taints("a"), [GATE]);
    let shown = |csi_node: &crate::testing::CsiNodeBuilder| csi_node.clone().json().clone();
    bench.shows(Watch::CsiNodes, shown(&csi_node("a")));
    assert_eq!(bench.taints("a"), [GATE]);
    bench.shows(Watch::CsiNodes, shown(&csi_node("a").driver(driver)));
    assert_eq!(bench.taints("a"), [""; 0]);
    bench.shows_gone(Watch::CsiNodes, "a");
    bench.wait(1100);
    assert_eq!(bench.taints("a"), [GATE]);
    assert_eq!(bench.gauge(&CACHE_OBJECTS, &["csinodes"]), Some(0));
}
