//! The rules, with their finalizers and deletion.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use kube::Resource;
use tracing::{info, warn};

use super::work::RuleWork;
use crate::api::names::FINALIZER;
use crate::engine::cache::{Cache, CachedRule};
use crate::engine::effects::{Effects, Job};
use crate::engine::error::RequestError;
use crate::engine::gating::Gating;
use crate::engine::io::{Count, Request};
use crate::engine::map::{Map, Set};
use crate::engine::notice::Notice;
use crate::engine::pacer::Class;
use crate::engine::patch;
use crate::guard::Limits;
use crate::object::{RuleObject, Watched};
use crate::rule::Rule;

/// How many nodes the statuses built in one go may cover: a few milliseconds' work.
const NODES_IN_STATUSES: usize = 50_000;

/// After this many refusals of our finalizer (about ten seconds), other rules stop waiting for it.
const REFUSALS: u32 = 8;

/// The rules, each with its state.
#[derive(Debug)]
pub struct Rules {
    pub(super) works: Map<Arc<str>, RuleWork>,
    /// UIDs of the rules to process. Those that need their finalizers written come first.
    queue: VecDeque<Arc<str>>,
    /// For how many nodes statuses may still be built before other work is done.
    pub(super) allowance: usize,
    /// The limits of disruption guards, for what a rule's `disruption` leaves out.
    pub(super) gating_limits: Limits,
    pub(super) node_limit: usize,
}

impl Rules {
    pub fn new(gating_limits: Limits, node_limit: usize) -> Self {
        Self {
            works: Map::default(),
            queue: VecDeque::new(),
            allowance: 0,
            gating_limits,
            node_limit,
        }
    }

    pub fn works(&self) -> impl Iterator<Item = &RuleWork> {
        self.works.values()
    }

    /// Takes in the current set of rules.
    pub fn sync(&mut self, cache: &Cache, out: &mut Effects) {
        let known: Set<_> = cache
            .rules()
            .values()
            .map(|cached| cached.rule.uid.clone())
            .collect();
        self.works.retain(|uid, work| {
            let stays = known.contains(uid);
            if !stays {
                out.count(Count::RuleWent {
                    rule: work.name.clone(),
                });
            }
            stays
        });
        for cached in cache.rules().values() {
            self.sync_rule(&cached.rule, cache, out);
        }
        for cached in cache.rules().values() {
            if !cached.rule.finalizer {
                self.wake_first(&cached.rule.uid);
            }
        }
    }

    fn sync_rule(&mut self, rule: &Rule, cache: &Cache, out: &mut Effects) {
        let mut is_taken_over = false;
        let work = self.works.entry(rule.uid.clone()).or_insert_with(|| {
            is_taken_over = rule.finalizer;
            out.count(Count::RuleCame {
                rule: rule.name.clone(),
            });
            RuleWork::new(rule)
        });
        work.gating = Gating::for_spec(
            rule.active().filter(|_| !rule.deleting),
            work.gating.take(),
            self.gating_limits,
        );
        // Another process may just have closed nodes, or nobody could for a while.
        if (is_taken_over || rule.is_suspended())
            && let Some(gating) = &mut work.gating
        {
            gating.start_over();
        }
        if rule.deleting && work.pending.is_none() {
            info!(rule = %rule.name, "rule is being deleted; cleaning its nodes");
            work.pending = Some(cache.node_names().cloned().collect());
        }
        let told = Some((rule.generation, rule.pruned));
        match rule.trouble() {
            None => work.rejected = None,
            Some(why) if std::mem::replace(&mut work.rejected, told) != told => {
                warn!(rule = %rule.name, "rule cannot be used: {why}");
                out.tell(Notice::of_rejection(rule, &why));
            }
            Some(_) => {}
        }
        work.status_changed(out);
    }

    /// Queues a rule whose timer has fired.
    pub fn wake(&mut self, uid: &Arc<str>) {
        if let Some(work) = self.works.get_mut(uid)
            && !std::mem::replace(&mut work.is_queued, true)
        {
            self.queue.push_back(uid.clone());
        }
    }

    /// Queues a rule in front: finalizers are written before any status.
    fn wake_first(&mut self, uid: &Arc<str>) {
        if let Some(work) = self.works.get_mut(uid)
            && !std::mem::replace(&mut work.is_queued, true)
        {
            self.queue.push_front(uid.clone());
        }
    }

