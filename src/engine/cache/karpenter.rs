//! Karpenter's `NodeClaim`s and `NodePool`s, from watches and write responses. Without them there is nothing to delete, and the
//! rules' own readiness TTLs apply.

use std::sync::Arc;

use kube::Resource;

use super::Cache;
use crate::condition::Watch;
use crate::engine::broken::Identity;
use crate::engine::map::Map;
use crate::object::{Node, NodeClaim, NodePool, ObjectKey, Watched};
use crate::repair::{Group, Karpenter, NoClaim, NodeClaims, pool_name};
use crate::rule::Rule;

/// The cache of Karpenter's objects.
#[derive(Debug)]
pub struct KarpenterCache {
    is_watched: bool,
    claims: NodeClaims,
    pools: Map<Arc<str>, NodePool>,
    claims_known: Extent,
    pools_known: Extent,
}

/// How much is known of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Not everything yet.
    Nothing,
    /// The cluster has no such resource.
    NotInstalled,
    /// Everything.
    Everything,
}

impl KarpenterCache {
    /// An empty cache. It stays empty unless Karpenter's objects are watched.
    pub fn new(is_watched: bool) -> Self {
        Self {
            is_watched,
            claims: NodeClaims::default(),
            pools: Map::default(),
            claims_known: Extent::Nothing,
            pools_known: Extent::Nothing,
        }
    }

    /// What Karpenter's objects say about a node.
    pub fn of(&self, node: &Node) -> Karpenter<'_> {
        match (self.is_watched, self.claims_known, self.pools_known) {
            (false, _, _) => Karpenter::Disabled,
            (true, Extent::Nothing, _) | (true, _, Extent::Nothing) => Karpenter::Unseen,
            (true, Extent::NotInstalled, _) => Karpenter::NotInstalled,
            (true, _, _) => {
                let claim = self.claims.find(node);
                let pool = pool_name(node, claim.ok()).and_then(|name| self.pools.get(name));
                Karpenter::Known { claim, pool }
            }
        }
    }

    pub fn pool_name<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        pool_name(node, self.claims.find(node).ok())
    }

    /// The group of nodes in which a rule's repair limit counts this node.
    pub fn group<'a>(&'a self, node: &'a Node, rule: &'a Rule) -> Group<'a> {
        Group::of(self.pool_name(node), rule)
    }

    /// Whether the controller can delete `NodeClaim`s at all in this cluster.
    ///
    /// # Errors
    /// The reason why not.
    pub fn availability(&self) -> Result<(), NoClaim<'static>> {
        match (self.is_watched, self.claims_known) {
            (false, _) => Err(NoClaim::Disabled),
            (true, Extent::NotInstalled) => Err(NoClaim::NotInstalled),
            (true, Extent::Nothing | Extent::Everything) => Ok(()),
        }
    }

    pub fn claim(&self, name: &str) -> Option<&NodeClaim> {
        self.claims.get(name)
    }

    pub fn is_watched(&self) -> bool {
        self.is_watched
    }
}

impl Cache {
    /// Keeps a claim. An unreadable one is dropped, so that the controller never deletes it.
    pub(super) fn see_claim(&mut self, object: Watched<NodeClaim>) {
        let identity = Identity::of(Watch::NodeClaims, object.meta());
        let version = object.version();
        let key = identity.key.clone();
        let Some((_, claim)) = self.understood(identity, version, None, object.read()) else {
            self.index.remove(Watch::NodeClaims, &key);
            return self.remove_claim(&key.name);
        };
        let known = self.karpenter.claims.put(claim.clone());
        let is_same = |known: &NodeClaim| {
            let version = known.version;
            *known
                == NodeClaim {
                    version,
                    ..claim.clone()
                }
        };
        if !known.as_ref().is_some_and(is_same) {
            self.mark_where(|node, _| {
                claim.names(node) || known.as_ref().is_some_and(|known| known.names(node))
            });
        }
    }

    /// Takes in a claim from a write response, unless the cache has a newer state or no such claim. The watch will show a new
    /// claim of the same name.
    pub fn update_claim(&mut self, object: Watched<NodeClaim>) {
        let meta = object.meta();
        let known = meta
            .name
            .as_deref()
            .and_then(|name| self.karpenter.claim(name));
        let is_known = known.is_some_and(|known| meta.uid.as_deref() == Some(&*known.uid));
        let (key, version) = (ObjectKey::of(meta), object.version());
        if is_known && !self.is_outdated(Watch::NodeClaims, &key, version) {
            self.see_claim(object);
        }
    }

    pub(super) fn remove_claim(&mut self, name: &str) {
        if let Some(gone) = self.karpenter.claims.remove(name) {
            self.mark_where(|node, _| gone.names(node));
        }
    }

    /// Keeps a pool. For an unreadable one, the last readable state stays.
    pub(super) fn see_pool(&mut self, object: Watched<NodePool>) {
        let identity = Identity::of(Watch::NodePools, object.meta());
        let version = object.version();
        let pool = self.understood(identity, version, None, object.read());
        if let Some((ObjectKey { name, .. }, pool)) = pool {
            let known = self.karpenter.pools.insert(name.clone(), pool);
            if known.as_ref() != self.karpenter.pools.get(&name) {
                self.mark_where(|_, pool| pool == Some(&*name));
            }
        }
    }

    pub(super) fn remove_pool(&mut self, name: &Arc<str>) {
        self.karpenter.pools.remove(name);
        self.mark_where(|_, pool| pool == Some(&**name));
    }

    /// Notes how much is known of one of Karpenter's kinds; ignores other kinds.
    pub(super) fn know_karpenter(&mut self, watch: Watch, extent: Extent) {
        let known = match watch {
            Watch::NodeClaims => &mut self.karpenter.claims_known,
            Watch::NodePools => &mut self.karpenter.pools_known,
            _ => return,
        };
        let known = std::mem::replace(known, extent);
        if known == Extent::NotInstalled && extent == Extent::NotInstalled {
            return;
        }
        if !self.rule_set.repairing.is_empty() {
            self.rule_news.are_untold = true;
            self.mark_where(|_, _| true);
        }
    }

    /// Marks the nodes that a predicate holds for, given each with the name of its pool, if any rule repairs nodes.
    fn mark_where(&mut self, is_meant: impl Fn(&Node, Option<&str>) -> bool) {
        if self.rule_set.repairing.is_empty() {
            return;
        }
        let meant = self
            .nodes()
            .filter(|node| is_meant(node, self.karpenter.pool_name(node)));
        let names: Vec<_> = meant.map(|node| node.name.clone()).collect();
        for name in &names {
            self.mark(name);
        }
    }
}
