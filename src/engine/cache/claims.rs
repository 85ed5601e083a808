//! Karpenter's objects, from watches and write responses.

use std::sync::Arc;

use kube::Resource;

use super::Cache;
use super::karpenter::{Concerned, Extent, Mention};
use crate::engine::broken::Identity;
use crate::engine::kind::Watch;
use crate::object::{self, Node, NodeClaimObject, NodePoolObject, ObjectKey};
use crate::rule::Rule;

impl Cache {
    /// Keeps a claim. An unreadable one is dropped, so that the controller never deletes it.
    pub(super) fn see_claim(&mut self, object: NodeClaimObject) {
        let identity = Identity::of(Watch::NodeClaims, object.meta());
        let version = object::resource_version(object.meta());
        let key = identity.key.clone();
        let claim = self.understood(identity, version, None, object.read());
        let concerned = if let Some((_, claim)) = claim {
            self.karpenter.put_claim(claim)
        } else {
            self.index.remove(Watch::NodeClaims, &key);
            self.karpenter.remove_claim(&key.name)
        };
        self.mark_concerned(concerned);
    }

    /// Takes in a claim from a write response, unless the cache has a newer state or no such claim. The watch will show a new
    /// claim of the same name.
    pub fn update_claim(&mut self, object: NodeClaimObject) {
        let meta = object.meta();
        let known = meta
            .name
            .as_deref()
            .and_then(|name| self.karpenter.claim(name));
        let is_known = known.is_some_and(|known| meta.uid.as_deref() == Some(&*known.uid));
        let (key, version) = (ObjectKey::of(meta), object::resource_version(meta));
        if is_known && !self.is_outdated(Watch::NodeClaims, &key, version) {
            self.see_claim(object);
        }
    }

    pub(super) fn remove_claim(&mut self, name: &str) {
        let concerned = self.karpenter.remove_claim(name);
        self.mark_concerned(concerned);
    }

    /// Keeps a pool. For an unreadable one, the last readable state stays.
    pub(super) fn see_pool(&mut self, object: NodePoolObject) {
        let identity = Identity::of(Watch::NodePools, object.meta());
        let version = object::resource_version(object.meta());
        let pool = self.understood(identity, version, None, object.read());
        if let Some((ObjectKey { name, .. }, pool)) = pool {
            let concerned = self.karpenter.put_pool(&name, pool);
            self.mark_concerned(concerned);
        }
    }

    pub(super) fn remove_pool(&mut self, name: &Arc<str>) {
        let concerned = self.karpenter.remove_pool(name);
        self.mark_concerned(concerned);
    }

    /// Notes how much is known of one of Karpenter's kinds; ignores other kinds.
    pub(super) fn know_karpenter(&mut self, watch: Watch, extent: Extent) {
        let concerned = self.karpenter.know(watch, extent);
        self.mark_concerned(concerned);
    }

    /// Marks the affected nodes for evaluation, if any rule repairs nodes.
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
