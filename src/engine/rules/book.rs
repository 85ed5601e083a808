//! All rules: their finalizers, and their deletion.

use std::sync::Arc;

use tracing::{info, warn};

use super::work::RuleWork;
use crate::api::names::FINALIZER;
use crate::engine::cache::{Cache, CachedRule};
use crate::engine::closures::Closures;
use crate::engine::error::RequestError;
use crate::engine::io::{Count, Request};
use crate::engine::map::{Map, Set};
use crate::engine::notice::Notice;
use crate::engine::outbox::{Outbox, Purpose};
use crate::engine::patch;
use crate::engine::turns::Backoff;
use crate::guard::Limits;
use crate::object::RuleObject;
use crate::rule::Rule;

/// The rules, each with what is under way for it.
#[derive(Debug)]
pub struct Rules {
    pub(super) works: Map<Arc<str>, RuleWork>,
    /// The limits of disruption guards, where a rule does not say.
    pub(super) closure_limits: Limits,
    /// How many nodes each list of a status may name.
    pub(super) node_limit: usize,
}

impl Rules {
    /// No rules, for which these limits will hold.
    pub fn new(closure_limits: Limits, node_limit: usize) -> Self {
        Self {
            works: Map::default(),
            closure_limits,
            node_limit,
        }
    }

    /// All of them.
    pub fn works(&self) -> impl Iterator<Item = &RuleWork> {
        self.works.values()
    }

    /// Takes in which rules there are.
    pub fn sync(&mut self, cache: &Cache, out: &mut Outbox) {
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
                    conditions: work.conditions.clone(),
                });
            }
            stays
        });
        for cached in cache.rules().values() {
            self.sync_rule(&cached.rule, cache, out);
        }
        for uid in known {
            self.tend_finalizers(&uid, cache, out);
        }
    }

    fn sync_rule(&mut self, rule: &Rule, cache: &Cache, out: &mut Outbox) {
        let work = self.works.entry(rule.uid.clone()).or_insert_with(|| {
            out.count(Count::RuleCame {
                rule: rule.name.clone(),
            });
            RuleWork::new(rule)
        });
        work.closures = Closures::for_spec(
            rule.active().filter(|_| !rule.deleting),
            work.closures.take(),
            self.closure_limits,
        );
        if rule.deleting && work.pending.is_none() {
            info!(rule = %rule.name, "rule is being deleted; cleaning its nodes");
            work.pending = Some(cache.node_names().cloned().collect());
        }
        if let Err(rejection) = &rule.spec
            && work.rejected.replace(rule.generation) != Some(rule.generation)
        {
            warn!(rule = %rule.name, "rule cannot be used: {rejection}");
            out.tell(Notice::of_rejection(rule, &rejection.to_string()));
        }
        work.status_changed(out);
    }

    /// Sees what is to be done for a rule whose timer has fired.
    pub fn tend(&mut self, uid: &Arc<str>, cache: &Cache, is_busy: bool, out: &mut Outbox) {
        self.tend_finalizers(uid, cache, out);
        self.tend_status(uid, cache, is_busy, out);
    }

    /// Lets deleted rules go whose nodes are all clean.
    pub fn finish_deletions(&mut self, cache: &Cache, out: &mut Outbox) {
        let is_done = |work: &&RuleWork| work.pending.as_ref().is_some_and(Set::is_empty);
        let done = self.works.values().filter(is_done);
        let done: Vec<_> = done.map(|work| work.uid.clone()).collect();
        for uid in done {
            self.tend_finalizers(&uid, cache, out);
        }
    }

    /// Puts our finalizer on a rule, or takes it off one that is being deleted and whose nodes are clean.
    fn tend_finalizers(&mut self, uid: &Arc<str>, cache: &Cache, out: &mut Outbox) {
        let Some(work) = self.works.get_mut(uid) else {
            return;
        };
        let Some(CachedRule {
            rule, finalizers, ..
        }) = cache.rules().get(&work.name)
        else {
            return;
        };
        let ours = |finalizer: &String| finalizer == FINALIZER;
        let is_clean = || work.pending.as_ref().is_some_and(Set::is_empty);
        let mut wanted = finalizers.clone();
        match (rule.deleting, rule.finalizer) {
            (false, false) if rule.spec.is_ok() => wanted.push(FINALIZER.into()),
            (true, true) if is_clean() => wanted.retain(|finalizer| !ours(finalizer)),
            _ => return,
        }
        let now = out.now.monotonic;
        if work.finalizers.under_way || work.finalizers.retry.not_before(now).is_some() {
            return;
        }
        if let Some(at) = out.turns.not_before(now) {
            out.timers.wake_rule(uid, at);
            return;
        }
        work.finalizers.under_way = true;
        let request = Request::PatchRule {
            name: work.name.clone(),
            patch: patch::finalizers(uid, finalizers, &wanted),
        };
        out.ask(Purpose::Finalizers(uid.clone()), request);
    }

    /// Takes in how a write of a rule's finalizers has ended.
    pub fn finalizers_answered(
        &mut self,
        uid: &Arc<str>,
        result: Result<RuleObject, RequestError>,
        cache: &mut Cache,
        out: &mut Outbox,
    ) {
        let Some(work) = self.works.get_mut(uid) else {
            return;
        };
        work.finalizers.under_way = false;
        match result {
            Ok(object) => {
                work.finalizers.retry = Backoff::default();
                let mut left = object.metadata.finalizers.iter().flatten();
                if left.all(|finalizer| finalizer != FINALIZER) {
                    info!(rule = %work.name, "rule is gone; its nodes are clean");
                }
                cache.update_rule(object, out.now.wall);
            }
            // A rule that is gone takes its work with it; but an API server that has only just started may say so of
            // one that is there.
            Err(error) => {
                if error.is_refusal() {
                    warn!(rule = %work.name, "cannot write the rule's finalizers: {error}");
                }
                let retry = &mut work.finalizers.retry;
                let at = retry.failed(error.pauses(), out.now.monotonic);
                out.timers.wake_rule(uid, at);
            }
        }
    }
}
