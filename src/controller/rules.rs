//! What the reconcile loop does for the rules themselves: finalizers, deletion, status and events about them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::cache::CachedRule;
use super::events::{Notice, Tone};
use super::patch;
use super::reconcile::{Done, Reconciler, Retry, Timer, Timers};
use super::status::{self, About, Tally};
use super::writer::WriteError;
use crate::api::NodeReadinessRuleStatus;
use crate::api::names::FINALIZER;
use crate::object::RuleObject;
use crate::rule::{Rule, ShutOut};

/// The status of a rule is written at most this often.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// How long a first change waits for others that belong to it.
const STATUS_DELAY: Duration = Duration::from_millis(200);

/// What is under way for one rule.
#[derive(Debug)]
pub(super) struct RuleWork {
    name: Arc<str>,
    uid: Arc<str>,
    /// Whether no controller had taken the rule on before this process did: it had no finalizer of ours.
    pub(super) is_new: bool,
    /// What the rule does on its nodes.
    pub(super) tally: Tally,
    /// The nodes that have to be seen clean before a deleted rule may go; `None` while it is not being deleted.
    pending: Option<HashSet<Arc<str>>>,
    shut_out: Vec<ShutOut>,
    /// The generation whose rejection has been told.
    rejected: Option<i64>,
    finalizers: Write,
    status: StatusWork,
}

/// A write that is made again until it succeeds.
#[derive(Debug, Default)]
struct Write {
    under_way: bool,
    retry: Retry,
}

#[derive(Debug, Default)]
struct StatusWork {
    /// When to see what there is to write; `None` while nothing has changed.
    due: Option<Instant>,
    write: Write,
    written_at: Option<Instant>,
    /// What was written last. Under an older CRD the API server holds less of it.
    last: Option<NodeReadinessRuleStatus>,
}

impl RuleWork {
    fn new(rule: &Rule) -> Self {
        Self {
            name: rule.name.clone(),
            uid: rule.uid.clone(),
            is_new: !rule.finalizer,
            tally: Tally::default(),
            pending: None,
            shut_out: Vec::new(),
            rejected: None,
            finalizers: Write::default(),
            status: StatusWork::default(),
        }
    }

    /// Whether the rule is being deleted and waits for nodes to be clean.
    pub(super) fn is_cleaning_up(&self) -> bool {
        self.pending.is_some()
    }

    /// Notes that a node has nothing left of the rule.
    pub(super) fn cleaned_up(&mut self, node: &str) {
        if let Some(pending) = &mut self.pending {
            pending.remove(node);
        }
    }

    /// Has the status looked at, together with what else changes within a moment.
    pub(super) fn status_changed(&mut self, timers: &mut Timers) {
        if self.status.due.is_none() {
            let earliest = self
                .status
                .written_at
                .map(|written| written + STATUS_INTERVAL);
            let soon = Instant::now() + STATUS_DELAY;
            self.look_again(earliest.map_or(soon, |earliest| earliest.max(soon)), timers);
        }
    }

