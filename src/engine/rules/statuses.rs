//! What the reconcile loop does for the rules' statuses: written when something in them has changed, not too often, and
//! again where somebody else has written over them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::{debug, info, warn};

use super::{RuleWork, Write};
use crate::controller::events::{EventSink, Notice, Tone};
use crate::engine::Backoff;
use crate::engine::RequestError;
use crate::engine::cache::{Cache, CachedRule};
use crate::engine::reconcile::{Done, Reconciler, Timer, Timers};
use crate::engine::status::{self, About, Written};
use crate::engine::{patch, repairs};
use crate::object::Version;
use crate::plan::PassedOver;
use crate::rule::Rule;

/// The status of a rule is written at most this often.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// How long a first change waits for others that belong to it.
const STATUS_DELAY: Duration = Duration::from_millis(200);
/// How long a status is put off in favour of taint writes: to name its nodes costs the API server as much as several of
/// those.
const STATUS_PATIENCE: Duration = Duration::from_secs(3);

/// How often at most a status is written only because somebody else has written over it.
const HEAL_INTERVAL: Duration = Duration::from_secs(10);

/// What is under way for one rule's status.
#[derive(Debug, Default)]
pub(super) struct StatusWork {
    /// When to see what there is to write; `None` while nothing has changed.
    due: Option<Instant>,
    write: Write,
    written_at: Option<Instant>,
    written: Written,
    /// When it was last to be written only because somebody else had written over it.
    healed_at: Option<Instant>,
}

impl RuleWork {
    /// Has the status looked at, together with what else changes within a moment.
    pub(in crate::engine) fn status_changed(&mut self, timers: &mut Timers) {
        let written = self.status.written_at;
        let soon = Instant::now() + STATUS_DELAY;
        let at = written.map_or(soon, |written| soon.max(written + STATUS_INTERVAL));
        if self.status.due.is_some_and(|due| due <= at) {
            self.coalesced.inc();
        } else {
            self.look_again(at, timers);
        }
    }

    /// Takes in the status as the API server holds it. Where somebody else has written over it, it is written again, but
    /// not as often as they may care to.
    fn see_status(&mut self, held: &CachedRule, timers: &mut Timers) {
        if held.rule.uid != self.uid || !self.status.written.shown(&held.status, held.version) {
            return;
        }
        let now = Instant::now();
        let healed = self.status.healed_at;
        if healed.is_some_and(|healed| healed > now) {
            // It is going to be.
            return;
        }
        let soon = now + STATUS_DELAY;
        let at = healed.map_or(soon, |healed| soon.max(healed + HEAL_INTERVAL));
        self.status.healed_at = Some(at);
        info!(rule = %self.name, "somebody else has written over the rule's status; writing it again");
        if self.status.due.is_none_or(|due| at < due) {
            self.look_again(at, timers);
        }
    }

    fn look_again(&mut self, at: Instant, timers: &mut Timers) {
        self.status.due = Some(at);
        timers.insert((at, Timer::Rule(self.uid.clone())));
    }
}

impl Reconciler {
    /// Takes in the statuses that watches have shown.
    pub(in crate::engine) fn see_statuses(&mut self) {
        for name in self.cache.take_shown_statuses() {
            if let Some(held) = self.cache.rules().get(&name)
                && let Some(work) = self.rules.get_mut(&held.rule.uid)
            {
                work.see_status(held, &mut self.timers);
            }
        }
    }

