//! How many nodes in use a rule may take away before somebody says yes.
//!
//! Nodes in use that come under a rule, in whatever way, are counted once all nodes have been evaluated. If they and those gated so in
//! the last minute are more than the rule's limit, it gates none of them, and they are counted again each second. Else a permission
//! covers them for as long as the rule governs its taint on them: from then on only the disruption guard limits it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::gating::evidence_is_stale;
use super::{RuleWork, Rules};
use crate::cache::{Cache, CachedRule};
use crate::map::hash;
use crate::nodes::{Nodes, records, tally};
use crate::outbox::Outbox;
use crate::status::{Record, Tally, would_gate};
use nodegate_core::api::{NodeShare, Permission};
use nodegate_core::condition::CriticalComponentClass;
use nodegate_core::guard::Limits;
use nodegate_core::plan::Outcome;
use nodegate_core::rule::Rule;

const INTERVAL: Duration = Duration::from_secs(1);
/// For how long nodes that are gated one after another count together.
const TOGETHER: Duration = Duration::from_secs(60);

/// Which nodes in use a rule may gate.
#[derive(Debug, Default)]
pub(crate) struct FirstGating {
    /// The rule's generation, and its limit while it is in force.
    of: (i64, Option<NodeShare>),
    /// The generation of the rules since which that is so: only records of this term say that a node is covered.
    term: u64,
    classes: Option<String>,
    /// What an earlier process has permitted, until nodes are counted.
    earlier: Option<Permission>,
    is_permitted: bool,
    counted_at: Option<Instant>,
    /// Whether there may be nodes that are not covered. Only a count that covers all of them ends that.
    is_due: bool,
    /// How many nodes were gated a moment ago, if there were too many at the last count.
    pub(crate) refused: Option<usize>,
    /// When how many of the nodes that were counted were to be gated.
    lately: Vec<(Instant, usize)>,
}

impl FirstGating {
    fn covers(&self, record: Option<&Record>) -> bool {
        self.of.1.is_none() || record.is_some_and(|it| it.covered == self.term)
    }

    /// Takes in an evaluation. A node that joins, or that the rule holds, is covered.
    pub(super) fn see(&mut self, outcome: &Outcome<'_>, record: &mut Record) {
        if outcome.governs().is_none() {
            record.covered = 0;
        } else if outcome.tainted || !outcome.in_use {
            record.covered = self.term;
        }
        self.is_due |= outcome.governs().is_some() && !self.covers(Some(record));
    }

    /// When to count next, if it has to.
    pub(super) fn due(&self) -> Option<Instant> {
        self.counted_at
            .filter(|_| self.is_due)
            .map(|at| at + INTERVAL)
    }

    /// What the next leader has to know.
    pub(super) fn permission(&self, tally: &Tally<'_>) -> Option<Permission> {
        let covered = tally.nodes();
        let covered = covered.filter(|it| it.1.covered == self.term && it.2.is_in_use());
        let permitted = self.is_permitted.then(|| Permission {
            generation: self.of.0,
            nodes: i32::try_from(covered.count()).unwrap_or(i32::MAX),
            classes: self.classes.clone(),
        });
        self.earlier.clone().or(permitted)
    }
}

/// Fingerprint of the classes that the rule waits for: a change of them may change what it does on every node.
fn fingerprint(rule: &Rule, classes: &[CriticalComponentClass]) -> Option<String> {
    let spec = rule.spec.as_ref().ok()?;
    let classes = classes.iter().enumerate();
    let classes = classes.filter(|(index, _)| spec.waits_for_class(*index));
    let classes: Vec<_> = classes.map(|(_, class)| class).collect();
    (!classes.is_empty()).then(|| format!("{:016x}", hash(format!("{classes:?}"))))
}