    fn look_again(&mut self, at: Instant, timers: &mut Timers) {
        self.status.due = Some(at);
        timers.insert((at, Timer::Rule(self.uid.clone())));
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
        self.rules.retain(|uid, _| known.contains(uid));
        let cluster = self.cache.cluster();
        for cached in self.cache.rules().values() {
            let rule = &*cached.rule;
            let work = self
                .rules
                .entry(rule.uid.clone())
                .or_insert_with(|| RuleWork::new(rule));
            if rule.deleting && work.pending.is_none() {
                info!(rule = %rule.name, "rule is being deleted; cleaning its nodes");
                work.pending = Some(self.cache.node_names().cloned().collect());
            }
            let shut_out = rule
                .live()
                .map(|spec| ShutOut::by_rule(spec, cluster.classes, cluster.daemon_sets))
                .unwrap_or_default();
            if shut_out != work.shut_out
                && let Ok(spec) = &rule.spec
                && !shut_out.is_empty()
            {
                let note = status::shut_out_message(spec, &shut_out);
                warn!(rule = %rule.name, "{note}");
                self.events.send(Notice::on_rule(
                    rule,
                    Tone::Warning,
                    "DaemonSetsShutOut",
                    "Evaluate",
                    note,
                ));
            }
            work.shut_out = shut_out;
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
        if work.finalizers.under_way || work.finalizers.retry.is_waiting() {
            return;
        }
        work.finalizers.under_way = true;
        let patch = patch::finalizers(uid, finalizers, &wanted);
        let (writer, uid, name) = (self.writer.clone(), uid.clone(), work.name.clone());
        self.in_flight.spawn(async move {
            let result = writer.patch_rule(&name, patch).await;
            Done::Finalizers { uid, result }
        });
    }

    pub(super) fn finish_finalizers(
        &mut self,
        uid: &Arc<str>,
        result: Result<RuleObject, WriteError>,
    ) {
        let Some(work) = self.rules.get_mut(uid) else {
            return;
        };
        work.finalizers.under_way = false;
        match result {
            Ok(object) => {
                work.finalizers.retry = Retry::default();
                if work.pending.is_some() {
                    info!(rule = %work.name, "rule is gone; its nodes are clean");
                }
                self.cache.update_rule(object);
            }
            Err(WriteError::Gone) => {}
            Err(error) => {
                if matches!(error, WriteError::Failed(_)) {
                    warn!(rule = %work.name, "cannot write the rule's finalizers: {error}");
                }
                let at = work.finalizers.retry.failed();
                self.timers.insert((at, Timer::Rule(uid.clone())));
            }
        }
    }

    /// Writes a rule's status, if it is time to and anything in it has changed.
    fn tend_status(&mut self, uid: &Arc<str>) {
        let Some(work) = self.rules.get_mut(uid) else {
            return;
        };
        let Some(cached) = self.cache.rules().get(&work.name) else {
            return;
        };
        let rule = &*cached.rule;
        let now = Instant::now();
        if work.status.due.is_none_or(|due| due > now) || work.status.write.under_way {
            return;
        }
        work.status.due = None;
        // Before its finalizer is there, nothing has been done for a rule; after its deletion, nobody reads on.
        if rule.deleting || (rule.spec.is_ok() && !rule.finalizer) {
            return;
        }
        let about = About {
            rule,
            shut_out: &work.shut_out,
            node_limit: self.settings.status_node_limit,
            previous: work.status.last.as_ref().unwrap_or(&cached.status),
            now: Timestamp::now(),
        };
        let status = status::build(&work.tally, about);
        if status == cached.status || work.status.last.as_ref() == Some(&status) {
            return;
        }
        debug!(rule = %rule.name, "writing status");
        work.status.write.under_way = true;
        work.status.written_at = Some(now);
        let patch = patch::rule_status(uid, &status);
        work.status.last = Some(status);
        let (writer, uid, name) = (self.writer.clone(), uid.clone(), work.name.clone());
        self.in_flight.spawn(async move {
            let result = writer.patch_rule_status(&name, patch).await;
            Done::Status { uid, result }
        });
    }

    pub(super) fn finish_status(&mut self, uid: &Arc<str>, result: Result<RuleObject, WriteError>) {
        let Some(work) = self.rules.get_mut(uid) else {
            return;
        };
        work.status.write.under_way = false;
        match result {
            Ok(object) => {
                work.status.write.retry = Retry::default();
                self.cache.update_rule(object);
                // What changed while the write was under way waits for its turn.
                if let Some(due) = work.status.due {
                    let at = due.max(Instant::now());
                    work.look_again(at, &mut self.timers);
                }
            }
            Err(WriteError::Gone) => {}
            Err(error) => {
                warn!(rule = %work.name, "cannot write the rule's status: {error}");
                work.status.last = None;
                let at = work
                    .status
                    .write
                    .retry
                    .failed()
                    .max(Instant::now() + STATUS_INTERVAL);
                work.look_again(at, &mut self.timers);
            }
        }
    }
}
