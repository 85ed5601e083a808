//! What this process has observed of one node over time: writes of conditions, reboots, and what was renewed since. It compares no
//! clocks, but only whether a written value has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::source::is_ours;
use crate::api::ConditionStatus;
use crate::api::names::{READY_DEADLINE_PREFIX, TAINT_ADDED_BY_PREFIX};
use crate::guard::Zone;
use crate::object::{CsiDriver, CsiNode, KUBELETS_CONDITIONS, Node};

/// How long after a reboot evidence does not count that may never be renewed: longer than the usual heartbeat interval.
pub(super) const NOT_RENEWED: SignedDuration = SignedDuration::from_mins(6);

/// How long a label must have been gone or otherwise: a labeller that restarts takes 3.5 minutes for 2,000 nodes.
pub(crate) const LABELS_LAST: SignedDuration = SignedDuration::from_mins(5);
/// How many values of labels that have changed are remembered of a node: a kubelet may change any number.
const MOST_FORMER: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observations {
    node_uid: Arc<str>,
    /// The last known boot ID; empty before the node has reported any.
    boot_id: Arc<str>,
    boot: Option<Reboot>,
    /// Whether the kubelet has reported, by its own clock, when that was.
    is_boot_told: bool,
    /// Whether this process saw the boot ID change.
    rebooted: bool,
    heartbeats: Vec<Heartbeat>,
    /// The CSI drivers whose registration, or a change of it, was observed since the present boot was seen.
    pub(super) registered: BTreeSet<String>,
    /// The deadlines that are or were on record, by the UID of their rule, for existing rules.
    deadlines: BTreeMap<Arc<str>, SeenDeadline>,
    /// The labels that the node had until a moment ago, by key and value (`None`: it had none), and when each went.
    former: BTreeMap<(String, Option<String>), Timestamp>,
    /// The zone that the node named when this process first saw it set up. What a kubelet writes later does not move it.
    pub home: Zone,
    /// When this process first saw the node, if an earlier one has left something on it; otherwise long ago.
    pub(super) first_seen: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reboot {
    /// When the new boot was first seen; waiting periods start here.
    pub seen: Timestamp,
    /// Evidence dated before this time is from before the reboot: the later of the kubelet's first report of the new boot, by
    /// its own clock, and when that was seen.
    pub older: Timestamp,
    /// The same for what the kubelet dates: that report, however late it was seen, unless the reboot may have set its clock back.
    pub older_by_kubelet: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenDeadline {
    value: Box<str>,
    /// How far the clock has been set since: forward, or back.
    step: SignedDuration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heartbeat {
    kind: Arc<str>,
    last_write: LastWrite,
    /// From when on silence counts: the first observation, or the end of a gap in observation.
    first_seen: Timestamp,
    /// When this process last saw the reporter write.
    moved: Option<Timestamp>,
    /// How far this process's clock has been set back since then, or forward.
    set_back: SignedDuration,
    /// Whether this process saw the reporter write since it saw the present boot. Also true if it started to follow the
    /// condition long after the boot, or after the reporter wrote by its own clock, since the kubelet reported the boot.
    pub in_this_boot: bool,
}

/// A reporter's last write, if there was one: the status, and when that was by the reporter's own clock, if it says so.
type LastWrite = Option<(ConditionStatus, Option<Timestamp>)>;

impl Heartbeat {
    fn wrote(&self) -> Option<Timestamp> {
        self.last_write.and_then(|(_, at)| at)
    }

    pub(super) fn silent_since(&self) -> Timestamp {
        self.moved.unwrap_or(self.first_seen).max(self.first_seen)
    }

    /// Whether no write was seen since silence counts, and the last one is outside `recently` by the reporter's clock.
    pub(super) fn is_unproven(&self, recently: &RangeInclusive<Timestamp>) -> bool {
        let has_moved = self.moved > Some(self.first_seen);
        let set_back = self.set_back.max(SignedDuration::ZERO);
        let wrote = self.wrote().and_then(|at| at.checked_sub(set_back).ok());
        !has_moved && wrote.is_some_and(|at| !recently.contains(&at))
    }
}

/// Whether a controller has published conditions on the node, or owns a taint of it.
fn has_a_past(node: &Node) -> bool {
    let mut conditions = node.conditions.iter();
    let mut owners = node.annotations_about(TAINT_ADDED_BY_PREFIX);
    conditions.any(|it| is_ours(&it.kind, &it.reason)) || owners.next().is_some()
}

fn last_write(node: &Node, kind: &str) -> LastWrite {
    let condition = node.condition(kind)?;
    Some((condition.status, condition.written()))
}

impl Observations {
    /// Observes the next state of the node; returns whether a condition of these `followed` types has been written.
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
        // A node that reports no boot ID is not assumed to have rebooted.
        let is_another_boot = !node.boot_id.is_empty() && self.boot_id != node.boot_id;
        if is_another_boot {
            self.rebooted = !self.boot_id.is_empty();
            self.boot_id = node.boot_id.clone();
            self.boot = Some(Reboot {
                seen: now,
                older: now,
                older_by_kubelet: now,
            });
            self.is_boot_told = false;
            self.registered.clear();
        }
        let known = known.filter(|known| known.uid == node.uid);
        if known.is_none_or(|known| !known.is_introduced()) {
            self.home = Zone::of(node.provider_id.as_deref(), &node.labels);
        }
        match known {
            Some(known) => self.see_labels(known, node, now),
            None if has_a_past(node) => self.first_seen = now,
            None => {}
        }
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
                // What changed together with the boot ID may have been written shortly before the reboot.
                heartbeat.in_this_boot |=
                    !is_another_boot || KUBELETS_CONDITIONS.contains(&&*heartbeat.kind);
                any_moved = true;
            }
        }
        if let Some(boot) = &mut self.boot
            && let Some(wrote) = node.kubelet_wrote().filter(|_| !self.is_boot_told)
        {
            let before = known.and_then(Node::kubelet_wrote);
            let clock_went_on = before.is_some_and(|before| before < wrote);
            boot.older = boot.older.max(wrote);
            boot.older_by_kubelet = if clock_went_on { wrote } else { boot.older };
            self.is_boot_told = true;
        }
        any_moved
    }

    /// Notes how labels have changed, and forgets what has lasted.
    pub fn see_labels(&mut self, known: &Node, node: &Node, now: Timestamp) {
        self.former.retain(|_, at| now < *at + LABELS_LAST);
        if known.labels == node.labels {
            return;
        }
        for key in known.labels.keys().chain(node.labels.keys()) {
            let was = known.labels.get(key);
            if was != node.labels.get(key) && self.former.len() < MOST_FORMER {
                self.former.insert((key.clone(), was.cloned()), now);
            }
        }
    }

    /// Whether anything may have been otherwise a moment ago: something was, or this process had not seen the node yet.
    pub fn recall_anything(&self, now: Timestamp) -> bool {
        !self.former.is_empty() || now < self.first_seen + LABELS_LAST
    }

    /// The last value of a label that fits, of those that it had until a moment ago, and when it went.
    pub(super) fn former_label(
        &self,
        key: &str,
        fits: impl Fn(Option<&str>) -> bool,
    ) -> Option<(Option<&str>, Timestamp)> {
        if self.former.is_empty() {
            return None;
        }
        let values = self.former.range((key.to_owned(), None)..);
        let values = values.take_while(|((it, _), _)| it == key);
        let values = values.map(|((_, value), at)| (value.as_deref(), *at));
        values
            .filter(|(value, _)| fits(*value))
            .max_by_key(|(_, at)| *at)
    }

    /// Notes that the last observation may be long outdated, so that it proves no recent write.
    pub fn saw_late(&mut self, now: Timestamp) {
        for heartbeat in &mut self.heartbeats {
            if heartbeat.moved == Some(now) {
                heartbeat.first_seen = now;
            }
        }
    }

    /// Notes the node's recorded deadlines under these rules, by UID; a kubelet could write any number of others.
    pub fn see_deadlines(&mut self, node: &Node, rules: &BTreeSet<Arc<str>>) {
        self.deadlines.retain(|uid, _| rules.contains(uid));
        let recorded = node.annotations_about(READY_DEADLINE_PREFIX);
        for (uid, value) in recorded.filter(|(uid, _)| rules.contains(*uid)) {
            if self.deadlines.get(uid).is_none_or(|it| *it.value != *value) {
                let deadline = SeenDeadline {
                    value: value.into(),
                    step: SignedDuration::ZERO,
                };
                self.deadlines.insert(uid.into(), deadline);
            }
        }
    }

    /// Notes a change of the node's `CSINode`. Not for its first observation, whose age is unknown.
    pub fn see_csi_node(&mut self, before: Option<&CsiNode>, now: Option<&CsiNode>) {
        let drivers = now.map_or(&[][..], |csi_node| &csi_node.drivers);
        let known = |name: &str| before.and_then(|before| before.driver(name));
        let is_news = |driver: &&CsiDriver| known(&driver.name) != Some(driver);
        let names = drivers.iter().filter(is_news).map(|it| it.name.clone());
        self.registered.extend(names);
        // A driver that is registered again later counts again.
        self.registered
            .retain(|name| now.is_some_and(|now| now.driver(name).is_some()));
    }

    /// Follows exactly these condition types. Present values may be old, so they are no heartbeat; silence counts from now on.
    pub fn follow(&mut self, followed: &BTreeSet<Arc<str>>, node: &Node, now: Timestamp) {
        self.heartbeats.retain(|it| followed.contains(&it.kind));
        let is_of_boot = |wrote: LastWrite, boot: Reboot| {
            let wrote = wrote.and_then(|(_, at)| at);
            now.duration_since(boot.seen) >= NOT_RENEWED
                || wrote.is_some_and(|at| at.as_second() > boot.older.as_second())
        };
        for kind in followed {
            if !self.heartbeats.iter().any(|known| known.kind == *kind) {
                let last_write = last_write(node, kind);
                let in_this_boot = self.boot.is_some_and(|it| is_of_boot(last_write, it));
                self.heartbeats.push(Heartbeat {
                    kind: kind.clone(),
                    last_write,
                    first_seen: now,
                    moved: None,
                    set_back: SignedDuration::ZERO,
                    in_this_boot,
                });
            }
        }
    }

    /// Counts all silence from now on, after a gap in observation.
    pub fn restart(&mut self, now: Timestamp) {
        for heartbeat in &mut self.heartbeats {
            heartbeat.first_seen = now;
        }
    }

    /// Trusts the reporters' and the kubelet's own times, for callers that see the node only once and cannot observe changes.
    pub fn trust_reporters(&mut self, node: &Node, now: Timestamp) {
        for heartbeat in &mut self.heartbeats {
            if let Some(at) = heartbeat.wrote() {
                heartbeat.first_seen = at.min(now);
            }
        }
        let ready = node.condition(KUBELETS_CONDITIONS[0]);
        let began = ready.and_then(|ready| ready.transition).or(node.created);
        if let (Some(boot), Some(began)) = (&mut self.boot, began) {
            let began = began.min(now);
            *boot = Reboot {
                seen: began,
                older: began,
                older_by_kubelet: began,
            };
            for heartbeat in &mut self.heartbeats {
                heartbeat.in_this_boot = heartbeat.wrote().is_some_and(|at| at >= began);
            }
        }
    }

    /// Counts all silence and waiting from now on, because the clock was set by `step`; no deadline comes sooner by that.
    pub fn measure_anew(&mut self, now: Timestamp, step: SignedDuration) {
        for deadline in self.deadlines.values_mut() {
            deadline.step += step;
        }
        if let Some(boot) = &mut self.boot {
            boot.seen = now;
        }
        if self.first_seen != Timestamp::default() {
            self.first_seen = now;
        }
        self.former.values_mut().for_each(|at| *at = now);
        for heartbeat in &mut self.heartbeats {
            heartbeat.first_seen = now;
            heartbeat.moved = heartbeat.moved.map(|_| now);
            heartbeat.set_back -= step;
        }
    }

    /// How far the clock was set forward since the deadline under the rule with this UID was recorded; `None` without a record.
    pub fn set_forward_since_deadline(&self, rule_uid: &str) -> Option<SignedDuration> {
        Some(self.deadlines.get(rule_uid)?.step.max(SignedDuration::ZERO))
    }

    /// That of this condition; `None` if it is not followed.
    pub(super) fn heartbeat(&self, kind: &str) -> Option<&Heartbeat> {
        self.heartbeats.iter().find(|it| *it.kind == *kind)
    }

    /// When the present boot was first seen, if the node rebooted since `last_boot`, a recorded ID, or while it was observed.
    pub fn reboot(&self, last_boot: Option<&str>) -> Option<Reboot> {
        let is_another = last_boot.is_some_and(|last| *last != *self.boot_id);
        self.boot
            .filter(|_| !self.boot_id.is_empty() && (self.rebooted || is_another))
    }
}
