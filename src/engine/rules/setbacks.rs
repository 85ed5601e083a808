//! Repairs that have not helped, by rule and pool: for the plans of nodes, and in the rule's status for the next leader.

use std::cell::LazyCell;
use std::sync::Arc;

use super::{RuleWork, Rules};
use crate::cache::{Cache, CachedRule};
use crate::outbox::Outbox;
use crate::repairs::Deletion;
use nodegate_core::api::{MAX_SETBACKS, Setback};
use nodegate_core::object::Node;
use nodegate_core::plan::NodePlan;

impl RuleWork {
    /// Takes over what an earlier process has recorded for this generation of the rule; an edit of it starts anew.
    pub(super) fn sync_setbacks(&mut self, cached: &CachedRule, is_known: bool) {
        let (generation, status) = (Some(cached.rule.generation), &cached.object.status);
        if self.setbacks_of == generation {
            return;
        }
        let recorded = status.nodegate.iter().flat_map(|it| &it.setbacks);
        let recorded = recorded.filter(|_| !is_known && status.observed_generation == generation);
        self.setbacks = recorded.cloned().collect();
        self.setbacks_of = generation;
    }
}

impl Rules {
    /// UIDs of those of these rules under which a node of this one's pool was replaced and none has got ready since, each with that.
    pub fn setbacks(
        &self,
        selecting: &[usize],
        cache: &Cache,
        node: &Node,
    ) -> Vec<(Arc<str>, Setback)> {
        let rules = cache.cluster().rules.at(selecting);
        let works = rules.filter_map(|rule| self.works.get(&rule.uid));
        let works = works.filter(|work| !work.setbacks.is_empty());
        let found = works.filter_map(|work| {
            let pool = cache.claims.of(node).pool_name();
            let setback = work.setbacks.iter().find(|it| it.pool.as_deref() == pool)?;
            Some((work.uid.clone(), setback.clone()))
        });
        found.collect()
    }

    pub(crate) fn replaced(&mut self, replaced: &Deletion, cache: &Cache, out: &mut Outbox) {
        let mut works = self.works.values_mut();
        let Some(work) = works.find(|work| work.name == replaced.rule) else {
            return;
        };
        let (node, lacked) = (&replaced.node, &replaced.lacked);
        let name = replaced.claim.node_pool.as_deref();
        let pool = name.and_then(|name| cache.claims.pools.get(name));
        let is_of_pool = |it: &mut Setback| it.pool.as_deref() == name;
        let known = work.setbacks.extract_if(.., is_of_pool).next();
        let setback = Setback::after(
            known.as_ref(),
            (node, pool.map(|it| &**it)),
            name,
            lacked,
            replaced.at,
        );
        if work.setbacks.len() >= MAX_SETBACKS {
            work.setbacks.remove(0);
        }
        // The latest comes last.
        work.setbacks.push(setback);
        work.status_changed(out);
    }

    /// Notes for the rules whose conditions this node meets for the first time that a node of its pool has got ready.
    pub fn got_ready(&mut self, node: &Node, plan: &NodePlan<'_>, cache: &Cache, out: &mut Outbox) {
        for outcome in plan.outcomes.iter().filter(|it| it.completes && it.met) {
            let Some(work) = self.works.get_mut(&outcome.rule.uid) else {
                continue;
            };
            let pool = LazyCell::new(|| cache.claims.of(node).pool_name());
            let is_of_pool = |it: &mut Setback| it.pool.as_deref() == *pool;
            if work.setbacks.extract_if(.., is_of_pool).count() > 0 {
                work.status_changed(out);
            }
        }
    }
}
