//! Karpenter's view of a node: its `NodeClaim` and its `NodePool`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::condition::Observations;
use crate::guard::{Zone, Zones};
use crate::object::karpenter::UNREGISTERED_TAINT;
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

    /// The name of the node's pool, by its claim: the node's own label is its kubelet's to write.
    pub fn pool_name(self) -> Option<&'a str> {
        self.claim.ok()?.node_pool.as_deref()
    }

    /// The zones that the node counts in: that of its claim, else the one where this process first saw it, and where it is now.
    pub fn zones(self, node: &Node, observations: &Observations) -> Zones {
        let claimed = self.claim.ok().and_then(|claim| claim.zone.clone());
        let named = Zone::of(node.provider_id.as_deref(), &node.labels);
        let other = claimed.is_none() && named != observations.home;
        Zones {
            home: claimed.unwrap_or_else(|| observations.home.clone()),
            other: other.then_some(named),
        }
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
        let name = claim.ok().and_then(|claim| claim.node_pool.as_ref());
        let pool = name.and_then(|name| self.pools.get(name));
        let pool = pool.map(|pool| &**pool);
        Karpenter { claim, pool }
    }

    /// The claim of this node: the one whose status names the node, else the one that names its instance.
    fn find(&self, node: &Node) -> Result<&NodeClaim, NoClaim<'_>> {
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
    use jiff::Timestamp;

    use super::*;
    use crate::testing::{Builder, kept};

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
    fn a_node_is_where_its_claim_says_else_where_it_was_first_seen() {
        const ZONE: &str = "topology.kubernetes.io/zone";
        let of_label = |zone: &str| Zone::of(None, &BTreeMap::from([(ZONE.into(), zone.into())]));
        let on_aws = "aws:///eu-west-1a/i-1";
        #[rustfmt::skip]
        let cases = [
            ("by label", "", "", "a", "a", ("a", None)),
            ("another label since", "", "", "a", "b", ("a", Some("b"))),
            ("a label that goes", "", "", "a", "", ("a", Some("(no zone)"))),
            ("a label that comes", "", "", "", "a", ("(no zone)", Some("a"))),
            ("by the provider ID", "", on_aws, "a", "b", ("eu-west-1/eu-west-1a", None)),
            ("by its claim", "c", "", "a", "b", ("c", None)),
            ("by its claim, on an instance", "c", "lab:///i-1", "a", "c", ("c", None)),
        ];
        for (name, claimed, provider, first, now, (home, other)) in cases {
            let state = |zone: &str| {
                let mut node = node("n", provider);
                if !zone.is_empty() {
                    node.labels.insert(ZONE.into(), zone.into());
                }
                node
            };
            let mut observations = Observations::default();
            let (first, now) = (state(first), state(now));
            let time = Timestamp::default();
            observations.see(None, &first, &BTreeSet::new(), time);
            observations.see(Some(&first), &now, &BTreeSet::new(), time);
            let claim = NodeClaim {
                zone: (!claimed.is_empty()).then(|| of_label(claimed)),
                ..claim("c", "n", provider)
            };
            let mut karpenter = Karpenter::without(NoClaim::NotFound);
            if !claimed.is_empty() {
                karpenter.claim = Ok(&claim);
            }
            let zones = karpenter.zones(&now, &observations);
            let found = (zones.home.to_string(), zones.other.map(|it| it.to_string()));
            assert_eq!(found, (home.to_owned(), other.map(str::to_owned)), "{name}");
        }
    }

    #[test]
    fn a_node_may_get_its_zone_until_it_is_set_up() {
        let of = |zone: &str, taint: &[&str]| {
            let mut node = crate::testing::node("n").label("topology.kubernetes.io/zone", zone);
            for key in taint {
                node = node.taint(key, "NoSchedule");
            }
            node.build()
        };
        let new = &["node.cloudprovider.kubernetes.io/uninitialized"][..];
        let states = [of("", new), of("b", new), of("a", &[]), of("c", &[])];
        let mut observations = Observations::default();
        let mut known = None;
        let homes = states.iter().map(|node| {
            observations.see(
                known.replace(node),
                node,
                &BTreeSet::new(),
                Timestamp::default(),
            );
            observations.home.to_string()
        });
        assert_eq!(homes.collect::<Vec<_>>(), ["(no zone)", "b", "a", "a"]);
    }
}
