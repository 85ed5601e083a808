//! What this process has seen of one node over time, where the node's present state does not tell: when a condition was
//! last written, when the node came back from a reboot, and what has been renewed since. Nobody's clock is asked, only
//! whether what was written has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::api::ConditionStatus;
use crate::api::names::READY_DEADLINE_PREFIX;
use crate::object::{CsiNode, KUBELETS_CONDITIONS, Node, Written};

/// How long after a reboot was seen evidence is doubted that has not been renewed, and that nobody may ever renew: a
/// condition whose reporter writes only what has changed, a CSI driver that registers exactly as before. Longer than the
/// 5 minutes in which reporters usually beat.
pub(super) const NOT_RENEWED: SignedDuration = SignedDuration::from_mins(6);

/// What this process has seen of one node over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sightings {
    node_uid: Arc<str>,
    /// The last boot ID that the node has told; empty before it has told any.
    boot_id: Arc<str>,
    /// When the present boot was first seen.
    boot: Option<Reboot>,
    /// Whether the kubelet has told by its own clock when that was.
    is_boot_told: bool,
    /// Whether the boot ID was another one before, in the sight of this process.
    rebooted: bool,
    heartbeats: Vec<Heartbeat>,
    /// What the node said when it was first seen about all of its conditions, until it is known which of them are followed.
    baseline: Option<Vec<Written>>,
    /// The CSI drivers that have been seen to be registered, or registered otherwise, since the present boot was seen.
    registered: BTreeSet<String>,
    /// The deadlines that are or have been on record, by the UID of their rule.
    deadlines: BTreeMap<Arc<str>, SeenDeadline>,
}

/// A reboot, as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reboot {
    /// When the new boot was first seen: doubts are measured from then on.
    pub seen: Timestamp,
    /// What says that it is older than this is from before the reboot, as far as can be known: the later of when the kubelet
    /// first told of the new boot, by its own clock, and when that was seen.
    pub older: Timestamp,
}

/// A deadline that is or has been on record.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenDeadline {
    /// As it was last.
    value: Box<str>,
    /// How far the clock has been set forward since.
    step: SignedDuration,
}

/// One condition's signs of life.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heartbeat {
    kind: Arc<str>,
    /// What the reporter wrote last, as far as it is known.
    last_write: LastWrite,
    /// From when on a silence is counted: the first sight, or when sights could be had again.
    first_seen: Timestamp,
    /// When the reporter was last seen to write.
    moved: Option<Timestamp>,
    /// How far this process's clock has been set back since then.
    set_back: SignedDuration,
    /// Whether the reporter has been seen to write since the present boot was seen. What is followed only from long after
    /// that counts as written: nobody has looked.
    in_this_boot: bool,
}

/// What a reporter wrote last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastWrite {
    /// The node has not been seen since the condition is followed.
    NotSeen,
    /// There is no such condition.
    Never,
    /// This status, at this time by the reporter's own clock, where it tells.
    Wrote(ConditionStatus, Option<Timestamp>),
}

impl Heartbeat {
    fn new(kind: Arc<str>, in_this_boot: bool, now: Timestamp) -> Self {
        Self {
            kind,
            last_write: LastWrite::NotSeen,
            first_seen: now,
            moved: None,
            set_back: SignedDuration::ZERO,
            in_this_boot,
        }
    }
}

/// What a reporter wrote last, as a state of the node says.
fn last_write(written: &[Written], kind: &str) -> LastWrite {
    let written = written.iter().find(|written| *written.kind == *kind);
    written.map_or(LastWrite::Never, |written| {
        LastWrite::Wrote(written.status, written.at)
    })
}

