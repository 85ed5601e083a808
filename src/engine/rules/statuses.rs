//! Writes the rules' statuses: when they have changed, at a limited rate, and again if someone else has overwritten them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tracing::{debug, info, warn};

use super::{RuleWork, Rules};
use crate::cache::{Cache, CachedRule};
use crate::count::Count;
use crate::error::RequestError;
use crate::io::Request;
use crate::map::{Set, hash};
use crate::nodes::{Nodes, tally};
use crate::notice::{self, Notice};
use crate::outbox::{Job, Outbox};
use crate::pacer::Class;
use crate::patch;
use crate::repairs::{obstacle, prospects};
use crate::status::{
    self, Basis, CONFLICTED, DISRUPTION_LIMITED, HELD_BACK, OUTSIDE_NAMESPACES, REPAIR_UNAVAILABLE,
    SHUT_OUT, Tally,
};
use crate::told::Subject;
use nodegate_core::api::NodeReadinessRuleStatus;
use nodegate_core::guard::Guard;
use nodegate_core::object::{Node, Version};

const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// A status that takes long is written less often: it may take a tenth of the time, but need not wait for longer than this.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);
/// How long a first change waits for related ones.
const STATUS_DELAY: Duration = Duration::from_millis(200);

/// How often at most a status is written only because someone else has overwritten it.
const HEAL_INTERVAL: Duration = Duration::from_secs(10);
/// The same while this instance suspends all rules, and another one works: what that one says is true more often.
const YIELD_INTERVAL: Duration = Duration::from_secs(600);
/// When a status that an older CRD pruned is tried again.
const PRUNED_INTERVAL: Duration = Duration::from_secs(30);
/// The conditions that are logged as they begin to hold, and announced under the same names if there are such Events.
const TOLD: [&str; 6] = [
    DISRUPTION_LIMITED,
    REPAIR_UNAVAILABLE,
    CONFLICTED,
    HELD_BACK,
    SHUT_OUT,
    OUTSIDE_NAMESPACES,
];

impl RuleWork {
    /// Schedules a comparison of the status, together with other changes within a moment.
    pub fn status_changed(&mut self, out: &mut Outbox) {
        let written = self.written_at;
        let soon = out.now.monotonic + STATUS_DELAY;
        let interval = (self.took * 10).clamp(STATUS_INTERVAL, LONGEST_INTERVAL);
        let at = written.map_or(soon, |written| soon.max(written + interval));
        if !out.want(Job::Status(self.uid.clone()), at) {
            out.count(Count::StatusCoalesced);
        }
    }

    /// Takes in the API server's status. One that someone else overwrote, or an older CRD pruned, is rewritten at a limited rate.
    fn see_status(&mut self, cached: &CachedRule, suspends_all: bool, out: &mut Outbox) {
        if cached.rule.uid != self.uid {
            return;
        }
        let now = out.now.monotonic;
        let written = &mut self.written;
        if !written.shown(&cached.object.status, cached.object.version()) {
            if written.is_pruned() {
                out.want(Job::Status(self.uid.clone()), now + PRUNED_INTERVAL);
            }
            return;
        }
        let healed = self.healed_at;
        if healed.is_some_and(|healed| healed > now) {
            // Already scheduled.
            return;
        }
        let soon = now + STATUS_DELAY;
        let theirs = &cached.object.status.nodegate;
        let interval = match theirs {
            Some(_) if suspends_all => YIELD_INTERVAL,
            _ => HEAL_INTERVAL,
        };
        let at = healed.map_or(soon, |healed| soon.max(healed + interval));
        self.healed_at = Some(at);
        let rule = &self.name;
        match theirs {
            Some(theirs) => warn!(
                %rule, state = %theirs.state,
                "another Nodegate has written the rule's status, or a backup was restored; writing it again: where two run, give both --leader-elect"
            ),
            None => {
                info!(%rule, "another client has written over the rule's status; writing it again");
            }
        }
        out.want(Job::Status(self.uid.clone()), at);
    }
}

impl Rules {
    pub fn see_statuses(&mut self, shown: Set<Arc<str>>, cache: &Cache, out: &mut Outbox) {
        let suspends_all = cache.rules.suspends_all;
        for name in shown {
            if let Some(cached) = cache.rules.all.get(&name)
                && let Some(work) = self.works.get_mut(&cached.rule.uid)
            {
                work.see_status(cached, suspends_all, out);
            }
        }
    }

    /// Writes the statuses that are due and have changed, as long as the pacer permits it, and no more than the allowance.
    pub fn write_statuses(
        &mut self,
        cache: &Cache,
        nodes: &Nodes,
        is_busy: bool,
        out: &mut Outbox,
    ) {
        while self.allowance > 0
            && let Some(job) = out.next(Class::Rule, is_busy)
        {
            if let Job::Status(uid) = job {
                self.write_status(&uid, cache, nodes, out);
            }
        }
    }

