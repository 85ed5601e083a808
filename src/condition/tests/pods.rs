//! When pods count as Ready.

use proptest::prelude::*;

use super::{
    CNI_MISSING, COMPONENTS, DRIVERS, READY, SCHEDULED, assert_lack, cni, cni_pod, worker,
};
use crate::testing::{Builder, PodBuilder, World, at, daemon_set, pod, rule, world};

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn critical_pods_have_to_be_ready() {
    let proxy = daemon_set("kube-system/proxy").critical();
    let with = |pod: PodBuilder| world(&worker()).daemon_set(&cni()).pod(&pod);
    let bare = || pod("kube-system/probe").critical();
    let cni_2 = || pod("kube-system/cni-2").of(&cni());
    for (name, world, expected) in vec![
        (
            "no pod yet",
            world(&worker()).daemon_set(&cni()),
            Some(CNI_MISSING),
        ),
        (
            "not Ready",
            with(cni_pod()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        ("Ready", with(cni_pod().ready()), None),
        (
            "Ready, but terminating",
            with(cni_pod().ready().deleting()),
            Some(CNI_MISSING),
        ),
        (
            "a surge of which the old pod is Ready",
            with(cni_pod().ready()).pod(&cni_2()),
            None,
        ),
        (
            "a surge of which the new pod is Ready",
            with(cni_pod()).pod(&cni_2().ready()),
            None,
        ),
        (
            "a surge of which neither is Ready",
            with(cni_2()).pod(&cni_pod()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        (
            "a surge whose Ready pod terminates",
            with(cni_pod().ready().deleting()).pod(&cni_2()),
            Some("pod kube-system/cni-2 is not Ready"),
        ),
        (
            "a bare pod that is not Ready",
            world(&worker()).pod(&bare()),
            Some("pod kube-system/probe is not Ready"),
        ),
        (
            "a bare pod in a namespace that the class does not cover",
            world(&worker()).pod(&pod("monitoring/probe").critical()),
            None,
        ),
        (
            "a bare pod that is Ready",
            world(&worker()).pod(&bare().ready()),
            None,
        ),
        (
            "a bare pod that succeeded",
            world(&worker()).pod(&bare().phase("Succeeded")),
            None,
        ),
        (
            "a bare pod that failed",
            world(&worker()).pod(&bare().phase("Failed")),
            None,
        ),
        (
            "a bare pod that terminates",
            world(&worker()).pod(&bare().deleting()),
            None,
        ),
        (
            "a pod without the label",
            world(&worker()).pod(&pod("kube-system/probe")),
            None,
        ),
        (
            "a pod of a DaemonSet that is being deleted",
            world(&worker())
                .daemon_set(&cni().deleting())
                .pod(&cni_pod()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        (
            "a pod of a DaemonSet that is not meant for this node",
            world(&worker())
                .daemon_set(&cni().node_selector("gpu", "yes"))
                .pod(&cni_pod()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        (
            "three that are not Ready, one of them for its DaemonSet twice",
            with(cni_2())
                .pod(&cni_pod())
                .daemon_set(&proxy)
                .pod(&pod("kube-system/proxy-1").of(&proxy))
                .pod(&bare()),
            Some("pods kube-system/cni-1, kube-system/probe, kube-system/proxy-1 are not Ready"),
        ),
    ] {
        assert_lack(name, &world, READY, expected);
    }
}

#[test]
fn a_pod_that_was_ready_before_the_node_was_created_is_believed_after_a_minute() {
    let old = || cni_pod().ready_since(at(-100));
    let doubt = "pod kube-system/cni-1 has been Ready since before this node was created";
    let other = || pod("kube-system/other").critical();
    let with = |pod: &PodBuilder| world(&worker()).daemon_set(&cni()).pod(pod);
    for (name, world, expected, recheck) in [
        (
            "at once",
            with(&old()).now(at(0)),
            Some(doubt),
            Some(at(60)),
        ),
        (
            "nearly a minute later",
            with(&old()).now(at(59)),
            Some(doubt),
            Some(at(60)),
        ),
        ("a minute later", with(&old()).now(at(60)), None, None),
        (
            "Ready since the node was created",
            with(&cni_pod().ready_since(at(0))).now(at(1)),
            None,
            None,
        ),
        (
            "beside a new pod that is Ready",
            with(&old())
                .pod(&pod("kube-system/cni-2").of(&cni()).ready_since(at(1)))
                .now(at(2)),
            None,
            None,
        ),
        (
            "beside a new pod that is not Ready",
            with(&old())
                .pod(&pod("kube-system/cni-2").of(&cni()))
                .now(at(2)),
            Some(doubt),
            Some(at(60)),
        ),
        (
            "a bare pod",
            world(&worker())
                .pod(&other().ready_since(at(-1)))
                .now(at(2)),
            Some("pod kube-system/other has been Ready since before this node was created"),
            Some(at(60)),
        ),
        (
            "behind one that is not Ready",
            with(&old()).pod(&other()).now(at(2)),
            Some("pod kube-system/other is not Ready"),
            Some(at(60)),
        ),
    ] {
        assert_lack(name, &world, READY, expected);
        let answer = world.condition(READY).unwrap();
        assert_eq!(answer.recheck, recheck, "{name}");
        let asks = rule("asks").waits_for(READY).bootstrap_only().dry_run();
        assert_eq!(world.rule(&asks).plan().recheck, recheck, "{name}: plan");
    }
}

/// A pod of this name in one of the relevant states.
fn any_pod(name: &str) -> impl Strategy<Value = PodBuilder> {
    let pod = pod(&format!("kube-system/{name}"));
    let owner = prop::sample::select(vec![None, Some("cni"), Some("proxy")]);
    let ready = prop::sample::select(vec![None, Some(-5), Some(5)]);
    (owner, ready, 0..6_u8).prop_map(move |(owner, ready, state)| {
        let pod = pod.clone();
        let pod = match owner {
            None => pod.critical(),
            Some(owner) => pod.of(&daemon_set(&format!("kube-system/{owner}")).critical()),
        };
        let pod = match ready {
            None => pod,
            Some(since) => pod.ready_since(at(since)),
        };
        match state {
            0 => pod.deleting(),
            1 => pod.phase("Failed"),
            2 => pod.waits_for_driver("a.csi"),
            _ => pod,
        }
    })
}

proptest! {
    #[test]
    fn the_order_of_pods_does_not_matter(
        (pods, shuffled) in ["a", "b", "c", "d"].map(any_pod)
            .prop_map(Vec::from)
            .prop_flat_map(|pods| (Just(pods.clone()), Just(pods).prop_shuffle())),
    ) {
        let base = world(&worker())
            .daemon_set(&cni())
            .now(at(30));
        let with = |pods: &[PodBuilder]| pods.iter().fold(base.clone(), World::pod);
        let (one, other) = (with(&pods), with(&shuffled));
        for kind in [SCHEDULED, READY, DRIVERS, COMPONENTS] {
            prop_assert_eq!(one.condition(kind), other.condition(kind));
        }
    }
}
