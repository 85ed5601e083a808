//! The first gating of a rule that comes into force: how many nodes in use it may take away before somebody says yes.
//!
//! It waits until all nodes have been evaluated since, and then gates either all that are to be gated or, if they are more than its
//! limit, none of them. That is decided anew, at most once a second, until it may; from then on only the disruption guard limits it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::gating::evidence_is_stale;
use super::{RuleWork, Rules};
use crate::cache::{Cache, CachedRule};
use crate::nodes::{Nodes, tally};
use crate::outbox::Outbox;
use crate::status::would_gate;
use nodegate_core::guard::Limits;

const INTERVAL: Duration = Duration::from_secs(1);

/// Whether a rule may gate nodes in use.
#[derive(Debug, Default)]
pub(crate) enum FirstGating {
    /// It may: it has no limit, or is not in force.
    #[default]
    Unlimited,
    /// It may, since this generation of it was decided on.
    Allowed(i64),
    /// It may not yet.
    Open(OpenFirstGating),
}

#[derive(Debug)]
pub(crate) struct OpenFirstGating {
    generation: i64,
    /// When the nodes were last counted, and were too many.
    refused_at: Option<Instant>,
    /// Whether what was counted may have changed since.
    is_due: bool,
}

impl FirstGating {
    /// The generation for which it was decided that the rule may, for the rule's status.
    pub(crate) fn allowed(&self) -> Option<i64> {
        match self {
            Self::Allowed(generation) => Some(*generation),
            Self::Unlimited | Self::Open(_) => None,
        }
    }

    /// Whether it may not, since too many nodes in use would be gated.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Open(open) if open.refused_at.is_some())
    }

    /// Notes that a node counts in another way.
    pub(crate) fn counts_anew(&mut self) {
        if let Self::Open(open) = self {
            open.is_due = true;
        }
    }

    /// When to count next, if it has to.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Open(open) if open.is_due => open.refused_at.map(|at| at + INTERVAL),
            _ => None,
        }
    }
}

impl RuleWork {
    /// Takes in the rule as it is. `is_known`: this process has seen it before, so what an earlier one decided no longer counts.
    pub(super) fn sync_first_gating(
        &mut self,
        cached: &CachedRule,
        is_known: bool,
        limits: Limits,
    ) {
        let (rule, generation) = (&cached.rule, cached.rule.generation);
        let spec = rule.spec.as_ref().ok();
        self.first_limit = spec.and_then(|spec| limits.first(spec.ours.disruption.as_ref()));
        let is_in_force = rule.live().is_some() && !rule.is_suspended();
        let is_limited = is_in_force && self.first_limit.is_some();
        let status = cached.object.status.nodegate.as_ref();
        let allowed = status.and_then(|it| it.allowed_generation);
        let allowed = allowed.filter(|_| !is_known);
        let gating = &mut self.first_gating;
        match gating {
            _ if !is_limited => *gating = FirstGating::Unlimited,
            FirstGating::Allowed(known) if *known == generation => {}
            FirstGating::Open(open) if open.generation == generation => {}
            _ if allowed == Some(generation) => *gating = FirstGating::Allowed(generation),
            _ => {
                *gating = FirstGating::Open(OpenFirstGating {
                    generation,
                    refused_at: None,
                    is_due: true,
                });
            }
        }
    }
}

impl Rules {
    /// UIDs of those of these rules that may not gate nodes in use yet.
    pub fn held_back(&self, selecting: &[usize], cache: &Cache) -> Vec<Arc<str>> {
        let selecting = cache.cluster().rules.at(selecting).map(|rule| &rule.uid);
        let is_held_back = |uid: &&Arc<str>| {
            let work = self.works.get(*uid);
            work.is_some_and(|work| matches!(work.first_gating, FirstGating::Open(_)))
        };
        selecting.filter(is_held_back).cloned().collect()
    }

    /// Decides, now that no node waits to be evaluated. Returns the nodes that may be gated from now on.
    pub fn decide_first_gatings(
        &mut self,
        cache: &Cache,
        nodes: &Nodes,
        out: &mut Outbox,
    ) -> Vec<Arc<str>> {
        let now = out.now.monotonic;
        let generation = cache.rules.generation;
        let mut allowed = Vec::new();
        for rule in cache.cluster().rules.rules() {
            let Some(work) = self.works.get_mut(&rule.uid) else {
                continue;
            };
            let (FirstGating::Open(open), Some(limit)) = (&mut work.first_gating, work.first_limit)
            else {
                continue;
            };
            let is_early = open.refused_at.is_some_and(|at| now < at + INTERVAL);
            if !open.is_due || is_early || evidence_is_stale(rule, cache.cluster()) {
                continue;
            }
            let mut works = nodes.values();
            if works.any(|it| it.rules_seen < generation && it.write.is_under_way()) {
                // The end of that write is looked at, or the next second.
                open.refused_at = open.refused_at.map(|_| now);
                continue;
            }
            open.is_due = false;
            let tally = tally(&rule.uid, nodes);
            let would_gate = would_gate(rule, tally.matched(), tally.found());
            if would_gate.exceeds(limit) {
                open.refused_at = Some(now);
            } else {
                work.first_gating = FirstGating::Allowed(rule.generation);
                let waiting = tally.nodes().filter(|(.., found)| found.is_held_back());
                allowed.extend(waiting.map(|(name, ..)| name.clone()));
            }
            work.status_changed(out);
        }
        allowed
    }
}
