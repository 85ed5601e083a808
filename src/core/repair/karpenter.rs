//! Karpenter's view of a node: its `NodeClaim` and its `NodePool`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::object::karpenter::{NODE_POOL_LABEL, UNREGISTERED_TAINT};
use crate::object::{Kept, Node, NodeClaim, NodePool};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Karpenter<'a> {
    pub claim: Result<&'a NodeClaim, NoClaim<'a>>,
    /// The pool of the node, if it has one and it is known.
    pub pool: Option<&'a NodePool>,
}

/// Why a node has no `NodeClaim` to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoClaim<'a> {
    #[error("NodeClaims are not watched: start the controller with --enable-karpenter")]
    Disabled,
    #[error("Karpenter's NodeClaim resource is not installed in this cluster")]
    NotInstalled,
    #[error("NodeClaims have not been seen yet")]
    Unseen,
    #[error("no NodeClaim names this node")]
    NotFound,
    #[error("NodeClaims '{0}' and '{1}' both name this node")]
    Several(&'a str, &'a str),
    /// The claim names the node, but another instance: one of the two objects is outdated.
    #[error("NodeClaim '{0}' names this node, but another instance than the node's providerID")]
    OtherInstance(&'a str),
}

impl<'a> Karpenter<'a> {
    /// The view without Karpenter's objects, which are unknown for this reason.
    pub fn without(why: NoClaim<'a>) -> Self {
        let (claim, pool) = (Err(why), None);
        Self { claim, pool }
    }

    /// Whether more will be known soon: Karpenter's objects are still being listed, or Karpenter has not registered the node.
    pub(super) fn is_undecided(self, node: &Node) -> bool {
        let mut taints = node.taints.iter();
        match self.claim {
            Ok(_) | Err(NoClaim::Disabled | NoClaim::NotInstalled) => false,
            Err(NoClaim::Unseen) => true,
            Err(_) => taints.any(|taint| taint.key == UNREGISTERED_TAINT),
        }
    }
}

/// The name of a node's pool: its claim's, or without a claim, its label's, which a kubelet may write.
pub fn pool_name<'a>(node: &'a Node, claim: Option<&'a NodeClaim>) -> Option<&'a str> {
    let by_claim = claim.and_then(|claim| claim.node_pool.as_deref());
    let by_label = || node.labels.get(NODE_POOL_LABEL).map(String::as_str);
    by_claim.or_else(by_label).filter(|name| !name.is_empty())
}

/// All `NodeClaim`s, indexed by the nodes that they name, and all `NodePool`s.
#[derive(Debug, Default)]
pub struct NodeClaims {
    all: BTreeMap<Arc<str>, Kept<NodeClaim>>,
    pub pools: BTreeMap<Arc<str>, Kept<NodePool>>,
    /// The name of each claim, by the node that it names and by the instance.
    by_node: BTreeSet<(Arc<str>, Arc<str>)>,
    by_provider: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl NodeClaims {
    pub fn put(&mut self, claim: Kept<NodeClaim>) {
        self.remove(&claim.name);
        let named = |key: &Option<Arc<str>>| Some((key.clone()?, claim.name.clone()));
        self.by_node.extend(named(&claim.node_name));
        self.by_provider.extend(named(&claim.provider_id));
        self.all.insert(claim.name.clone(), claim);
    }

    pub fn remove(&mut self, name: &str) {
        let Some(known) = self.all.remove(name) else {
            return;
        };
        let named = |key: &Option<Arc<str>>| Some((key.clone()?, known.name.clone()));
        named(&known.node_name).map(|it| self.by_node.remove(&it));
        named(&known.provider_id).map(|it| self.by_provider.remove(&it));
    }

    pub fn get(&self, name: &str) -> Option<&Kept<NodeClaim>> {
        self.all.get(name)
    }

    pub fn of(&self, node: &Node) -> Karpenter<'_> {
        let claim = self.find(node);
        let pool = pool_name(node, claim.ok()).and_then(|name| self.pools.get(name));
        let pool = pool.map(|pool| &**pool);
        Karpenter { claim, pool }
    }

