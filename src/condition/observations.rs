//! What this process has seen of one node over time, where the node's present state does not tell: when a condition was
//! last written, when the node came back from a reboot, and what has been renewed since. Nobody's clock is asked, only
//! whether what was written has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::api::ConditionStatus;
use crate::api::names::READY_DEADLINE_PREFIX;
use crate::object::{CsiNode, KUBELETS_CONDITIONS, Node};

/// How long after a reboot was seen evidence is doubted that has not been renewed, and that nobody may ever renew: a
/// condition whose reporter writes only what has changed, a CSI driver that registers exactly as before. Longer than the
/// 5 minutes in which reporters usually beat.
pub(super) const NOT_RENEWED: SignedDuration = SignedDuration::from_mins(6);

/// What this process has seen of one node over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observations {
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
    /// The CSI drivers that have been seen to be registered, or registered otherwise, since the present boot was seen.
    registered: BTreeSet<String>,
    /// The deadlines that are or have been on record, by the UID of their rule, of those rules that there are.
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
    /// What the reporter wrote last.
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
    /// There is no such condition.
    Never,
    /// This status, at this time by the reporter's own clock, where it tells.
    Wrote(ConditionStatus, Option<Timestamp>),
}

impl Heartbeat {
    fn new(kind: Arc<str>, last_write: LastWrite, in_this_boot: bool, now: Timestamp) -> Self {
        Self {
            kind,
            last_write,
            first_seen: now,
            moved: None,
            set_back: SignedDuration::ZERO,
            in_this_boot,
        }
    }
}

/// What a reporter wrote last, as a state of the node says.
fn last_write(node: &Node, kind: &str) -> LastWrite {
    node.condition(kind).map_or(LastWrite::Never, |condition| {
        LastWrite::Wrote(condition.status, condition.written)
    })
}

impl Observations {
    /// Takes in a state of the node, after the one that was known; answers whether a followed condition has been written.
    ///
    /// `followed` are the condition types of which somebody wants to know.
    pub fn see(
        &mut self,
        known: Option<&Node>,
        node: &Node,
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
        let known = known.filter(|known| known.uid == node.uid);
        self.follow(followed, known.unwrap_or(node), now);
        let mut any_moved = false;
        for heartbeat in &mut self.heartbeats {
            let last = last_write(node, &heartbeat.kind);
            let known = std::mem::replace(&mut heartbeat.last_write, last);
            if is_another_boot {
                heartbeat.in_this_boot = false;
            }
            if known != last {
                heartbeat.moved = Some(now);
                heartbeat.set_back = SignedDuration::ZERO;
                // What moved together with the boot ID may have been written shortly before the reboot.
                heartbeat.in_this_boot |=
                    !is_another_boot || KUBELETS_CONDITIONS.contains(&&*heartbeat.kind);
                any_moved = true;
            }
        }
        self.see_kubelet(node.kubelet_wrote());
        any_moved
    }

    /// Takes in that what was seen at this time may have happened long before: that a reporter wrote proves nothing then.
    pub fn saw_late(&mut self, now: Timestamp) {
        for heartbeat in &mut self.heartbeats {
            if heartbeat.moved == Some(now) {
                heartbeat.first_seen = now;
            }
        }
    }

    /// Takes in when the kubelet wrote, by its own clock, the state of the node that was seen last.
    fn see_kubelet(&mut self, wrote: Option<Timestamp>) {
        if let Some(boot) = &mut self.boot
            && let Some(wrote) = wrote.filter(|_| !self.is_boot_told)
        {
            boot.older = boot.older.max(wrote);
            self.is_boot_told = true;
        }
    }

    /// Takes in under which of these rules, by UID, the node has a deadline on record. Others are forgotten: a kubelet may
    /// write any number of such annotations.
    pub fn see_deadlines(&mut self, node: &Node, rules: &BTreeSet<Arc<str>>) {
        self.deadlines.retain(|uid, _| rules.contains(uid));
        for (key, value) in node.annotations.iter().flatten() {
            let uid = key.strip_prefix(READY_DEADLINE_PREFIX);
            let Some(uid) = uid.filter(|uid| rules.contains(*uid)) else {
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
        // One that comes again is news.
        self.registered
            .retain(|name| drivers.iter().any(|it| it.name == *name));
    }

    /// Follows exactly these condition types from now on. What the node says of them now is no sign of life, since it may have been
    /// written long ago; but silence counts from here.
    pub fn follow(&mut self, followed: &BTreeSet<Arc<str>>, node: &Node, now: Timestamp) {
        self.heartbeats
            .retain(|heartbeat| followed.contains(&heartbeat.kind));
        let is_long_ago = |boot: Timestamp| now.duration_since(boot) >= NOT_RENEWED;
        let in_this_boot = self.boot.is_some_and(|boot| is_long_ago(boot.seen));
        for kind in followed {
            if !self.heartbeats.iter().any(|known| known.kind == *kind) {
                let last_write = last_write(node, kind);
                let heartbeat = Heartbeat::new(kind.clone(), last_write, in_this_boot, now);
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

    /// Takes the reporters' own word for when they wrote last, and the kubelet's for when the present boot began: for whoever
    /// sees the node only once, and so cannot measure it.
    pub fn take_reporters_word(&mut self, node: &Node, now: Timestamp) {
        for heartbeat in &mut self.heartbeats {
            if let LastWrite::Wrote(_, Some(at)) = heartbeat.last_write {
                heartbeat.first_seen = at.min(now);
            }
        }
        let ready = node.condition(KUBELETS_CONDITIONS[0]);
        let began = ready.and_then(|ready| ready.transition).or(node.created);
        if let (Some(boot), Some(began)) = (&mut self.boot, began) {
            (boot.seen, boot.older) = (began.min(now), began.min(now));
            for heartbeat in &mut self.heartbeats {
                let wrote = match heartbeat.last_write {
                    LastWrite::Wrote(_, at) => at,
                    LastWrite::Never => None,
                };
                heartbeat.in_this_boot = wrote.is_some_and(|at| at >= began);
            }
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
                LastWrite::Never => None,
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
