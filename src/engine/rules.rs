//! What the reconcile loop does for the rules themselves: finalizers, deletion, status and events about them.

mod statuses;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use prometheus::{Gauge, Histogram, IntCounter};
use tracing::{info, warn};

use super::cache::CachedRule;
use super::disruption::Disruption;
use super::patch;
use super::reconcile::{Done, Reconciler, Timer};
use super::status::{Record, Tally};
use crate::api::names::FINALIZER;
use crate::controller::events::{Notice, Tone};
use crate::controller::metrics::{Metrics, gauge};
use crate::engine::Backoff;
use crate::engine::RequestError;
use crate::object::{Node, RuleObject};
use crate::plan::{Outcome, PassedOver};
use crate::rule::Rule;
use statuses::StatusWork;

/// What is under way for one rule.
#[derive(Debug)]
pub(super) struct RuleWork {
    pub(super) name: Arc<str>,
    uid: Arc<str>,
    /// The types of the conditions that the rule names.
    conditions: Vec<Arc<str>>,
    /// Whether no controller had taken the rule on before this process did: it had no finalizer of ours.
    pub(super) is_new: bool,
    /// What the rule does on its nodes.
    pub(super) tally: Tally,
    /// The nodes that have to be seen clean before a deleted rule may go; `None` while it is not being deleted.
    pending: Option<HashSet<Arc<str>>>,
    pub(super) passed_over: Vec<PassedOver>,
    /// What keeps the rule from repairing any node, as it was told last.
    obstacle: Option<String>,
    pub(super) disruption: Option<Disruption>,
    /// The generation whose rejection has been told.
    rejected: Option<i64>,
    finalizers: Write,
    status: StatusWork,
    evaluations: Histogram,
    last_evaluation: Gauge,
    coalesced: IntCounter,
}

/// A write that is made again until it succeeds.
#[derive(Debug, Default)]
struct Write {
    under_way: bool,
    retry: Backoff,
}

impl RuleWork {
    fn new(rule: &Rule, metrics: &Metrics) -> Self {
        metrics.know_rule(&rule.name);
        Self {
            name: rule.name.clone(),
            uid: rule.uid.clone(),
            conditions: rule
                .spec
                .iter()
                .flat_map(|spec| {
                    spec.conditions
                        .iter()
                        .map(|requirement| requirement.kind.clone())
                })
                .collect(),
            is_new: !rule.finalizer,
            tally: Tally::default(),
            pending: None,
            passed_over: Vec::new(),
            obstacle: None,
            disruption: None,
            rejected: None,
            finalizers: Write::default(),
            status: StatusWork::default(),
            evaluations: metrics.evaluation_duration.with_label_values(&[&rule.name]),
            last_evaluation: metrics.last_reconciliation.with_label_values(&[&rule.name]),
            coalesced: metrics.status_coalesced.clone(),
        }
    }

    /// Counts an evaluation of a node that the rule selects.
    pub(super) fn count_evaluation(&self, took: Duration, now: Timestamp) {
        self.evaluations.observe(took.as_secs_f64());
        self.last_evaluation.set(now.as_duration().as_secs_f64());
    }

    /// Notes what the rule makes of a node, and whether it would repair it if it were no dry run; answers whether that
    /// is news.
    pub(super) fn record(
        &mut self,
        node: &Node,
        outcome: &Outcome<'_>,
        would_repair: bool,
        now: Timestamp,
    ) -> bool {
        let guarded = self.disruption.as_mut();
        let counts_anew = guarded.is_some_and(|disruption| disruption.observe(node, outcome));
        let record = Record::new(outcome, would_repair);
        self.tally.record(&node.name, record, now) || counts_anew
    }

    /// Notes that the rule has nothing to do with a node any more, and whether the node is clean of it; answers whether
    /// that is news.
    pub(super) fn forget_node(&mut self, node: &Arc<str>, is_clean: bool) -> bool {
        let guarded = self.disruption.as_mut();
        let counted = guarded.is_some_and(|disruption| disruption.forget(node));
        self.tally.forget(node, is_clean) || counted
    }

    /// Notes that the rule's taint has been put on a node.
    pub(super) fn closed(&mut self, node: &str) {
        if let Some(disruption) = &mut self.disruption {
            disruption.closed(node);
        }
    }

    /// The rule's UID.
    pub(super) fn uid(&self) -> &Arc<str> {
        &self.uid
    }

    /// Whether the rule is being deleted and waits for nodes to be clean.
    pub(super) fn is_cleaning_up(&self) -> bool {
        self.pending.is_some()
    }

