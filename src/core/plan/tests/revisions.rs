//! Bootstraps that count for the revisions of the `DaemonSet`s that they were completed with.

use super::writes;
use crate::condition::Component;
use crate::testing::{
    Builder, DaemonSetBuilder, NodeBuilder, PodBuilder, RuleBuilder, World, daemon_set, node, pod,
    rule, world,
};

const COMPLETED: &str = "readiness.k8s.io/bootstrap-completed-r-uid";
const GATED: [&str; 2] = ["+gate:NoSchedule", "+taint-added-by-r-uid"];
const RECORDED: [&str; 1] = ["+bootstrap-completed-r-uid"];

fn regates() -> RuleBuilder {
    rule("r")
        .bootstrap_only()
        .waits_for("daemonset.nodegate.dev/kube-system.driver")
        .nodegate("regateOn: [Revision]")
}

fn driver(generation: u32) -> DaemonSetBuilder {
    daemon_set("kube-system/driver")
        .selecting("app", "driver")
        .toleration("{operator: Exists}")
        .template_generation(generation)
}

/// A pod of the driver, of this revision and generation.
fn of(name: &str, hash: &str, generation: u32) -> PodBuilder {
    let key = format!("kube-system/{name}");
    pod(&key).of(&driver(1)).revision(hash, generation)
}

/// A node whose bootstrap was completed with this revision.
fn completed(hash: &str) -> NodeBuilder {
    node("worker-1").annotation(COMPLETED, &record(hash))
}

fn record(hash: &str) -> String {
    format!(r#"{{"rule-name":"r","revisions":{{"kube-system/driver":"{hash}"}}}}"#)
}

/// The node with this generation of the driver, and with these pods.
fn on(node: &NodeBuilder, generation: u32, pods: &[PodBuilder]) -> World {
    let world = world(node)
        .rule(&regates())
        .naming("kube-system/driver")
        .daemon_set(&driver(generation));
    pods.iter().fold(world, World::pod)
}

#[test]
fn a_node_is_gated_again_from_when_the_pod_of_the_recorded_revision_goes() {
    let old = || of("old", "a", 1);
    let new = || of("new", "b", 2);
    #[rustfmt::skip]
    let cases = [
        ("nothing has changed", 1, vec![old().ready()], &[][..]),
        ("not Ready for a while", 1, vec![old()], &[]),
        ("restarted in the same revision", 1, vec![old().deleting()], &[]),
        ("gone, and nothing there yet", 2, vec![], &[]),
        ("its successor of the same revision", 1, vec![of("new", "a", 1)], &[]),
        ("updated, the old one still there", 2, vec![old().ready()], &[]),
        ("surging", 2, vec![old().ready(), new()], &[]),
        ("both are Ready", 2, vec![old().ready(), new().ready()], &[]),
        ("the old one is going", 2, vec![old().deleting()], &GATED),
        ("the old one is going, the new one there", 2, vec![old().deleting(), new()], &GATED),
        ("the new one is not Ready", 2, vec![new()], &GATED),
        ("another one without a label is", 2, vec![new(), pod("kube-system/bare").ready()], &GATED),
        ("the new one is Ready: only the record changes", 2, vec![new().ready()], &RECORDED),
        ("the same, the old one going", 2, vec![old().deleting(), new().ready()], &RECORDED),
    ];
    for (name, generation, pods, expected) in cases {
        let world = on(&completed("a"), generation, &pods);
        assert_eq!(writes(&world), expected, "{name}");
    }
}

#[test]
fn a_pod_in_another_namespace_that_claims_the_same_owner_is_of_no_revision() {
    let all_first = rule("r")
        .bootstrap_only()
        .waits_for("daemonsets.nodegate.dev/all")
        .waits_for("daemonset.nodegate.dev/kube-system.driver")
        .nodegate("regateOn: [Revision]");
    let forged = |hash, generation| {
        let pod = pod("tenant/forged").of(&driver(1));
        pod.revision(hash, generation)
    };
    for (name, pod) in [
        ("the recorded one is going", forged("a", 1).deleting()),
        ("another one is there", forged("b", 2)),
        ("another one is Ready", forged("b", 2).ready()),
    ] {
        let world = world(&completed("a"))
            .rule(&all_first)
            .waited_for(Component::AllDaemonSets)
            .naming("kube-system/driver")
            .daemon_set(&driver(2))
            .pod(&pod);
        assert_eq!(writes(&world), [""; 0], "{name}");
    }
}

#[test]
fn a_record_without_a_revision_is_taken_for_the_one_that_it_is_found_with() {
    let bare = || node("worker-1").annotation(COMPLETED, r#"{"rule-name":"r"}"#);
    let unready = on(&bare(), 1, &[of("old", "a", 1)]);
    assert_eq!(
        writes(&unready),
        [""; 0],
        "a pod that is not Ready says nothing"
    );
    let found = on(&bare(), 1, &[of("old", "a", 1).ready()]);
    assert_eq!(writes(&found), RECORDED);
    assert_eq!(
        found.carried_out().node.annotation(COMPLETED),
        Some(&*record("a"))
    );
    let unknown = world(&completed("a"))
        .rule(&regates())
        .naming("kube-system/driver");
    assert_eq!(
        writes(&unknown),
        [""; 0],
        "without the DaemonSet nothing is known"
    );
}
