//! What this process has observed of a node over time.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::api::ConditionStatus;
use crate::condition::observations::Heartbeat;
use crate::condition::{Observations, Reboot};
use crate::object::{Node, NodeCondition};
use crate::testing::{Builder, at, csi_node, node};

fn written(seconds: i64) -> Vec<NodeCondition> {
    wrote(Some(at(seconds)))
}

fn wrote(written: Option<Timestamp>) -> Vec<NodeCondition> {
    vec![NodeCondition {
        kind: "Net".into(),
        status: ConditionStatus::True,
        reason: String::new(),
        message: String::new(),
        transition: None,
        heartbeat: written,
    }]
}

/// Observes a state of the node with these conditions.
fn see(
    observations: &mut Observations,
    node: &Node,
    conditions: &[NodeCondition],
    followed: &BTreeSet<Arc<str>>,
    now: Timestamp,
) {
    let node = Node {
        conditions: conditions.to_vec(),
        ..node.clone()
    };
    observations.see(None, &node, followed, now);
}

fn heartbeat(observations: &Observations) -> &Heartbeat {
    observations.heartbeat("Net").unwrap()
}

fn net() -> BTreeSet<Arc<str>> {
    BTreeSet::from(["Net".into()])
}

#[test]
fn evidence_from_before_a_reboot_is_dated_by_the_kubelets_clock() {
    let ready = |at| {
        let mut conditions = wrote(at);
        conditions[0].kind = "Ready".into();
        conditions
    };
    #[rustfmt::skip]
    let cases = [
        ("it does not say", Some(at(0)), None, None, at(9), at(9)),
        ("its clock is ahead", Some(at(5000)), Some(at(300)), None, at(300), at(300)),
        ("its clock was set back", Some(at(0)), Some(at(-300)), None, at(9), at(9)),
        ("its clock may have been set back", None, Some(at(5)), None, at(9), at(9)),
        ("ours is set back", Some(at(0)), None, Some(at(-60)), at(9), at(9)),
        ("the reboot is seen late", Some(at(0)), Some(at(5)), None, at(9), at(5)),
    ];
    for (name, before, wrote, set_to, older, older_by_kubelet) in cases {
        let mut observations = Observations::default();
        let mut known = node("n").boot_id("a").build();
        known.conditions = ready(before);
        observations.see(None, &known, &net(), at(0));
        // Later writes of the kubelet do not change it.
        for wrote in [wrote, wrote.and(Some(at(1000)))] {
            let mut node = node("n").boot_id("b").build();
            node.conditions = ready(wrote);
            observations.see(Some(&known), &node, &net(), at(9));
            known = node;
        }
        if let Some(now) = set_to {
            observations.measure_anew(now, now.duration_since(at(9)));
        }
        let seen = set_to.unwrap_or(at(9));
        let reboot = Reboot {
            seen,
            older,
            older_by_kubelet,
        };
        assert_eq!(observations.reboot(None), Some(reboot), "{name}");
    }
}

#[test]
fn a_condition_first_seen_with_a_new_boot_counts_only_if_the_kubelet_wrote_it() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let followed = BTreeSet::from(["Net".into(), "Ready".into()]);
    let both = |seconds| {
        let mut both = written(seconds);
        both.extend(both.clone());
        both[1].kind = "Ready".into();
        both
    };
    let mut observations = Observations::default();
    see(&mut observations, &booted("a"), &both(0), &followed, at(0));
    see(&mut observations, &booted("b"), &both(9), &followed, at(10));
    let is_of_boot = |kind| observations.heartbeat(kind).unwrap().in_this_boot;
    assert!(!is_of_boot("Net"));
    assert!(is_of_boot("Ready"));
}

#[test]
fn a_kubelet_cannot_make_observations_grow() {
    let rules = BTreeSet::from(["r-uid".into()]);
    let mut observations = Observations::default();
    let mut before = None;
    for index in 0..100 {
        let forged = format!("nodegate.dev/ready-deadline-{index}");
        let node = node("n").annotation("nodegate.dev/ready-deadline-r-uid", "never");
        let node = node.annotation(&forged, "never").build();
        observations.see_deadlines(&node, &rules);
        let driver = csi_node("n").driver(&format!("driver-{index}")).build();
        observations.see_csi_node(before.as_ref(), Some(&driver));
        before = Some(driver);
        let remembered = format!("{observations:?}");
        assert_eq!(remembered.matches("SeenDeadline").count(), 1);
        assert_eq!(remembered.matches("driver-").count(), 1);
    }
    observations.see_deadlines(&node("n").build(), &BTreeSet::new());
    let ahead = observations.set_forward_since_deadline("r-uid");
    assert_eq!(ahead, None, "the rule is gone");
    let name = |index: usize| format!("driver-{index}");
    let many = (0..200).fold(csi_node("n"), |all, it| all.driver(&name(it)));
    observations.see_csi_node(before.as_ref(), Some(&many.build()));
    let remembered = format!("{observations:?}");
    assert!(remembered.matches("driver-").count() < 300);
}

#[test]
fn a_heartbeat_that_is_seen_late_does_not_release_a_node_held_for_silence() {
    let mut observations = Observations::default();
    let recently = at(40)..=at(160);
    see(
        &mut observations,
        &node("n").build(),
        &written(0),
        &net(),
        at(0),
    );
    see(
        &mut observations,
        &node("n").build(),
        &written(20),
        &net(),
        at(100),
    );
    assert!(!heartbeat(&observations).is_unproven(&recently));
    see(
        &mut observations,
        &node("n").build(),
        &written(30),
        &net(),
        at(101),
    );
    observations.saw_late(at(101));
    assert!(heartbeat(&observations).is_unproven(&recently));
    assert_eq!(heartbeat(&observations).silent_since(), at(101));
}

#[test]
fn a_clock_that_is_set_and_set_back_leaves_times_as_they_were() {
    let minutes = SignedDuration::from_mins;
    let rules = BTreeSet::from(["r".into()]);
    for (steps, expected) in [
        (&[][..], 0),
        (&[60, -60], 0),
        (&[-60, 60], 0),
        (&[60], 60),
        (&[-60], 0),
        (&[60, 30, -60], 30),
    ] {
        let node = node("n").annotation("nodegate.dev/ready-deadline-r", "never");
        let mut observations = Observations::default();
        see(&mut observations, &node.build(), &written(0), &net(), at(0));
        observations.see_deadlines(&node.build(), &rules);
        let mut now = at(0);
        for step in steps.iter().copied().map(minutes) {
            now += step;
            observations.measure_anew(now, step);
        }
        let ahead = observations.set_forward_since_deadline("r");
        assert_eq!(ahead, Some(minutes(expected)), "{steps:?}");
        let recently = at(-300)..=at(300);
        let is_behind = steps.iter().sum::<i64>() < 0;
        assert_eq!(
            heartbeat(&observations).is_unproven(&recently),
            is_behind,
            "{steps:?}"
        );
    }
}
