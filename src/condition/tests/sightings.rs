//! What this process has seen of a node over time.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::ConditionStatus;
use crate::condition::{Reboot, Sightings};
use crate::object::Written;
use crate::testing::{Builder, at, csi_node, node};

fn written(seconds: i64) -> Vec<Written> {
    wrote(ConditionStatus::True, Some(at(seconds)))
}

fn wrote(status: ConditionStatus, at: Option<Timestamp>) -> Vec<Written> {
    let kind = "Net".into();
    vec![Written { kind, status, at }]
}

fn net() -> BTreeSet<Arc<str>> {
    BTreeSet::from(["Net".into()])
}

/// When the present boot was first seen, if it is another one than this.
fn rebooted_at(sightings: &Sightings, last_boot: Option<&str>) -> Option<Timestamp> {
    sightings.reboot(last_boot).map(|reboot| reboot.seen)
}

#[test]
fn a_reporter_is_silent_from_when_it_was_last_seen_to_write() {
    let node = node("n").build();
    let mut sightings = Sightings::default();
    assert!(
        !sightings.see(&node, &written(-500), &net(), at(0)),
        "the first sight is no sign of life"
    );
    assert_eq!(sightings.silent_since("Net"), Some(at(0)));
    assert!(!sightings.see(&node, &written(-500), &net(), at(10)));
    assert_eq!(sightings.silent_since("Net"), Some(at(0)));
    assert!(
        sightings.see(&node, &written(-400), &net(), at(20)),
        "whatever the reporter's clock says"
    );
    assert_eq!(sightings.silent_since("Net"), Some(at(20)));
    sightings.restart(at(100));
    assert_eq!(sightings.silent_since("Net"), Some(at(100)));
    assert_eq!(sightings.silent_since("Disk"), None);
}

#[test]
fn a_condition_that_appears_is_a_sign_of_life() {
    let node = node("n").build();
    let mut sightings = Sightings::default();
    sightings.see(&node, &[], &net(), at(0));
    assert!(sightings.see(&node, &written(3), &net(), at(5)));
    assert_eq!(sightings.silent_since("Net"), Some(at(5)));
}

#[test]
fn a_reboot_is_seen_by_its_boot_id_or_by_the_one_on_record() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let mut sightings = Sightings::default();
    sightings.see(&node("n").build(), &[], &net(), at(0));
    assert_eq!(
        rebooted_at(&sightings, Some("a")),
        None,
        "no boot ID is no news"
    );
    sightings.see(&booted("a"), &[], &net(), at(1));
    assert_eq!(rebooted_at(&sightings, None), None);
    assert_eq!(rebooted_at(&sightings, Some("a")), None);
    assert_eq!(rebooted_at(&sightings, Some("before")), Some(at(1)));
    sightings.see(&booted("b"), &[], &net(), at(9));
    assert_eq!(rebooted_at(&sightings, None), Some(at(9)));
    let recreated = node("n").boot_id("c").uid("another").build();
    sightings.see(&recreated, &[], &net(), at(12));
    assert_eq!(rebooted_at(&sightings, None), None);
}

#[test]
fn what_is_from_before_a_reboot_is_told_by_the_kubelets_clock_and_by_no_clock_that_is_set() {
    let booted = |id: &str| node("n").boot_id(id).build();
    for (name, wrote, set_to, older) in [
        ("it does not say", None, None, at(9)),
        ("its clock is ahead", Some(at(300)), None, at(300)),
        ("its clock is behind", Some(at(-300)), None, at(9)),
        ("ours is set back", None, Some(at(-60)), at(9)),
    ] {
        let mut sightings = Sightings::default();
        sightings.see(&booted("a"), &[], &net(), at(0));
        sightings.see_kubelet(Some(at(5000)));
        sightings.see(&booted("b"), &[], &net(), at(9));
        sightings.see_kubelet(wrote);
        sightings.see_kubelet(wrote.and(Some(at(1000))));
        if let Some(now) = set_to {
            sightings.measure_anew(now, now.duration_since(at(9)));
        }
        let seen = set_to.unwrap_or(at(9));
        assert_eq!(
            sightings.reboot(None),
            Some(Reboot { seen, older }),
            "{name}"
        );
    }
}

#[test]
fn a_boot_id_that_is_missing_for_a_while_hides_no_reboot() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let mut sightings = Sightings::default();
    sightings.see(&booted("a"), &[], &net(), at(0));
    sightings.see(&node("n").build(), &[], &net(), at(1));
    assert_eq!(rebooted_at(&sightings, None), None);
    sightings.see(&booted("a"), &[], &net(), at(2));
    assert_eq!(rebooted_at(&sightings, None), None);
    sightings.see(&node("n").build(), &[], &net(), at(3));
    sightings.see(&booted("b"), &[], &net(), at(4));
    assert_eq!(rebooted_at(&sightings, None), Some(at(4)));
}

