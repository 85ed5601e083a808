//! What this process has seen of one node over time, where the node's present state does not tell: when a condition was
//! last written, and when the node came back from a reboot. Reporters' clocks are not asked, only whether what they
//! wrote has changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::object::{Node, Written};

/// What this process has seen of one node over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sightings {
    node_uid: Arc<str>,
    boot_id: Arc<str>,
    /// When the present boot ID was first seen.
    boot_seen: Option<Timestamp>,
    /// Whether the boot ID was another one before, in the sight of this process.
    rebooted: bool,
    heartbeats: Vec<Heartbeat>,
}

/// One condition's signs of life.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heartbeat {
    kind: Arc<str>,
    /// The reporter's last write, as far as it is known.
    last_write: LastWrite,
    /// From when on a silence is counted: the first sight, or when sights could be had again.
    first_seen: Timestamp,
    /// When the reporter was last seen to write.
    moved: Option<Timestamp>,
}

/// A reporter's last write, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastWrite {
    /// The node has not been seen since the condition is followed.
    NotSeen,
    /// There is no such condition.
    Never,
    At(Timestamp),
}

impl Heartbeat {
    fn new(kind: Arc<str>, now: Timestamp) -> Self {
        Self {
            kind,
            last_write: LastWrite::NotSeen,
            first_seen: now,
            moved: None,
        }
    }
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
        if self.boot_id != node.boot_id {
            self.rebooted = !self.boot_id.is_empty();
            self.boot_id = node.boot_id.clone();
            self.boot_seen = Some(now);
        }
        self.follow(followed, now);
        let mut any_moved = false;
        for heartbeat in &mut self.heartbeats {
            let last = written
                .iter()
                .find(|written| *written.kind == *heartbeat.kind)
                .map_or(LastWrite::Never, |written| LastWrite::At(written.at));
            let known = std::mem::replace(&mut heartbeat.last_write, last);
            // The first sight is no sign of life, since it may have been written long ago; but silence counts from then.
            if known == LastWrite::NotSeen {
                heartbeat.first_seen = now;
            } else if known != last {
                heartbeat.moved = Some(now);
                any_moved = true;
            }
        }
        any_moved
    }

    /// Follows exactly these condition types from now on.
    pub fn follow(&mut self, followed: &BTreeSet<Arc<str>>, now: Timestamp) {
        self.heartbeats
            .retain(|heartbeat| followed.contains(&heartbeat.kind));
        for kind in followed {
            if !self.heartbeats.iter().any(|known| known.kind == *kind) {
                self.heartbeats.push(Heartbeat::new(kind.clone(), now));
            }
        }
    }

    /// Counts every silence from now on: nothing could be seen for a while.
    pub fn restart(&mut self, now: Timestamp) {
        for heartbeat in &mut self.heartbeats {
            heartbeat.first_seen = now;
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

    /// Whether the condition has been written since this time: it was seen to be, or its reporter says so.
    #[must_use]
    pub fn written_since(&self, kind: &str, time: Timestamp) -> bool {
        self.heartbeat(kind).is_some_and(|heartbeat| {
            heartbeat.moved.is_some_and(|moved| moved >= time)
                || matches!(heartbeat.last_write, LastWrite::At(at) if at.as_second() >= time.as_second())
        })
    }

    fn heartbeat(&self, kind: &str) -> Option<&Heartbeat> {
        self.heartbeats
            .iter()
            .find(|heartbeat| &*heartbeat.kind == kind)
    }

    /// When the present boot was first seen, if that means that the node has rebooted since `last_boot`, the boot ID on
    /// record, or before the eyes of this process.
    #[must_use]
    pub fn rebooted_at(&self, last_boot: Option<&str>) -> Option<Timestamp> {
        let is_another = last_boot.is_some_and(|last| *last != *self.boot_id);
        self.boot_seen
            .filter(|_| !self.boot_id.is_empty() && (self.rebooted || is_another))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, node};

    fn written(seconds: i64) -> Vec<Written> {
        vec![Written {
            kind: "Net".into(),
            at: at(seconds),
        }]
    }

    fn net() -> BTreeSet<Arc<str>> {
        BTreeSet::from(["Net".into()])
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
            sightings.rebooted_at(Some("a")),
            None,
            "no boot ID is no news"
        );
        sightings.see(&booted("a"), &[], &net(), at(1));
        assert_eq!(sightings.rebooted_at(None), None);
        assert_eq!(sightings.rebooted_at(Some("a")), None);
        assert_eq!(sightings.rebooted_at(Some("before")), Some(at(1)));
        sightings.see(&booted("b"), &[], &net(), at(9));
        assert_eq!(sightings.rebooted_at(None), Some(at(9)));
        let recreated = node("n").boot_id("c").uid("another").build();
        sightings.see(&recreated, &[], &net(), at(12));
        assert_eq!(sightings.rebooted_at(None), None);
    }

    #[test]
    fn what_was_written_before_a_reboot_is_told_from_what_was_written_since() {
        let booted = |id: &str| node("n").boot_id(id).build();
        let mut sightings = Sightings::default();
        sightings.see(&booted("a"), &written(0), &net(), at(1));
        sightings.see(&booted("b"), &written(0), &net(), at(10));
        assert!(!sightings.written_since("Net", at(10)));
        sightings.see(&booted("b"), &written(2), &net(), at(11));
        assert!(
            sightings.written_since("Net", at(10)),
            "seen to be written, whatever the reporter's clock says"
        );
        let mut after_a_restart = Sightings::default();
        after_a_restart.see(&booted("b"), &written(12), &net(), at(12));
        assert!(after_a_restart.written_since("Net", at(12)));
    }
}
