//! What this process has observed of a node over time.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::api::ConditionStatus;
use crate::condition::{Observations, Reboot};
use crate::object::{Node, NodeCondition};
use crate::testing::{Builder, at, csi_node, node};

fn written(seconds: i64) -> Vec<NodeCondition> {
    wrote(ConditionStatus::True, Some(at(seconds)))
}

fn wrote(status: ConditionStatus, written: Option<Timestamp>) -> Vec<NodeCondition> {
    vec![NodeCondition {
        kind: "Net".into(),
        status,
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
) -> bool {
    let node = Node {
        conditions: conditions.to_vec(),
        ..node.clone()
    };
    observations.see(None, &node, followed, now)
}

fn net() -> BTreeSet<Arc<str>> {
    BTreeSet::from(["Net".into()])
}

/// When the present boot was first seen, if it differs from this one.
fn rebooted_at(observations: &Observations, last_boot: Option<&str>) -> Option<Timestamp> {
    observations.reboot(last_boot).map(|reboot| reboot.seen)
}

#[test]
fn a_reporter_is_silent_from_when_it_was_last_seen_to_write() {
    let node = node("n").build();
    let mut observations = Observations::default();
    assert!(
        !see(&mut observations, &node, &written(-500), &net(), at(0)),
        "the first sight is no sign of life"
    );
    assert_eq!(observations.silent_since("Net"), Some(at(0)));
    assert!(!see(
        &mut observations,
        &node,
        &written(-500),
        &net(),
        at(10)
    ));
    assert_eq!(observations.silent_since("Net"), Some(at(0)));
    assert!(
        see(&mut observations, &node, &written(-400), &net(), at(20)),
        "whatever the reporter's clock says"
    );
    assert_eq!(observations.silent_since("Net"), Some(at(20)));
    observations.restart(at(100));
    assert_eq!(observations.silent_since("Net"), Some(at(100)));
    assert_eq!(observations.silent_since("Disk"), None);
}

#[test]
fn a_new_condition_counts_as_a_heartbeat() {
    let node = node("n").build();
    let mut observations = Observations::default();
    see(&mut observations, &node, &[], &net(), at(0));
    assert!(see(&mut observations, &node, &written(3), &net(), at(5)));
    assert_eq!(observations.silent_since("Net"), Some(at(5)));
}

#[test]
fn a_reboot_is_seen_by_its_boot_id_or_by_the_one_on_record() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let mut observations = Observations::default();
    see(&mut observations, &node("n").build(), &[], &net(), at(0));
    assert_eq!(
        rebooted_at(&observations, Some("a")),
        None,
        "no boot ID is no news"
    );
    see(&mut observations, &booted("a"), &[], &net(), at(1));
    assert_eq!(rebooted_at(&observations, None), None);
    assert_eq!(rebooted_at(&observations, Some("a")), None);
    assert_eq!(rebooted_at(&observations, Some("before")), Some(at(1)));
    see(&mut observations, &booted("b"), &[], &net(), at(9));
    assert_eq!(rebooted_at(&observations, None), Some(at(9)));
    let recreated = node("n").boot_id("c").uid("another").build();
    see(&mut observations, &recreated, &[], &net(), at(12));
    assert_eq!(rebooted_at(&observations, None), None);
}

#[test]
fn evidence_from_before_a_reboot_is_dated_by_the_kubelets_clock() {
    let booted = |id: &str| node("n").boot_id(id).build();
    for (name, wrote, set_to, older) in [
        ("it does not say", None, None, at(9)),
        ("its clock is ahead", Some(at(300)), None, at(300)),
        ("its clock is behind", Some(at(-300)), None, at(9)),
        ("ours is set back", None, Some(at(-60)), at(9)),
    ] {
        let mut observations = Observations::default();
        let mut before = written(5000);
        before[0].kind = "Ready".into();
        see(&mut observations, &booted("a"), &before, &net(), at(0));
        // Later writes of the kubelet do not change it.
        for wrote in [wrote, wrote.and(Some(at(1000)))] {
            let mut conditions = self::wrote(ConditionStatus::True, wrote);
            conditions[0].kind = "Ready".into();
            see(&mut observations, &booted("b"), &conditions, &net(), at(9));
        }
        if let Some(now) = set_to {
            observations.measure_anew(now, now.duration_since(at(9)));
        }
        let seen = set_to.unwrap_or(at(9));
        assert_eq!(
            observations.reboot(None),
            Some(Reboot { seen, older }),
            "{name}"
        );
    }
}

#[test]
fn a_boot_id_that_is_missing_for_a_while_hides_no_reboot() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let mut observations = Observations::default();
    see(&mut observations, &booted("a"), &[], &net(), at(0));
    see(&mut observations, &node("n").build(), &[], &net(), at(1));
    assert_eq!(rebooted_at(&observations, None), None);
    see(&mut observations, &booted("a"), &[], &net(), at(2));
    assert_eq!(rebooted_at(&observations, None), None);
    see(&mut observations, &node("n").build(), &[], &net(), at(3));
    see(&mut observations, &booted("b"), &[], &net(), at(4));
    assert_eq!(rebooted_at(&observations, None), Some(at(4)));
}

