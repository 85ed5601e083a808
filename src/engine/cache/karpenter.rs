//! What the watches have shown of Karpenter's `NodeClaim`s and `NodePool`s. A cluster without them is no problem: then
//! there is nothing to delete, and the rules' own readiness TTLs are in force.

use std::sync::Arc;

use crate::engine::kind::Watch;
use crate::engine::map::Map;
use crate::object::{Node, NodeClaim, NodePool};
use crate::repair::{Group, Karpenter, NoClaim, NodeClaims, pool_name};
use crate::rule::Rule;

/// Karpenter's objects, as far as the watches have shown them.
#[derive(Debug)]
pub struct KarpenterCache {
    is_watched: bool,
    claims: NodeClaims,
    pools: Map<Arc<str>, NodePool>,
    claims_known: Extent,
    pools_known: Extent,
}

/// How much is known of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Not all there is.
    Nothing,
    /// The cluster has no such resource.
    NotInstalled,
    /// All there is.
    Everything,
}

/// Which nodes something that was seen concerns.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Concerned {
    /// None.
    Nobody,
    /// Whichever any of these speaks of.
    Nodes(Vec<Mention>),
    /// All of them.
    Everybody,
}

/// What one of Karpenter's objects says about which nodes it concerns.
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
    /// A cache that has seen nothing, and never will unless its objects are watched.
    pub fn new(is_watched: bool) -> Self {
        Self {
            is_watched,
            claims: NodeClaims::default(),
            pools: Map::default(),
            claims_known: Extent::Nothing,
            pools_known: Extent::Nothing,
        }
    }

    /// What Karpenter has to say about a node.
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

    /// The name of the pool that a node belongs to.
    pub fn pool_name<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        pool_name(node, self.claims.find(node).ok())
    }

    /// The nodes among which a node's health counts under a rule.
    pub fn group<'a>(&'a self, node: &'a Node, rule: &'a Rule) -> Group<'a> {
        Group::of(self.pool_name(node), rule)
    }

    /// Whether `NodeClaim`s can be deleted here at all.
    ///
    /// # Errors
    /// Why not, as long as nothing changes about it.
    pub fn availability(&self) -> Result<(), NoClaim<'static>> {
        match (self.is_watched, self.claims_known) {
            (false, _) => Err(NoClaim::Disabled),
            (true, Extent::NotInstalled) => Err(NoClaim::NotInstalled),
            (true, Extent::Nothing | Extent::Everything) => Ok(()),
        }
    }

    /// The claim of this name.
    pub fn claim(&self, name: &str) -> Option<&NodeClaim> {
        self.claims.get(name)
    }

    /// How many objects of each kind there are; nothing where they are not watched.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        [
            ("nodeclaims", self.claims.names().count()),
            ("nodepools", self.pools.len()),
        ]
        .into_iter()
        .filter(|_| self.is_watched)
    }

    /// Names of all claims.
    pub fn claim_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.claims.names()
    }

    /// Names of all pools.
    pub fn pool_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pools.keys()
    }

    /// Notes how much is known of one of Karpenter's kinds; the others are not for here.
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
    /// Whether this speaks of a node that belongs to the pool of this name.
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
