//! When pods count as Ready.

use jiff::Timestamp;
use proptest::prelude::*;

use super::{COMPONENTS, DRIVERS, READY, SCHEDULED, assert_lack, cni, cni_pod, worker};
use crate::condition::{Component, Detail};
use crate::testing::{Builder, PodBuilder, World, at, daemon_set, pod, rule, world};

#[test]
fn a_pod_of_a_daemon_set_has_to_be_ready_for_its_min_ready_seconds() {
    const NAMED: &str = "daemonset.nodegate.dev/kube-system.cni";
    const ALL: &str = "daemonsets.nodegate.dev/all";
    let asking = |seconds| cni().selecting("app", "cni").min_ready_seconds(seconds);
    let with = |seconds| {
        let world = world(&worker()).naming("kube-system/cni");
        let world = world.waited_for(Component::AllDaemonSets);
        world.daemon_set(&asking(seconds))
    };
    let pod_of = |name: &str| pod(&format!("kube-system/{name}")).of(&asking(0));
    let ready = |name: &str, since| pod_of(name).ready_since(at(since));
    let one = "not Ready for long enough yet: pod kube-system/a (30 s, until 2026-01-01T00:02:10Z)";
    let waits = Some(one);
    #[rustfmt::skip]
    let cases = [
        ("just now", with(30).pod(&ready("a", 100)).now(at(100)), waits, Some(at(130))),
        ("nearly for long enough", with(30).pod(&ready("a", 100)).now(at(129)), waits, Some(at(130))),
        ("for long enough", with(30).pod(&ready("a", 100)).now(at(130)), None, None),
        ("0 seconds", with(0).pod(&ready("a", 100)).now(at(100)), None, None),
        ("since an unknown time", with(30).pod(&pod_of("a").ready_undated()), Some("pod kube-system/a is not Ready"), None),
        ("since an unknown time, and 0 seconds", with(0).pod(&pod_of("a").ready_undated()), None, None),
        ("by a clock that is ahead", with(30).pod(&ready("a", 100)).now(at(90)), waits, Some(at(130))),
        ("beside an old one for long enough", with(30).pod(&ready("a", 100)).pod(&ready("b", 50)).now(at(101)), None, None),
        (
            "beside an older one, neither for long enough",
            with(30)
                .pod(&ready("a", 100))
                .pod(&ready("b", 110))
                .now(at(111)),
            waits,
            Some(at(130)),
        ),
        ("beside one that is not Ready", with(30).pod(&ready("a", 100)).pod(&pod_of("b")).now(at(111)), waits, Some(at(130))),
        (
            "since before the node was created, and not for long enough either",
            with(90).pod(&ready("a", -10)).now(at(59)),
            Some("pod kube-system/a has been Ready since before this node was created"),
            Some(at(60)),
        ),
        (
            "since before the node was created, which counts by then",
            with(90).pod(&ready("a", -10)).now(at(60)),
            Some(
                "not Ready for long enough yet: pod kube-system/a (90 s, until 2026-01-01T00:01:20Z)",
            ),
            Some(at(80)),
        ),
    ];
    for (name, world, expected, recheck) in cases {
        for kind in [READY, NAMED, ALL] {
            assert_lack(name, &world, kind, expected);
            let answer = world.condition(kind).unwrap();
            assert_eq!(answer.recheck, recheck, "{name}: {kind}");
        }
        assert_lack(name, &world, "daemonsets.nodegate.dev/scheduled", None);
    }
    let early = with(30).pod(&ready("a", 100)).now(at(100));
    assert_eq!(early.condition(ALL).unwrap().reason, "PodNotAvailable");
    let for_ever = with(u32::MAX).pod(&pod_of("a").ready_since(Timestamp::MAX));
    assert_eq!(
        for_ever.condition(ALL).unwrap().recheck,
        Some(Timestamp::MAX)
    );
}

#[test]
fn a_pod_says_how_far_it_has_come() {
    for (now, expected) in [
        (at(90), "Ready for 0 s of 30 s (minReadySeconds)"),
        (at(104), "Ready for 4 s of 30 s (minReadySeconds)"),
        (at(129), "Ready for 29 s of 30 s (minReadySeconds)"),
    ] {
        let world = world(&worker())
            .daemon_set(&cni().min_ready_seconds(30))
            .pod(&cni_pod().ready_since(at(100)))
            .rule(&rule("r").waits_for(READY))
            .now(now);
        let plan = world.plan();
        let condition = plan.outcomes[0].findings[0].condition.as_ref().unwrap();
        let Detail::PodNotAvailable { pods } = &condition.detail else {
            panic!("{condition:?}");
        };
        assert_eq!(pods.iter().next().unwrap().progress(now), expected);
    }
}

#[test]
fn a_pod_that_was_ready_before_the_node_was_created_is_believed_after_a_minute() {
    let old = || cni_pod().ready_since(at(-100));
    let doubt = "pod kube-system/cni-1 has been Ready since before this node was created";
    let other = || pod("kube-system/other").critical();
    let with = |pod: &PodBuilder| world(&worker()).daemon_set(&cni()).pod(pod);
    #[rustfmt::skip]
    let cases = [
        ("at once", with(&old()).now(at(0)), Some(doubt), Some(at(60))),
        ("nearly a minute later", with(&old()).now(at(59)), Some(doubt), Some(at(60))),
        ("a minute later", with(&old()).now(at(60)), None, None),
        ("Ready since the node was created", with(&cni_pod().ready_since(at(0))).now(at(1)), None, None),
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
        ("behind one that is not Ready", with(&old()).pod(&other()).now(at(2)), Some("pod kube-system/other is not Ready"), Some(at(60))),
    ];
    for (name, world, expected, recheck) in cases {
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