impl RuleWork {
    /// Takes in the rule as it is now, at this generation of the rules. `is_known`: this process has seen it before, so what an earlier
    /// one permitted no longer counts.
    pub(super) fn sync_first_gating(
        &mut self,
        cached: &CachedRule,
        is_known: bool,
        limits: Limits,
        (classes, generation): (&[CriticalComponentClass], u64),
    ) {
        let rule = &cached.rule;
        let spec = rule.spec.as_ref().ok();
        self.first_limit = spec.and_then(|spec| limits.first(spec.ours.disruption.as_ref()));
        let is_in_force = rule.live().is_some() && !rule.is_suspended();
        let limit = self.first_limit.filter(|_| is_in_force);
        if self.first_gating.of == (rule.generation, limit) {
            return;
        }
        let classes = fingerprint(rule, classes);
        let status = cached.object.status.nodegate.as_ref();
        let earlier = status.and_then(|it| it.permission.clone());
        let counts = |it: &Permission| {
            !is_known
                && limit.is_some()
                && (it.generation, &it.classes) == (rule.generation, &classes)
        };
        self.first_gating = FirstGating {
            of: (rule.generation, limit),
            term: generation,
            earlier: earlier.filter(counts),
            classes,
            is_due: limit.is_some(),
            lately: std::mem::take(&mut self.first_gating.lately),
            ..FirstGating::default()
        };
    }
}

impl Rules {
    /// UIDs of those of these rules that may not gate the node with these records yet if it is in use.
    pub fn held_back(
        &self,
        selecting: &[usize],
        cache: &Cache,
        records: &[Record],
    ) -> Vec<Arc<str>> {
        let selecting = cache.cluster().rules.at(selecting).map(|rule| &rule.uid);
        let is_held_back = |uid: &&Arc<str>| {
            let record = records.iter().find(|it| it.rule == **uid);
            let work = self.works.get(*uid);
            work.is_some_and(|work| !work.first_gating.covers(record))
        };
        selecting.filter(is_held_back).cloned().collect()
    }

    /// Decides, now that no node waits to be evaluated. Returns the nodes that may be gated from now on.
    pub fn decide_first_gatings(
        &mut self,
        cache: &Cache,
        nodes: &mut Nodes,
        out: &mut Outbox,
    ) -> Vec<Arc<str>> {
        let now = out.now.monotonic;
        let generation = cache.rules.generation;
        let mut allowed = Vec::new();
        for rule in cache.cluster().rules.rules() {
            let Some(work) = self.works.get_mut(&rule.uid) else {
                continue;
            };
            let gating = &mut work.first_gating;
            let Some(limit) = gating.of.1.filter(|_| gating.is_due) else {
                continue;
            };
            let is_early = gating.counted_at.is_some_and(|at| now < at + INTERVAL);
            if is_early || evidence_is_stale(rule, cache.cluster()) {
                continue;
            }
            let counted_before = gating.counted_at.replace(now).is_some();
            let mut works = nodes.values();
            if works.any(|it| it.rules_seen < generation && it.write.is_under_way()) {
                // The end of that write is looked at, or the next second.
                gating.counted_at.take_if(|_| !counted_before);
                continue;
            }
            gating.lately.retain(|(at, _)| now < *at + TOGETHER);
            let lately = gating.lately.iter().map(|(_, gated)| gated).sum();
            let tally = tally(&rule.uid, nodes);
            let would_gate = would_gate(rule, tally.matched(), tally.found());
            let in_use = i32::try_from(would_gate.in_use).unwrap_or(i32::MAX);
            let was_permitted = gating.earlier.take().is_some_and(|it| in_use <= it.nodes);
            let gated = would_gate.gated;
            let before = gating.refused.take();
            if !was_permitted && would_gate.after(lately).exceeds(limit) {
                gating.refused = Some(lately);
            } else {
                (gating.is_due, gating.is_permitted) = (false, true);
                let gated = Some(gated).filter(|gated| *gated > 0 && !was_permitted);
                gating.lately.extend(gated.map(|gated| (now, gated)));
                let records = records(&rule.uid, nodes);
                let waiting =
                    records.filter_map(|(name, it)| it.cover(gating.term).then_some(name));
                allowed.extend(waiting.cloned());
            }
            if gating.refused.is_none() || gating.refused != before {
                work.status_changed(out);
            }
        }
        allowed
    }
}