impl Sightings {
    /// Takes in a state of the node; answers whether a followed condition has been written.
    ///
    /// `written` is what the state says about when each condition was written, `followed` the condition types of which
    /// somebody wants to know.
    pub fn see(
        &mut self,
        node: &Node,
        written: &[Written],
        followed: &BTreeSet<Arc<str>>,
        now: Timestamp,
    ) -> bool {
        if self.node_uid != node.uid {
            *self = Self {
                node_uid: node.uid.clone(),
                ..Self::default()
            };
        }
        // A node that does not tell has not rebooted for all anybody knows.
        let is_another_boot = !node.boot_id.is_empty() && self.boot_id != node.boot_id;
        if is_another_boot {
            self.rebooted = !self.boot_id.is_empty();
            self.boot_id = node.boot_id.clone();
            self.boot = Some(Reboot {
                seen: now,
                older: now,
            });
            self.is_boot_told = false;
            self.registered.clear();
        }
        self.see_deadlines(node);
        self.follow(followed, now);
        let mut any_moved = false;
        for heartbeat in &mut self.heartbeats {
            let last = last_write(written, &heartbeat.kind);
            let known = std::mem::replace(&mut heartbeat.last_write, last);
            if is_another_boot {
                heartbeat.in_this_boot = false;
            }
            // The first sight is no sign of life, since it may have been written long ago; but silence counts from then.
            if known == LastWrite::NotSeen {
                heartbeat.first_seen = now;
            } else if known != last {
                heartbeat.moved = Some(now);
                heartbeat.set_back = SignedDuration::ZERO;
                // What moved together with the boot ID may have been written shortly before the reboot.
                heartbeat.in_this_boot |=
                    !is_another_boot || KUBELETS_CONDITIONS.contains(&&*heartbeat.kind);
                any_moved = true;
            }
        }
        any_moved
    }

    /// Takes in when the kubelet wrote, by its own clock, the state of the node that was seen last.
    pub fn see_kubelet(&mut self, wrote: Option<Timestamp>) {
        if let Some(boot) = &mut self.boot
            && let Some(wrote) = wrote.filter(|_| !self.is_boot_told)
        {
            boot.older = boot.older.max(wrote);
            self.is_boot_told = true;
        }
    }

    /// Takes in under which rules the node has a deadline on record.
    pub fn see_deadlines(&mut self, node: &Node) {
        for (key, value) in node.annotations.iter().flatten() {
            let Some(uid) = key.strip_prefix(READY_DEADLINE_PREFIX) else {
                continue;
            };
            if self
                .deadlines
                .get(uid)
                .is_none_or(|it| *it.value != **value)
            {
                let deadline = SeenDeadline {
                    value: value.as_str().into(),
                    step: SignedDuration::ZERO,
                };
                self.deadlines.insert(uid.into(), deadline);
            }
        }
    }

    /// Takes in that the node's `CSINode` was one and is the other now. The first sight of it is not for here: nobody
    /// knows when that was written.
    pub fn see_csi_node(&mut self, before: Option<&CsiNode>, now: Option<&CsiNode>) {
        let drivers = now.map_or(&[][..], |csi_node| &csi_node.drivers);
        let is_news = |driver: &&_| {
            let known = before.and_then(|before| before.drivers.iter().find(|it| it == driver));
            known.is_none()
        };
        let names = drivers.iter().filter(is_news).map(|it| it.name.clone());
        self.registered.extend(names);
    }

    /// Keeps what a state of the node says about all of its conditions, as long as nobody knows which will be followed.
    pub fn keep(&mut self, written: Vec<Written>) {
        self.baseline = Some(written);
    }

    /// Follows exactly these condition types from now on.
    pub fn follow(&mut self, followed: &BTreeSet<Arc<str>>, now: Timestamp) {
        self.heartbeats
            .retain(|heartbeat| followed.contains(&heartbeat.kind));
        let is_long_ago = |boot: Timestamp| now.duration_since(boot) >= NOT_RENEWED;
        let in_this_boot = self.boot.is_some_and(|boot| is_long_ago(boot.seen));
        let baseline = self.baseline.take();
        for kind in followed {
            if !self.heartbeats.iter().any(|known| known.kind == *kind) {
                let mut heartbeat = Heartbeat::new(kind.clone(), in_this_boot, now);
                if let Some(written) = &baseline {
                    heartbeat.last_write = last_write(written, kind);
                }
                self.heartbeats.push(heartbeat);
            }
        }
    }

