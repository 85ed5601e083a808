//! What the watches have shown of Karpenter's `NodeClaim`s and `NodePool`s. A cluster without them is no problem: then
//! there is nothing to delete, and the rules' own readiness TTLs are in force.

use std::collections::HashMap;
use std::sync::Arc;

use kube::Resource;

use super::{Event, Identity, Relist, Unreadables, Watch, is_stale};
use crate::object::{self, Node, NodeClaim, NodeClaimObject, NodePool, NodePoolObject};
use crate::repair::{Claims, Group, Karpenter, NoClaim, pool_name};
use crate::rule::Rule;

/// Karpenter's objects, as far as the watches have shown them.
#[derive(Debug)]
pub struct KarpenterCache {
    is_watched: bool,
    claims: Claims,
    pools: HashMap<Arc<str>, NodePool>,
    claims_seen: Seen,
    pools_seen: Seen,
    claim_relist: Relist<Arc<str>>,
    pool_relist: Relist<Arc<str>>,
}

/// How much of one kind has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Not all there is.
    Nothing,
    /// The cluster has no such resource.
    NotInstalled,
    /// All there is.
    Everything,
}

/// Which nodes something that was seen concerns.
#[derive(Debug, PartialEq, Eq)]
pub enum Concerned {
    /// None.
    Nobody,
    /// Whichever any of these speaks of.
    Nodes(Vec<Mention>),
    /// All of them.
    Everybody,
}

/// What one of Karpenter's objects says about which nodes it concerns.
#[derive(Debug, PartialEq, Eq)]
pub enum Mention {
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
            claims: Claims::default(),
            pools: HashMap::new(),
            claims_seen: Seen::Nothing,
            pools_seen: Seen::Nothing,
            claim_relist: Relist::none(),
            pool_relist: Relist::none(),
        }
    }

    /// What Karpenter has to say about a node.
    pub fn of(&self, node: &Node) -> Karpenter<'_> {
        match (self.is_watched, self.claims_seen, self.pools_seen) {
            (false, _, _) => Karpenter::Disabled,
            (true, Seen::Nothing, _) | (true, _, Seen::Nothing) => Karpenter::Unseen,
            (true, Seen::NotInstalled, _) => Karpenter::NotInstalled,
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
        match (self.is_watched, self.claims_seen) {
            (false, _) => Err(NoClaim::Disabled),
            (true, Seen::NotInstalled) => Err(NoClaim::NotInstalled),
            (true, Seen::Nothing | Seen::Everything) => Ok(()),
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

    /// Takes in what a watch of `NodeClaim`s shows.
    pub fn apply_claim(
        &mut self,
        event: Event<NodeClaimObject>,
        unreadables: &mut Unreadables,
    ) -> Concerned {
        match event {
            Event::Init => {
                self.claim_relist.begin();
                unreadables.begin_list(Watch::NodeClaims);
                Concerned::Nobody
            }
            Event::InitApply(object) => {
                self.claim_relist.saw(object::name(object.meta()));
                self.see_claim(object, unreadables)
            }
            Event::Apply(object) => {
                let known = self.claims.get(&object::name(object.meta()));
                let shown = object::resource_version(object.meta());
                if known.is_some_and(|known| is_stale(known.version, shown)) {
                    return Concerned::Nobody;
                }
                self.see_claim(object, unreadables)
            }
            Event::Delete(object) => {
                unreadables.clear(&Identity::of(Watch::NodeClaims, object.meta()));
                let gone = self.claims.remove(&object::name(object.meta()));
                Concerned::Nodes(gone.iter().flat_map(mentions).collect())
            }
            Event::InitDone => {
                unreadables.end_list(Watch::NodeClaims);
                let is_gone = self.claim_relist.end();
                let gone: Vec<_> = self
                    .claims
                    .names()
                    .filter(|name| is_gone(name))
                    .cloned()
                    .collect();
                for name in gone {
                    self.claims.remove(&name);
                }
                self.claims_seen = Seen::Everything;
                Concerned::Everybody
            }
        }
    }

    /// Keeps a claim as it is shown. One that cannot be understood is as good as none: it must not be deleted.
    fn see_claim(&mut self, object: NodeClaimObject, unreadables: &mut Unreadables) -> Concerned {
        let identity = Identity::of(Watch::NodeClaims, object.meta());
        let name = identity.name.clone();
        if let (Some(claim), _) = unreadables.understood(identity, None, object.read()) {
            return self.put_claim(claim);
        }
        let known = self.claims.remove(&name);
        Concerned::Nodes(known.iter().flat_map(mentions).collect())
    }

    fn put_claim(&mut self, claim: NodeClaim) -> Concerned {
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

    /// Takes in what a watch of `NodePool`s shows.
    pub fn apply_pool(
        &mut self,
        event: Event<NodePoolObject>,
        unreadables: &mut Unreadables,
    ) -> Concerned {
        match event {
            Event::Init => {
                self.pool_relist.begin();
                unreadables.begin_list(Watch::NodePools);
                Concerned::Nobody
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let identity = Identity::of(Watch::NodePools, object.meta());
                let name = identity.name.clone();
                self.pool_relist.saw(name.clone());
                // One that cannot be understood is taken as it was last.
                let (Some(pool), _) = unreadables.understood(identity, None, object.read()) else {
                    return Concerned::Nobody;
                };
                let known = self.pools.insert(name.clone(), pool);
                if known.as_ref() == self.pools.get(&name) {
                    return Concerned::Nobody;
                }
                Concerned::Nodes(vec![Mention::Pool(name)])
            }
            Event::Delete(object) => {
                unreadables.clear(&Identity::of(Watch::NodePools, object.meta()));
                let name = object::name(object.meta());
                self.pools.remove(&name);
                Concerned::Nodes(vec![Mention::Pool(name)])
            }
            Event::InitDone => {
                unreadables.end_list(Watch::NodePools);
                let is_gone = self.pool_relist.end();
                self.pools.retain(|name, _| !is_gone(name));
                self.pools_seen = Seen::Everything;
                Concerned::Everybody
            }
        }
    }

    /// Takes in that the cluster has no `NodeClaim`s.
    pub fn no_claims(&mut self) -> Concerned {
        self.claims = Claims::default();
        not_installed(&mut self.claims_seen)
    }

    /// Takes in that the cluster has no `NodePool`s.
    pub fn no_pools(&mut self) -> Concerned {
        self.pools.clear();
        not_installed(&mut self.pools_seen)
    }
}

impl Mention {
    /// Whether this speaks of a node that belongs to the pool of this name.
    pub fn is_of(&self, node: &Node, pool: Option<&str>) -> bool {
        match self {
            Self::Name(name) => *name == node.name,
            Self::Instance(instance) => node.provider_id.as_ref() == Some(instance),
            Self::Pool(name) => pool == Some(&**name),
        }
    }
}

fn not_installed(seen: &mut Seen) -> Concerned {
    match std::mem::replace(seen, Seen::NotInstalled) {
        Seen::NotInstalled => Concerned::Nobody,
        Seen::Nothing | Seen::Everything => Concerned::Everybody,
    }
}

fn mentions(claim: &NodeClaim) -> Vec<Mention> {
    let by_name = claim.node_name.clone().map(Mention::Name);
    let by_instance = claim.provider_id.clone().map(Mention::Instance);
    by_name.into_iter().chain(by_instance).collect()
}
