//! Karpenter's `NodeClaim`s and `NodePool`s, from watches. Without them there is nothing to delete, and the rules' own
//! readiness TTLs apply.

use std::sync::Arc;

use crate::engine::kind::Watch;
use crate::engine::map::Map;
use crate::object::{Node, NodeClaim, NodePool};
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

/// Which nodes a change affects.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Concerned {
    /// None.
    Nobody,
    /// Those that any of these matches.
    Nodes(Vec<Mention>),
    /// All of them.
    Everybody,
}

/// Identifies nodes that one of Karpenter's objects refers to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mention {
    /// The node of this name.
    Name(Arc<str>),
    /// The node on this instance.
    Instance(Arc<str>),
    /// The nodes of this pool.
    Pool(Arc<str>),
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

    /// Notes how much is known of one of Karpenter's kinds, and ignores other kinds.
    pub(super) fn know(&mut self, watch: Watch, extent: Extent) -> Concerned {
        let known = match watch {
            Watch::NodeClaims => &mut self.claims_known,
            Watch::NodePools => &mut self.pools_known,
            _ => return Concerned::Nobody,
        };
        match (std::mem::replace(known, extent), extent) {
            (Extent::NotInstalled, Extent::NotInstalled) => Concerned::Nobody,
            _ => Concerned::Everybody,
        }
    }

    pub(super) fn put_claim(&mut self, claim: NodeClaim) -> Concerned {
        let new = claim.clone();
        let known = self.claims.put(claim);
        let is_same = known.as_ref().is_some_and(|known| {
            *known
                == NodeClaim {
                    version: known.version,
                    ..new.clone()
                }
        });
        if is_same {
            return Concerned::Nobody;
        }
        let both = known.iter().chain([&new]);
        Concerned::Nodes(both.flat_map(mentions).collect())
    }

    pub(super) fn remove_claim(&mut self, name: &str) -> Concerned {
        let gone = self.claims.remove(name);
        Concerned::Nodes(gone.iter().flat_map(mentions).collect())
    }

    pub(super) fn put_pool(&mut self, name: &Arc<str>, pool: NodePool) -> Concerned {
        let known = self.pools.insert(name.clone(), pool);
        if known.as_ref() == self.pools.get(name) {
            return Concerned::Nobody;
        }
        Concerned::Nodes(vec![Mention::Pool(name.clone())])
    }

    pub(super) fn remove_pool(&mut self, name: &Arc<str>) -> Concerned {
        self.pools.remove(name);
        Concerned::Nodes(vec![Mention::Pool(name.clone())])
    }
}

impl Mention {
    /// Whether this matches a node of the pool of this name.
    pub(super) fn is_of(&self, node: &Node, pool: Option<&str>) -> bool {
        match self {
            Self::Name(name) => *name == node.name,
            Self::Instance(instance) => node.provider_id.as_ref() == Some(instance),
            Self::Pool(name) => pool == Some(&**name),
        }
    }
}

fn mentions(claim: &NodeClaim) -> Vec<Mention> {
    let by_name = claim.node_name.clone().map(Mention::Name);
    let by_instance = claim.provider_id.clone().map(Mention::Instance);
    by_name.into_iter().chain(by_instance).collect()
}