#[test]
fn a_condition_written_before_a_reboot_is_distinguished_from_one_written_since() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let mut observations = Observations::default();
    see(&mut observations, &booted("a"), &written(0), &net(), at(1));
    see(&mut observations, &booted("b"), &written(0), &net(), at(10));
    assert!(!observations.is_written_in_this_boot("Net"));
    see(&mut observations, &booted("b"), &written(2), &net(), at(11));
    assert!(
        observations.is_written_in_this_boot("Net"),
        "seen to be written, whatever the reporter's clock says"
    );
    see(&mut observations, &booted("c"), &written(2), &net(), at(20));
    assert!(!observations.is_written_in_this_boot("Net"));
    let mut after_a_restart = Observations::default();
    see(
        &mut after_a_restart,
        &booted("b"),
        &written(12),
        &net(),
        at(12),
    );
    assert!(
        !after_a_restart.is_written_in_this_boot("Net"),
        "whatever the reporter's clock says"
    );
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
    assert!(!observations.is_written_in_this_boot("Net"));
    assert!(observations.is_written_in_this_boot("Ready"));
}

#[test]
fn a_status_change_without_times_counts_as_a_heartbeat() {
    use ConditionStatus::{False, True};
    let node = node("n").build();
    let mut observations = Observations::default();
    see(&mut observations, &node, &wrote(False, None), &net(), at(0));
    assert!(!see(
        &mut observations,
        &node,
        &wrote(False, None),
        &net(),
        at(1)
    ));
    assert!(see(
        &mut observations,
        &node,
        &wrote(True, None),
        &net(),
        at(2)
    ));
    assert!(observations.is_written_in_this_boot("Net"));
}

#[test]
fn a_driver_is_registered_in_this_boot_if_that_was_seen() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let with = |drivers: &[&str]| {
        let csi_node = drivers
            .iter()
            .fold(csi_node("n"), |it, name| it.driver(name));
        csi_node.build()
    };
    let mut observations = Observations::default();
    see(&mut observations, &booted("a"), &[], &net(), at(0));
    observations.see_csi_node(None, Some(&with(&["a"])));
    assert!(observations.is_registered_in_this_boot("a"));
    see(&mut observations, &booted("b"), &[], &net(), at(10));
    assert!(!observations.is_registered_in_this_boot("a"));
    observations.see_csi_node(Some(&with(&["a"])), Some(&with(&["a", "b"])));
    assert!(observations.is_registered_in_this_boot("b"));
    assert!(
        !observations.is_registered_in_this_boot("a"),
        "another one's registration says nothing about it"
    );
    observations.see_csi_node(Some(&with(&["a", "b"])), Some(&with(&["b"])));
    observations.see_csi_node(Some(&with(&["b"])), Some(&with(&["a", "b"])));
    assert!(observations.is_registered_in_this_boot("a"));
    see(&mut observations, &booted("c"), &[], &net(), at(20));
    let ailing = csi_node("n").driver("a");
    let ailing = ailing.unhealthy("a", "StorageDegraded", "Slow").build();
    observations.see_csi_node(Some(&with(&["a"])), Some(&ailing));
    assert!(
        !observations.is_registered_in_this_boot("a"),
        "what it reports of its storage is no registration"
    );
    let counted = csi_node("n").counted_driver("a").build();
    observations.see_csi_node(Some(&with(&["a"])), Some(&counted));
    assert!(observations.is_registered_in_this_boot("a"));
}

#[test]
fn a_deadline_that_was_on_record_is_remembered_for_the_same_node() {
    let due = node("n").annotation("nodegate.dev/ready-deadline-r-uid", "never");
    let mut observations = Observations::default();
    see(&mut observations, &node("n").build(), &[], &net(), at(0));
    assert!(!observations.has_had_deadline("r-uid"));
    let rules = BTreeSet::from(["r-uid".into(), "s-uid".into()]);
    observations.see_deadlines(&due.build(), &rules);
    see(&mut observations, &node("n").build(), &[], &net(), at(1));
    observations.see_deadlines(&node("n").build(), &rules);
    assert!(observations.has_had_deadline("r-uid"));
    see(
        &mut observations,
        &node("n").uid("another").build(),
        &[],
        &net(),
        at(2),
    );
    assert!(!observations.has_had_deadline("r-uid"));
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
    assert!(!observations.has_had_deadline("r-uid"), "the rule is gone");
    let name = |index: usize| format!("driver-{index}");
    let many = (0..1000).fold(csi_node("n"), |all, it| all.driver(&name(it)));
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
    assert!(!observations.is_unproven("Net", &recently));
    see(
        &mut observations,
        &node("n").build(),
        &written(30),
        &net(),
        at(101),
    );
    observations.saw_late(at(101));
    assert!(observations.is_unproven("Net", &recently));
    assert_eq!(observations.silent_since("Net"), Some(at(101)));
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
        assert_eq!(ahead, minutes(expected), "{steps:?}");
        let recently = at(-300)..=at(300);
        let is_behind = steps.iter().sum::<i64>() < 0;
        assert_eq!(
            observations.is_unproven("Net", &recently),
            is_behind,
            "{steps:?}"
        );
    }
}