#[test]
fn what_was_written_before_a_reboot_is_told_from_what_was_written_since() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let mut sightings = Sightings::default();
    sightings.see(&booted("a"), &written(0), &net(), at(1));
    sightings.see(&booted("b"), &written(0), &net(), at(10));
    assert!(!sightings.is_written_in_this_boot("Net"));
    sightings.see(&booted("b"), &written(2), &net(), at(11));
    assert!(
        sightings.is_written_in_this_boot("Net"),
        "seen to be written, whatever the reporter's clock says"
    );
    sightings.see(&booted("c"), &written(2), &net(), at(20));
    assert!(!sightings.is_written_in_this_boot("Net"));
    let mut after_a_restart = Sightings::default();
    after_a_restart.see(&booted("b"), &written(12), &net(), at(12));
    assert!(
        !after_a_restart.is_written_in_this_boot("Net"),
        "whatever the reporter's clock says"
    );
}

#[test]
fn what_is_seen_together_with_the_new_boot_may_be_from_before_unless_the_kubelet_wrote_it() {
    let booted = |id: &str| node("n").boot_id(id).build();
    let followed = BTreeSet::from(["Net".into(), "Ready".into()]);
    let both = |seconds| {
        let mut both = written(seconds);
        both.extend(both.clone());
        both[1].kind = "Ready".into();
        both
    };
    let mut sightings = Sightings::default();
    sightings.see(&booted("a"), &both(0), &followed, at(0));
    sightings.see(&booted("b"), &both(9), &followed, at(10));
    assert!(!sightings.is_written_in_this_boot("Net"));
    assert!(sightings.is_written_in_this_boot("Ready"));
}

#[test]
fn a_change_of_status_is_a_sign_of_life_without_any_times() {
    use ConditionStatus::{False, True};
    let node = node("n").build();
    let mut sightings = Sightings::default();
    sightings.see(&node, &wrote(False, None), &net(), at(0));
    assert!(!sightings.see(&node, &wrote(False, None), &net(), at(1)));
    assert!(sightings.see(&node, &wrote(True, None), &net(), at(2)));
    assert!(sightings.is_written_in_this_boot("Net"));
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
    let mut sightings = Sightings::default();
    sightings.see(&booted("a"), &[], &net(), at(0));
    sightings.see_csi_node(None, Some(&with(&["a"])));
    assert!(sightings.is_registered_in_this_boot("a"));
    sightings.see(&booted("b"), &[], &net(), at(10));
    assert!(!sightings.is_registered_in_this_boot("a"));
    sightings.see_csi_node(Some(&with(&["a"])), Some(&with(&["a", "b"])));
    assert!(sightings.is_registered_in_this_boot("b"));
    assert!(
        !sightings.is_registered_in_this_boot("a"),
        "another one's registration says nothing about it"
    );
    sightings.see_csi_node(Some(&with(&["a", "b"])), Some(&with(&["b"])));
    sightings.see_csi_node(Some(&with(&["b"])), Some(&with(&["a", "b"])));
    assert!(sightings.is_registered_in_this_boot("a"));
    let counted = csi_node("n").counted_driver("a").build();
    sightings.see(&booted("c"), &[], &net(), at(20));
    sightings.see_csi_node(Some(&with(&["a"])), Some(&counted));
    assert!(sightings.is_registered_in_this_boot("a"));
}

#[test]
fn a_deadline_that_was_on_record_is_remembered_for_the_same_node() {
    let due = node("n").annotation("nodegate.dev/ready-deadline-r-uid", "never");
    let mut sightings = Sightings::default();
    sightings.see(&node("n").build(), &[], &net(), at(0));
    assert!(!sightings.has_had_deadline("r-uid"));
    sightings.see_deadlines(&due.build());
    sightings.see(&node("n").build(), &[], &net(), at(1));
    assert!(sightings.has_had_deadline("r-uid"));
    sightings.see(&node("n").uid("another").build(), &[], &net(), at(2));
    assert!(!sightings.has_had_deadline("r-uid"));
}

#[test]
fn a_write_that_is_seen_late_ends_no_silence_that_a_closed_node_is_held_for() {
    let mut sightings = Sightings::default();
    let recently = at(40)..=at(160);
    sightings.see(&node("n").build(), &written(0), &net(), at(0));
    sightings.see(&node("n").build(), &written(20), &net(), at(100));
    assert!(!sightings.is_unproven("Net", &recently));
    sightings.see(&node("n").build(), &written(30), &net(), at(101));
    sightings.saw_late(at(101));
    assert!(sightings.is_unproven("Net", &recently));
    assert_eq!(sightings.silent_since("Net"), Some(at(101)));
}