    /// Counts every silence from now on: nothing could be seen for a while.
    pub fn restart(&mut self, now: Timestamp) {
        for heartbeat in &mut self.heartbeats {
            heartbeat.first_seen = now;
        }
    }

    /// Counts every silence and every doubt from now on: the clock by which they were measured was set, by so much forward
    /// or back. A deadline does not come sooner for that.
    pub fn measure_anew(&mut self, now: Timestamp, step: SignedDuration) {
        for deadline in self.deadlines.values_mut() {
            deadline.step += step.max(SignedDuration::ZERO);
        }
        if let Some(boot) = &mut self.boot {
            boot.seen = now;
        }
        for heartbeat in &mut self.heartbeats {
            heartbeat.first_seen = now;
            heartbeat.moved = heartbeat.moved.map(|_| now);
            heartbeat.set_back += (-step).max(SignedDuration::ZERO);
        }
    }

    /// Since when the reporter of this condition has been silent; `None` where nobody followed it.
    #[must_use]
    pub fn silent_since(&self, kind: &str) -> Option<Timestamp> {
        let heartbeat = self.heartbeat(kind)?;
        Some(heartbeat.moved.map_or(heartbeat.first_seen, |moved| {
            moved.max(heartbeat.first_seen)
        }))
    }

    /// Whether nobody has seen the reporter of this condition write since its silence is counted, and by its own clock it
    /// wrote last at another time than in these: long ago, or when it cannot have been yet.
    #[must_use]
    pub fn is_unproven(&self, kind: &str, recently: &RangeInclusive<Timestamp>) -> bool {
        self.heartbeat(kind).is_some_and(|heartbeat| {
            let has_moved = heartbeat
                .moved
                .is_some_and(|moved| moved > heartbeat.first_seen);
            let wrote = match heartbeat.last_write {
                LastWrite::Wrote(_, at) => at,
                LastWrite::Never | LastWrite::NotSeen => None,
            };
            let wrote = wrote.and_then(|at| at.checked_sub(heartbeat.set_back).ok());
            !has_moved && wrote.is_some_and(|at| !recently.contains(&at))
        })
    }

    /// Whether the condition has been seen to be written since the present boot was seen.
    #[must_use]
    pub fn is_written_in_this_boot(&self, kind: &str) -> bool {
        self.heartbeat(kind)
            .is_some_and(|heartbeat| heartbeat.in_this_boot)
    }

    /// Whether the CSI driver has been seen to be registered since the present boot was seen.
    #[must_use]
    pub fn is_registered_in_this_boot(&self, driver: &str) -> bool {
        self.registered.contains(driver)
    }

    /// Whether the node has had a deadline on record under the rule with this UID.
    #[must_use]
    pub fn has_had_deadline(&self, rule_uid: &str) -> bool {
        self.deadlines.contains_key(rule_uid)
    }

    /// How far the clock has been set forward since the deadline under the rule with this UID was on record: it was measured
    /// by another clock.
    #[must_use]
    pub fn set_forward_since_deadline(&self, rule_uid: &str) -> SignedDuration {
        let deadline = self.deadlines.get(rule_uid);
        deadline.map_or(SignedDuration::ZERO, |deadline| deadline.step)
    }

    fn heartbeat(&self, kind: &str) -> Option<&Heartbeat> {
        self.heartbeats
            .iter()
            .find(|heartbeat| &*heartbeat.kind == kind)
    }

    /// When the present boot was first seen, if that means that the node has rebooted since `last_boot`, the boot ID on
    /// record, or before the eyes of this process.
    #[must_use]
    pub fn reboot(&self, last_boot: Option<&str>) -> Option<Reboot> {
        let is_another = last_boot.is_some_and(|last| *last != *self.boot_id);
        self.boot
            .filter(|_| !self.boot_id.is_empty() && (self.rebooted || is_another))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