    /// Writes a rule's status, if it is time to and anything in it has changed.
    pub(super) fn tend_status(&mut self, uid: &Arc<str>) {
        let is_busy = self.is_busy();
        let Some(work) = self.rules.get_mut(uid) else {
            return;
        };
        let Some(cached) = self.cache.rules().get(&work.name) else {
            return;
        };
        let rule = &*cached.rule;
        let now = Instant::now();
        let Some(due) = work.status.due.filter(|due| *due <= now) else {
            return;
        };
        if work.status.write.under_way {
            return;
        }
        if is_busy && now < due + STATUS_PATIENCE {
            let soon = now + STATUS_DELAY;
            self.timers.insert((soon, Timer::Rule(uid.clone())));
            return;
        }
        if let Some(at) = self.writer.limiter.not_before() {
            self.timers.insert((at, Timer::Rule(uid.clone())));
            return;
        }
        work.status.due = None;
        // Before its finalizer is there, nothing has been done for a rule; after its deletion, nobody reads on, unless
        // to find out what keeps it.
        if (rule.deleting && !work.tally.has_unfinished()) || (rule.spec.is_ok() && !rule.finalizer)
        {
            return;
        }
        look_for_passed_over(&self.cache, &self.events, work, rule);
        let obstacle = repairs::obstacle(&self.cache, rule);
        if let Some(obstacle) = &obstacle
            && work.obstacle != Some(obstacle.clone())
        {
            warn!(rule = %rule.name, "the rule cannot repair any node: {obstacle}");
        }
        work.obstacle.clone_from(&obstacle);
        let guarded = work.disruption.as_mut();
        let disruption = guarded.map(|disruption| disruption.tell(&self.events, rule));
        let governors = self.cache.cluster().rules.governors_of(rule);
        let about = About {
            rule,
            passed_over: &work.passed_over,
            disruption: disruption.as_ref(),
            governors: &governors,
            prospects: repairs::prospects(&self.cache, &work.tally, rule, Timestamp::now()),
            obstacle: obstacle.as_deref(),
            node_limit: self.settings.status_node_limit,
            previous: work.status.written.status().unwrap_or(&cached.status),
            now: Timestamp::now(),
        };
        let status = status::build(&work.tally, about);
        let is_there = status == cached.status;
        if is_there || work.status.written.stands_as(&status) {
            self.metrics.status_unchanged.inc();
            if is_there {
                work.status.written.found(status, cached.version);
            }
            return;
        }
        debug!(rule = %rule.name, "writing status");
        work.status.write.under_way = true;
        work.status.written_at = Some(now);
        let patch = patch::rule_status(uid, &status);
        work.status.written.writes(status);
        let (writer, uid, name) = (self.writer.clone(), uid.clone(), work.name.clone());
        self.start(async move {
            let result = writer.patch_rule_status(&name, patch).await;
            Done::Status { uid, result }
        });
    }

    pub(in crate::engine) fn finish_status(
        &mut self,
        uid: &Arc<str>,
        result: Result<Version, RequestError>,
    ) {
        let Some(work) = self.rules.get_mut(uid) else {
            return;
        };
        work.status.write.under_way = false;
        match result {
            Ok(version) => {
                work.status.write.retry = Backoff::default();
                work.status.written.was_answered(version);
                if let Some(status) = work.status.written.status().cloned() {
                    self.cache.wrote_status(uid, &work.name, status, version);
                }
                // The watch may have been faster.
                if let Some(held) = self.cache.rules().get(&work.name) {
                    work.see_status(held, &mut self.timers);
                }
                // What changed while the write was under way waits for its turn.
                if let Some(due) = work.status.due {
                    let at = due.max(Instant::now());
                    work.look_again(at, &mut self.timers);
                }
            }
            // Also where the rule is said to be gone, which an API server that has only just started may say of one
            // that is there.
            Err(error) => {
                work.status.written.failed();
                let retry = &mut work.status.write.retry;
                if error.is_refusal() || error == RequestError::Conflict {
                    warn!(rule = %work.name, "cannot write the rule's status: {error}");
                }
                let now = Instant::now();
                let at = retry.failed(error.pauses(), now).max(now + STATUS_INTERVAL);
                work.look_again(at, &mut self.timers);
            }
        }
    }
}

/// Finds out which labelled `DaemonSet`s the rule does not wait for, and tells when that has changed.
fn look_for_passed_over(cache: &Cache, events: &EventSink, work: &mut RuleWork, rule: &Rule) {
    let Some(spec) = rule.live() else {
        work.passed_over.clear();
        return;
    };
    let found = PassedOver::by_rule(spec, cache.cluster(), || cache.nodes());
    let known = std::mem::replace(&mut work.passed_over, found);
    for (why, reason, _) in status::PASSED_OVER {
        let message = |passed_over| status::passed_over_message(spec, passed_over, why);
        if let Some(note) = message(&work.passed_over)
            && message(&known).as_ref() != Some(&note)
        {
            warn!(rule = %rule.name, "{note}");
            events.send(Notice::on_rule(
                rule,
                Tone::Warning,
                reason,
                "Evaluate",
                note,
            ));
        }
    }
}
