//! Pods, `DaemonSet`s and `CSINode`s of critical components.

use super::Bench;
use crate::condition::{ComponentGroup, Watch};
use crate::engine::survey::CACHE_OBJECTS;
use crate::testing::{
    Builder, GATE, PodBuilder, RuleBuilder, csi_node, daemon_set, node, pod, rule,
};

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
fn a_node_is_released_when_the_last_of_its_pods_is_gone() {
    let mut bench = Bench::new(&[components()], &[node("a")]);
    show(&mut bench, &unready("a"));
    assert_eq!(bench.taints("a"), [GATE]);
    bench.shows_gone(Watch::Pods(ComponentGroup::Class(0)), "p");
    assert_eq!(bench.taints("a"), [""; 0]);
    let kinds = ["nodes", "csinodes", "pods"];
    let objects = kinds.map(|kind| bench.gauge(&CACHE_OBJECTS, &[kind]));
    assert_eq!(objects, [Some(1), Some(0), Some(0)]);
}

#[test]
fn a_pod_that_has_ended_or_is_bound_nowhere_counts_as_gone() {
    for (name, pod) in [
        ("succeeded", unready("a").phase("Succeeded")),
        ("failed", unready("a").phase("Failed")),
    ] {
        let mut bench = Bench::new(&[components()], &[node("a")]);
        show(&mut bench, &unready("a"));
        assert_eq!(bench.taints("a"), [GATE], "{name}");
        show(&mut bench, &pod);
        assert_eq!(bench.taints("a"), [""; 0], "{name}");
    }
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
fn pods_that_are_seen_before_their_node_count_when_it_comes() {
    let mut bench = Bench::new(&[components()], &[]);
    show(&mut bench, &unready("a"));
    bench.sees(&node("a"));
    assert_eq!(bench.taints("a"), [GATE]);
    bench.gone("a");
    bench.sees(&node("a").uid("another"));
    assert_eq!(
        bench.taints("a"),
        [GATE],
        "the pod is still bound to that name"
    );
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

#[test]
fn an_update_that_changes_nothing_evaluates_no_node() {
    let agent = daemon_set("kube-system/agent")
        .critical()
        .toleration("{operator: Exists}");
    let mut bench = Bench::new(&[components()], &[node("a")]);
    show(&mut bench, &unready("a"));
    bench.shows(
        Watch::DaemonSets(ComponentGroup::Class(0)),
        agent.clone().json().clone(),
    );
    bench.wait(5000);
    let evaluated = |bench: &mut Bench| {
        let counted = std::mem::take(&mut bench.counted);
        let is_evaluation =
            |it: &&super::Count| matches!(it, super::Count::Rule(_, super::RuleCount::Evaluated));
        counted.iter().filter(is_evaluation).count()
    };
    evaluated(&mut bench);
    // The same state again, with other versions.
    show(&mut bench, &unready("a"));
    bench.shows(
        Watch::DaemonSets(ComponentGroup::Class(0)),
        agent.clone().json().clone(),
    );
    let as_it_is = bench.node("a").clone();
    bench.shows(Watch::Nodes, as_it_is);
    assert_eq!(evaluated(&mut bench), 0);
    show(&mut bench, &unready("a").ready());
    assert!(evaluated(&mut bench) > 0);
    bench.shows_gone(Watch::DaemonSets(ComponentGroup::Class(0)), "agent");
    assert!(evaluated(&mut bench) > 0);
}

#[test]
fn a_rule_that_waits_for_no_components_does_not_care_for_them() {
    let mut bench = Bench::new(&[rule("r").waits_for("Net")], &[node("a")]);
    bench.wait(5000);
    bench.counted.clear();
    bench.shows(
        Watch::DaemonSets(ComponentGroup::Class(0)),
        daemon_set("kube-system/agent").critical().json().clone(),
    );
    assert_eq!(bench.counted, []);
}

#[test]
fn a_rule_whose_class_has_no_daemon_set_says_that_it_releases_every_node() {
    let mut bench = Bench::new(&[components()], &[node("a")]);
    bench.wait(5000);
    let says = |bench: &Bench| {
        let conditions = bench.status("r")["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|it| it["type"] == "NothingToWaitFor");
        found.map(|it| it["message"].as_str().unwrap().to_owned())
    };
    let message = says(&bench).unwrap();
    assert!(message.contains("releases every node"), "{message}");
    let agent = daemon_set("kube-system/agent").critical();
    bench.shows(
        Watch::DaemonSets(ComponentGroup::Class(0)),
        agent.clone().json().clone(),
    );
    bench.wait(5000);
    assert_eq!(says(&bench), None);
}