    /// Notes that a node has nothing left of the rule.
    pub(super) fn cleaned_up(&mut self, node: &Arc<str>) {
        if let Some(pending) = &mut self.pending {
            pending.remove(node);
        }
        self.tally.linger(node, false);
    }
}

impl Reconciler {
    /// Takes in that rules, or the `DaemonSet`s they shut out, have changed.
    pub(super) fn sync_rules(&mut self) {
        let known: HashSet<Arc<str>> = self
            .cache
            .rules()
            .values()
            .map(|cached| cached.rule.uid.clone())
            .collect();
        self.metrics.rules.set(gauge(known.len()));
        self.rules.retain(|uid, work| {
            let stays = known.contains(uid);
            if !stays {
                self.metrics.forget_rule(&work.name, &work.conditions);
            }
            stays
        });
        for cached in self.cache.rules().values() {
            let rule = &*cached.rule;
            let work = self
                .rules
                .entry(rule.uid.clone())
                .or_insert_with(|| RuleWork::new(rule, &self.metrics));
            work.disruption = Disruption::for_spec(
                rule.active().filter(|_| !rule.deleting),
                work.disruption.take(),
                self.settings.disruption_limits,
            );
            if rule.deleting && work.pending.is_none() {
                info!(rule = %rule.name, "rule is being deleted; cleaning its nodes");
                work.pending = Some(self.cache.node_names().cloned().collect());
            }
            if let Err(rejection) = &rule.spec
                && work.rejected.replace(rule.generation) != Some(rule.generation)
            {
                warn!(rule = %rule.name, "rule cannot be used: {rejection}");
                let note = rejection.to_string();
                self.events.send(Notice::on_rule(
                    rule,
                    Tone::Warning,
                    "RuleRejected",
                    "Compile",
                    note,
                ));
            }
            work.status_changed(&mut self.timers);
        }
        for uid in known {
            self.tend_finalizers(&uid);
        }
    }

    /// Sees what is to be done for a rule whose timer has fired.
    pub(super) fn tend_rule(&mut self, uid: &Arc<str>) {
        self.tend_finalizers(uid);
        self.tend_status(uid);
    }

    /// Lets deleted rules go whose nodes are all clean.
    pub(super) fn finish_deletions(&mut self) {
        let is_done = |work: &&RuleWork| work.pending.as_ref().is_some_and(HashSet::is_empty);
        let done: Vec<_> = self
            .rules
            .values()
            .filter(is_done)
            .map(|work| work.uid.clone())
            .collect();
        for uid in done {
            self.tend_finalizers(&uid);
        }
    }

    /// Puts our finalizer on a rule, or takes it off one that is being deleted and whose nodes are clean.
    fn tend_finalizers(&mut self, uid: &Arc<str>) {
        let Some(work) = self.rules.get_mut(uid) else {
            return;
        };
        let Some(CachedRule {
            rule, finalizers, ..
        }) = self.cache.rules().get(&work.name)
        else {
            return;
        };
        let ours = |finalizer: &String| finalizer == FINALIZER;
        let is_clean = || work.pending.as_ref().is_some_and(HashSet::is_empty);
        let mut wanted = finalizers.clone();
        match (rule.deleting, rule.finalizer) {
            (false, false) if rule.spec.is_ok() => wanted.push(FINALIZER.into()),
            (true, true) if is_clean() => wanted.retain(|finalizer| !ours(finalizer)),
            _ => return,
        }
        if work.finalizers.under_way || work.finalizers.retry.not_before(Instant::now()).is_some() {
            return;
        }
        if let Some(at) = self.writer.limiter.not_before() {
            self.timers.insert((at, Timer::Rule(uid.clone())));
            return;
        }
        work.finalizers.under_way = true;
        let patch = patch::finalizers(uid, finalizers, &wanted);
        let (writer, uid, name) = (self.writer.clone(), uid.clone(), work.name.clone());
        self.start(async move {
            let result = writer.patch_rule(&name, patch).await;
            Done::Finalizers { uid, result }
        });
    }

    pub(super) fn finish_finalizers(
        &mut self,
        uid: &Arc<str>,
        result: Result<RuleObject, RequestError>,
    ) {
        let Some(work) = self.rules.get_mut(uid) else {
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
                self.cache.update_rule(object, Timestamp::now());
            }
            // A rule that is gone takes its work with it; but an API server that has only just started may say so of
            // one that is there.
            Err(error) => {
                if error.is_refusal() {
                    warn!(rule = %work.name, "cannot write the rule's finalizers: {error}");
                }
                let retry = &mut work.finalizers.retry;
                let at = retry.failed(error.pauses(), Instant::now());
                self.timers.insert((at, Timer::Rule(uid.clone())));
            }
        }
    }
}