    /// Processes queued rules, as long as the pacer permits writes, and no more than the allowance.
    pub fn tend(&mut self, cache: &Cache, is_busy: bool, out: &mut Effects) {
        while self.has_turn(out.now.monotonic, out)
            && let Some(uid) = self.queue.pop_front()
        {
            if let Some(work) = self.works.get_mut(&uid) {
                work.is_queued = false;
            }
            if self.tend_finalizers(&uid, cache, out) {
                self.wake(&uid);
            } else {
                self.tend_status(&uid, cache, is_busy, out);
            }
        }
    }

    fn has_turn(&self, now: Instant, out: &mut Effects) -> bool {
        !self.queue.is_empty() && self.allowance > 0 && out.pacer.may_begin(Class::Rule, now)
    }

    /// Resets the allowance.
    pub fn renew_allowance(&mut self) {
        self.allowance = NODES_IN_STATUSES;
    }

    /// Whether queued rules wait only for other work.
    pub fn gives_way(&self) -> bool {
        !self.queue.is_empty() && self.allowance == 0
    }

    /// Finishes the deletion of rules whose nodes are all clean.
    pub fn finish_deletions(&mut self, cache: &Cache, out: &mut Effects) {
        let is_done = |work: &&RuleWork| work.pending.as_ref().is_some_and(Set::is_empty);
        let done = self.works.values().filter(is_done);
        let done: Vec<_> = done.map(|work| work.uid.clone()).collect();
        for uid in done {
            if out.pacer.may_begin(Class::Rule, out.now.monotonic) {
                self.tend_finalizers(&uid, cache, out);
            } else {
                self.wake_first(&uid);
            }
        }
    }

    /// Adds our finalizer to a rule that needs one, or removes it from a deleted rule whose nodes are clean; returns whether a
    /// request was made. The caller has checked that the pacer permits it.
    fn tend_finalizers(&mut self, uid: &Arc<str>, cache: &Cache, out: &mut Effects) -> bool {
        let Some(work) = self.works.get_mut(uid) else {
            return false;
        };
        let Some(CachedRule {
            rule, finalizers, ..
        }) = cache.rules().get(&work.name)
        else {
            return false;
        };
        let ours = |finalizer: &String| finalizer == FINALIZER;
        // A stale watch may not have shown every node.
        let knows_nodes = !cache.cluster().stale.nodes && !cache.has_dirty();
        let is_clean = || knows_nodes && work.pending.as_ref().is_some_and(Set::is_empty);
        let mut wanted = finalizers.clone();
        match (rule.deleting, rule.finalizer) {
            (false, false) if rule.spec.is_ok() && !rule.is_taken_on() => {
                wanted.push(FINALIZER.into());
            }
            (true, true) if is_clean() => wanted.retain(|finalizer| !ours(finalizer)),
            _ => return false,
        }
        let now = out.now.monotonic;
        if work.finalizers.under_way || work.finalizers.not_before(now).is_some() {
            return false;
        }
        work.finalizers.under_way = true;
        let request = Request::PatchRule {
            name: work.name.clone(),
            patch: patch::finalizers(uid, finalizers, &wanted),
        };
        out.ask(Job::Finalizers(uid.clone()), request);
        true
    }

    /// Handles the end of a finalizer write.
    pub fn finalizers_answered(
        &mut self,
        uid: &Arc<str>,
        result: Result<Watched<RuleObject>, RequestError>,
        cache: &mut Cache,
        out: &mut Effects,
    ) {
        let Some(work) = self.works.get_mut(uid) else {
            return;
        };
        work.finalizers
            .ended(result.as_ref().err(), out.now.monotonic);
        let error = match result {
            Ok(object) => {
                let mut left = object.meta().finalizers.iter().flatten();
                if left.all(|finalizer| finalizer != FINALIZER) {
                    info!(rule = %work.name, "rule is gone; its nodes are clean");
                }
                return cache.update_rule(object, out.now.wall);
            }
            Err(error) => error,
        };
        if error.is_refusal() {
            warn!(rule = %work.name, "cannot write the rule's finalizers: {error}");
            if work.finalizers.refusals == 1
                && let Some(held) = cache.rules().get(&work.name)
            {
                let why = error.to_string();
                out.tell(Notice::of_unwritten_finalizers(&held.rule, &why));
            }
            if work.finalizers.refusals >= REFUSALS && matches!(error, RequestError::Failed(_)) {
                cache.refused_finalizer(&work.name);
            }
        }
        // The watch reports rules that are gone. An API server that has just started may say so of a rule that exists.
        if let Some(at) = work.finalizers.due() {
            out.timers.wake_rule(uid, at);
        }
    }
}
