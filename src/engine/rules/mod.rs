//! The controller's work for rules themselves: finalizers, deletion, status, and what they do on their nodes.

mod finalizers;
mod first_gating;
mod gating;
mod outcomes;
mod setbacks;
mod statuses;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::attempt::Attempt;
use super::cache::{Cache, CachedRule};
use super::count::RuleCount;
use super::error::RequestError;
use super::map::Map;
use super::nodes::Nodes;
use super::notice::{self, About, Notice, Topic};
use super::outbox::Outbox;
use super::status::WrittenStatus;
use super::told::{Subject, Told};
use first_gating::FirstGating;
pub(crate) use gating::{guard_for, observe};
use nodegate_core::api::{NodeShare, Setback};
use nodegate_core::condition::CriticalComponentClass;
use nodegate_core::finding::Backing;
use nodegate_core::guard::{Guard, Limits};

/// How many nodes the statuses built in one go may cover: a few milliseconds' work.
pub(super) const NODES_IN_STATUSES: usize = 50_000;

#[derive(Debug, Default)]
pub struct Rules {
    pub works: Map<Arc<str>, RuleWork>,
    /// The generation of the rules as of the last [`Self::sync`].
    generation: u64,
    /// For how many nodes statuses may still be built before other work is done.
    pub allowance: usize,
    gating_limits: Limits,
    node_limit: usize,
}

#[derive(Debug, Default)]
pub struct RuleWork {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// Whether no controller had adopted the rule before this process: it lacked our finalizer.
    is_new: bool,
    /// Since which generation of the rules it is being deleted: each node must be evaluated since, and be clean, before it may go.
    cleaning_since: Option<u64>,
    /// What stood behind the rule's conditions at the last status, and whether it still does.
    pub(super) backing: Backing,
    is_current: bool,
    pub(super) guard: Option<Guard>,
    pub(super) first_gating: FirstGating,
    /// The limit of the first gating, whether or not the rule is in force.
    first_limit: Option<NodeShare>,
    /// Repairs since which no node of their pool has got ready, the latest last, and of which generation of the rule.
    setbacks: Vec<Setback>,
    setbacks_of: Option<i64>,
    told: Told,
    pub finalizers: Attempt,
    pub status: Attempt,
    pub written: WrittenStatus,
    pub written_at: Option<Instant>,
    /// How long the API server took for the last write of the status.
    pub took: Duration,
    /// When it was last scheduled only because someone else had overwritten it.
    pub healed_at: Option<Instant>,
}

impl Rules {
    pub fn new(gating_limits: Limits, node_limit: usize) -> Self {
        Self {
            gating_limits,
            node_limit,
            ..Self::default()
        }
    }

    /// Something has changed that findings depend on.
    pub fn changed_behind(&mut self) {
        for work in self.works.values_mut() {
            work.is_current = false;
        }
    }

    /// Takes in the current rules. Nodes that a change of them concerns are queued by now; the others count as evaluated since.
    pub fn sync(&mut self, cache: &Cache, nodes: &mut Nodes, out: &mut Outbox) {
        let generation = cache.rules.generation;
        let before = std::mem::replace(&mut self.generation, generation);
        if before < generation {
            for (name, work) in nodes {
                if work.rules_seen == before && !cache.schedule.queued.contains_key(name) {
                    work.rules_seen = generation;
                }
            }
        }
        self.works.retain(|uid, work| {
            let known = cache.rules.all.get(&work.name);
            let stays = known.is_some_and(|it| it.rule.uid == *uid);
            if !stays {
                out.count_for(work.name.clone(), RuleCount::Went);
            }
            stays
        });
        for cached in cache.rules.all.values() {
            self.sync_rule(cached, cache.cluster().classes, generation, out);
        }
    }

    fn sync_rule(
        &mut self,
        cached: &CachedRule,
        classes: &[CriticalComponentClass],
        generation: u64,
        out: &mut Outbox,
    ) {
        let rule = &*cached.rule;
        let is_known = self.works.contains_key(&rule.uid);
        let work = self.works.entry(rule.uid.clone()).or_insert_with(|| {
            out.count_for(rule.name.clone(), RuleCount::Came);
            RuleWork {
                name: rule.name.clone(),
                uid: rule.uid.clone(),
                is_new: !rule.finalizer,
                ..RuleWork::default()
            }
        });
        let spec = rule.active().filter(|_| !rule.deleting);
        let known = work.guard.take().unwrap_or_default();
        work.guard = spec.and_then(|spec| guard_for(spec, known, self.gating_limits));
        work.sync_first_gating(cached, is_known, self.gating_limits, (classes, generation));
        work.sync_setbacks(cached, is_known);
        // Another process may just have gated nodes, or nobody could for a while.
        if (!is_known && rule.finalizer || rule.is_suspended())
            && let Some(guard) = &mut work.guard
        {
            guard.start_over();
        }
        if rule.deleting && work.cleaning_since.is_none() {
            info!(rule = %rule.name, "rule is being deleted; cleaning its nodes");
            work.cleaning_since = Some(generation);
        }
        let trouble = rule.trouble();
        let words = trouble.as_ref().map(|_| (rule.generation, rule.pruned));
        let (subject, now) = (Subject::new("Compile"), out.now.monotonic);
        if work.told.due(subject, &rule.uid, words, now).is_some()
            && let Some(why) = trouble
        {
            warn!(rule = %rule.name, "rule cannot be used: {why}");
            let topic = if rule.pruned {
                &notice::FIELDS_PRUNED
            } else {
                &notice::RULE_REJECTED
            };
            out.tell(Notice::on_rule(rule, topic, why));
        }
        work.status_changed(out);
    }
}

impl RuleWork {
    fn tell_refusal(&self, topic: &'static Topic, error: &RequestError, out: &mut Outbox) {
        let about = About::rule(&self.name, &self.uid);
        out.tell(Notice::new(about, topic, error.to_string()));
    }
}
