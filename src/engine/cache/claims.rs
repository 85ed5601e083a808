//! Karpenter's objects, as the watches show them.

use std::sync::Arc;

use kube::Resource;

use super::Cache;
use super::karpenter::{Concerned, Extent, Mention};
use crate::engine::broken::Identity;
use crate::engine::kind::Watch;
use crate::object::{Node, NodeClaimObject, NodePoolObject};
use crate::rule::Rule;

impl Cache {
    /// Keeps a claim as it is shown. One that cannot be understood is as good as none: it must not be deleted.
    pub(super) fn see_claim(&mut self, object: NodeClaimObject) {
        let identity = Identity::of(Watch::NodeClaims, object.meta());
        let name = identity.key.name.clone();
        let concerned = match self.understood(identity, None, object.read()) {
            Some(claim) => self.karpenter.put_claim(claim),
            None => self.karpenter.remove_claim(&name),
        };
        self.mark_concerned(concerned);
    }

    /// Takes in a claim as an answer to a write showed it, unless the cache has a newer state already, or knows of none: of another
    /// claim of that name the watch will tell.
    pub fn update_claim(&mut self, object: NodeClaimObject) {
        let meta = object.meta();
        let known = meta
            .name
            .as_deref()
            .and_then(|name| self.karpenter.claim(name));
        let is_known = known.is_some_and(|known| meta.uid.as_deref() == Some(&*known.uid));
        if is_known && !self.is_outdated(Watch::NodeClaims, meta) {
            self.see_claim(object);
        }
    }

    pub(super) fn remove_claim(&mut self, name: &str) {
        let concerned = self.karpenter.remove_claim(name);
        self.mark_concerned(concerned);
    }

    /// Keeps a pool as it is shown. One that cannot be understood is taken as it was last.
    pub(super) fn see_pool(&mut self, object: NodePoolObject) {
        let identity = Identity::of(Watch::NodePools, object.meta());
        let name = identity.key.name.clone();
        if let Some(pool) = self.understood(identity, None, object.read()) {
            let concerned = self.karpenter.put_pool(&name, pool);
            self.mark_concerned(concerned);
        }
    }

    pub(super) fn remove_pool(&mut self, name: &Arc<str>) {
        let concerned = self.karpenter.remove_pool(name);
        self.mark_concerned(concerned);
    }

    /// Takes in how much is known of a kind, if it is one of Karpenter's.
    pub(super) fn know_karpenter(&mut self, watch: Watch, extent: Extent) {
        let concerned = self.karpenter.know(watch, extent);
        self.mark_concerned(concerned);
    }

    /// Has the nodes evaluated that something of Karpenter's concerns, if there is a rule to which that matters.
    fn mark_concerned(&mut self, concerned: Concerned) {
        let repairs = |rule: &Arc<Rule>| rule.active().is_some_and(|spec| spec.repair.is_some());
        if !self.rule_set.rules().iter().any(repairs) {
            return;
        }
        match concerned {
            Concerned::Nobody => {}
            Concerned::Everybody => {
                self.rule_news.are_untold = true;
                self.mark_all();
            }
            Concerned::Nodes(mentions) => {
                let is_meant = |node: &&Node| {
                    let pool = self.karpenter.pool_name(node);
                    let mut mentions = mentions.iter();
                    mentions.any(|mention: &Mention| mention.is_of(node, pool))
                };
                let names: Vec<_> = self
                    .nodes()
                    .filter(is_meant)
                    .map(|node| node.name.clone())
                    .collect();
                for name in names {
                    self.mark(&name);
                }
            }
        }
    }
}