    fn write_status(&mut self, uid: &Arc<str>, cache: &Cache, nodes: &Nodes, out: &mut Outbox) {
        let Some(work) = self.works.get_mut(uid) else {
            return;
        };
        let Some(cached) = cache.rules.all.get(&work.name) else {
            return;
        };
        let rule = &*cached.rule;
        let now = out.now.monotonic;
        let attempt = &work.status;
        let is_under_way = attempt.under_way.then_some(now + STATUS_DELAY);
        let yields = work
            .healed_at
            .filter(|at| cache.rules.suspends_all && *at > now);
        if let Some(at) = is_under_way.or(yields).or(attempt.backoff.not_before(now)) {
            out.want(Job::Status(uid.clone()), at);
            return;
        }
        // Nothing was done for a rule that is not adopted. A deleted rule's status only says what holds up its deletion.
        if rule.spec.is_ok() && !rule.is_taken_on() {
            return;
        }
        self.allowance = self.allowance.saturating_sub(1 + nodes.len());
        let tally = tally(uid, nodes);
        if rule.deleting && !tally.has_unfinished() {
            return;
        }
        if !std::mem::replace(&mut work.is_current, true) {
            let (backing, size) = cache.backing(rule);
            work.backing = backing;
            self.allowance = self.allowance.saturating_sub(size);
        }
        let status = work.status(cached, &tally, cache, self.node_limit, out.now.wall);
        work.tell(cached, &status, cache, out);
        let is_there =
            status == cached.object.status && work.written.is_seen_as_of(cached.object.version());
        if is_there || work.written.stands_as(&status) {
            out.count(Count::StatusSpared);
            if is_there {
                work.written.writes(status);
                work.written.was_answered(cached.object.version());
            }
            return;
        }
        debug!(rule = %rule.name, "writing status");
        work.status.under_way = true;
        work.written_at = Some(now);
        let request = Request::PatchRuleStatus(work.name.clone(), patch::rule_status(uid, &status));
        work.written.writes(status);
        out.ask(Job::Status(uid.clone()), request);
    }

    pub fn status_answered(
        &mut self,
        uid: &Arc<str>,
        result: Result<Version, RequestError>,
        cache: &Cache,
        out: &mut Outbox,
    ) {
        let Some(work) = self.works.get_mut(uid) else {
            return;
        };
        let now = out.now.monotonic;
        work.took = work.written_at.map_or(Duration::ZERO, |it| now - it);
        let attempt = &mut work.status;
        attempt.ended(result.as_ref().err(), now);
        match result {
            Ok(version) => {
                work.written.was_answered(version);
                // The watch may have been faster than the response.
                if let Some(cached) = cache.rules.all.get(&work.name) {
                    work.see_status(cached, cache.rules.suspends_all, out);
                }
            }
            // Also if the rule is said to be gone: an API server that has just started may say so of a rule that exists.
            Err(error) => {
                work.written.failed();
                attempt.backoff.wait_until(now + STATUS_INTERVAL);
                if error.is_refusal() && attempt.refusals == 1 {
                    work.tell_refusal(&notice::STATUS_UNWRITTEN, &error, out);
                }
                if error.is_refusal() || error == RequestError::Conflict {
                    warn!(rule = %work.name, "cannot write the rule's status: {error}");
                }
                out.want(Job::Status(uid.clone()), now + STATUS_INTERVAL);
            }
        }
    }
}

impl RuleWork {
    fn status(
        &self,
        cached: &CachedRule,
        tally: &Tally<'_>,
        cache: &Cache,
        node_limit: usize,
        now: Timestamp,
    ) -> NodeReadinessRuleStatus {
        let rule = &*cached.rule;
        let is_selected = |node: &&Node| {
            let mut spec = rule.spec.iter().filter(|_| !node.deleting);
            spec.any(|spec| spec.selector.matches(&node.labels))
                && cache.stores.unreadable.left_alone(&node.name).is_none()
        };
        let to_evaluate = (cache.schedule.len() > 0).then(|| cache.nodes.nodes());
        status::build(
            tally,
            Basis {
                rule,
                suspends_all: cache.rules.suspends_all,
                backing: &self.backing,
                disruption: self.guard.as_ref().map(Guard::report).as_ref(),
                first_limit: self.first_limit,
                held_back: self.first_gating.refused,
                permission: self.first_gating.permission(tally).as_ref(),
                setbacks: &self.setbacks,
                selected: to_evaluate.map_or(0, |nodes| nodes.filter(is_selected).count()),
                nodes: cache.nodes.names().count(),
                governors: &cache.cluster().rules.governors_of(rule),
                prospects: prospects(cache, tally, rule, now),
                obstacle: obstacle(cache, rule).as_deref(),
                node_limit,
                previous: self.written.or(&cached.object.status),
                now,
            },
        )
    }

    /// Logs and announces which conditions begin to hold with a new status.
    fn tell(
        &mut self,
        cached: &CachedRule,
        status: &NodeReadinessRuleStatus,
        cache: &Cache,
        out: &mut Outbox,
    ) {
        let rule = &*cached.rule;
        let report = self.guard.as_ref().map(Guard::report);
        let zones = report.iter().flat_map(|report| &report.zones);
        let states: Vec<_> = zones.map(|it| (&it.zone, it.state)).collect();
        let governors = cache.cluster().rules.governors_of(rule);
        for kind in TOLD {
            let holding = status::holding(status, kind);
            let words = holding.map(|it| match kind {
                // The messages of the first three change with each node.
                DISRUPTION_LIMITED => hash(&states),
                CONFLICTED => hash((&it.reason, &governors)),
                HELD_BACK => hash(&it.reason),
                _ => hash((&it.reason, &it.message)),
            });
            let subject = Subject::new(kind);
            let is_known = self.told.has(subject);
            // What stood in the status when this process began was told then; but the guard has started over.
            let before = self.written.or(&cached.object.status);
            let stood = kind != DISRUPTION_LIMITED && status::holding(before, kind).is_some();
            let due = self.told.due(subject, &self.uid, words, out.now.monotonic);
            let is_news = due.is_some() && (is_known || !stood);
            if let Some(it) = holding.filter(|_| is_news) {
                warn!(rule = %rule.name, "{}", it.message);
                if let Some(topic) = notice::TOPICS.iter().find(|it| it.reason == kind) {
                    out.tell(Notice::on_rule(rule, topic, it.message.clone()));
                }
            } else if holding.is_none() && is_known {
                info!(rule = %rule.name, "{kind} holds no more");
            }
        }
    }
}