    pub fn pool_name<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        pool_name(node, self.find(node).ok())
    }

    /// The claim of this node: the one whose status names the node, else the one that names its instance.
    pub(crate) fn find(&self, node: &Node) -> Result<&NodeClaim, NoClaim<'_>> {
        let by_node = named(&self.by_node, &node.name);
        let provider = node.provider_id.iter();
        let by_provider = provider.flat_map(|id| named(&self.by_provider, id));
        let mut by_node = by_node.peekable();
        let is_named = by_node.peek().is_some();
        let names = by_node.chain(by_provider.filter(|_| !is_named));
        let mut claims = names.map(|name| self.all.get(name));
        let claim = claims.next().flatten().ok_or(NoClaim::NotFound)?;
        if let Some(other) = claims.next().flatten() {
            return Err(NoClaim::Several(&claim.name, &other.name));
        }
        let instances = claim.provider_id.as_ref().zip(node.provider_id.as_ref());
        let is_other_instance = instances.is_some_and(|(claimed, actual)| claimed != actual);
        let mut node_name = claim.node_name.iter();
        if is_other_instance || node_name.any(|claimed| *claimed != node.name) {
            return Err(NoClaim::OtherInstance(&claim.name));
        }
        Ok(claim)
    }
}

fn named<'a>(
    index: &'a BTreeSet<(Arc<str>, Arc<str>)>,
    key: &'a Arc<str>,
) -> impl Iterator<Item = &'a Arc<str>> {
    let from = index.range((key.clone(), Arc::default())..);
    from.take_while(move |(it, _)| it == key)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::kept;

    fn claim(name: &str, node: &str, provider: &str) -> NodeClaim {
        let named = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        NodeClaim {
            name: name.into(),
            node_name: named(node),
            provider_id: named(provider),
            ..NodeClaim::default()
        }
    }

    fn node(name: &str, provider: &str) -> Node {
        Node {
            name: name.into(),
            provider_id: (!provider.is_empty()).then(|| provider.into()),
            ..Node::default()
        }
    }

    #[test]
    fn a_claim_is_found_by_the_node_it_names_else_by_its_instance() {
        let node = node("n", "p");
        #[rustfmt::skip]
        let cases = [
            ("none", vec![], Err(NoClaim::NotFound)),
            ("another node's", vec![claim("c", "m", "q")], Err(NoClaim::NotFound)),
            ("by name", vec![claim("c", "n", "")], Ok("c")),
            ("by name and instance", vec![claim("c", "n", "p")], Ok("c")),
            ("by instance", vec![claim("c", "", "p")], Ok("c")),
            ("by name first", vec![claim("c", "n", "p"), claim("d", "", "p")], Ok("c")),
            ("two by name", vec![claim("c", "n", "p"), claim("d", "n", "")], Err(NoClaim::Several("c", "d"))),
            ("two by instance", vec![claim("c", "", "p"), claim("d", "", "p")], Err(NoClaim::Several("c", "d"))),
            ("an earlier node of this name", vec![claim("c", "n", "q")], Err(NoClaim::OtherInstance("c"))),
            ("the instance under another name", vec![claim("c", "m", "p")], Err(NoClaim::OtherInstance("c"))),
        ];
        for (name, claims, found) in cases {
            let mut all = NodeClaims::default();
            for claim in claims {
                all.put(kept(claim));
            }
            let answer = all.find(&node).map(|claim| &*claim.name);
            assert_eq!(answer, found, "{name}");
        }
    }

    #[test]
    fn a_claims_pool_counts_before_the_label_that_a_kubelet_may_write() {
        let pool = |name: &str| (!name.is_empty()).then(|| Arc::from(name));
        for (of_claim, label, expected) in [
            ("mine", "theirs", Some("mine")),
            ("mine", "", Some("mine")),
            ("", "labelled", Some("labelled")),
            ("", "", None),
        ] {
            let mut node = node("n", "p");
            node.labels.insert(NODE_POOL_LABEL.into(), label.into());
            let claim = NodeClaim {
                node_pool: pool(of_claim),
                ..claim("c", "n", "p")
            };
            assert_eq!(
                pool_name(&node, Some(&claim)),
                expected,
                "{of_claim}, {label}"
            );
            let label = Some(label).filter(|label| !label.is_empty());
            assert_eq!(pool_name(&node, None), label);
        }
    }
}
