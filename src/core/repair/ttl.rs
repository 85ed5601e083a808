//! The readiness TTL, how long a node may stay gated: the rule's, unless its `NodePool` or `NodeClaim` sets another.

use std::time::Duration;

use super::karpenter::Karpenter;
use crate::api::{self, Repair, names::READINESS_TTL};
use crate::object::Node;

/// The shortest readiness TTL, as in the CRD.
const SHORTEST: Duration = Duration::from_secs(60);

/// Why the readiness TTL is unknown. Until it is known, the node has no deadline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTtl {
    /// Karpenter's objects have not been seen, or Karpenter has not registered the node.
    #[error("it is not known yet which NodePool the node belongs to")]
    Undecided,
    /// The text is no readiness TTL. The rule's does not replace it, because a longer one may have been meant.
    #[error(
        "{written} is {text:?}, which is no readiness TTL: write a duration of at least 1m, for example 15m, or Never"
    )]
    Unreadable { written: String, text: String },
}

/// The readiness TTL of a node: its claim's, else its pool's, else the rule's; Karpenter's `Never` is the longest duration.
pub fn in_force(repair: &Repair, node: &Node, karpenter: Karpenter<'_>) -> Result<Duration, NoTtl> {
    if karpenter.is_undecided(node) {
        return Err(NoTtl::Undecided);
    }
    if let Ok(claim) = karpenter.claim
        && let Some(text) = &claim.readiness_ttl
    {
        let written = || format!("spec.readinessTTL of NodeClaim '{}'", claim.name);
        return parse(text, written);
    }
    if let Some(pool) = karpenter.pool
        && let Some(text) = &pool.readiness_ttl
    {
        let written = || format!("annotation {READINESS_TTL} of NodePool '{}'", pool.name);
        return parse(text, written);
    }
    Ok(repair.readiness_ttl.as_std())
}

fn parse(text: &str, written: impl Fn() -> String) -> Result<Duration, NoTtl> {
    let text = text.trim();
    if text == "Never" {
        return Ok(Duration::MAX);
    }
    let ttl = text.parse().ok().map(api::Duration::as_std);
    let ttl = ttl.filter(|ttl| *ttl >= SHORTEST);
    ttl.ok_or_else(|| NoTtl::Unreadable {
        written: written(),
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{NodeClaim, NodePool};
    use crate::repair::NoClaim;
    use crate::testing::node;

    fn repair() -> Repair {
        serde_json::from_str(r#"{"readinessTTL": "15m"}"#).unwrap()
    }

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    #[test]
    fn the_claim_wins_over_the_pool_and_the_pool_over_the_rule() {
        let node = node("n").build();
        for (name, pool, claim, expected) in [
            ("rule alone", None, None, minutes(15)),
            ("pool", Some("20m"), None, minutes(20)),
            ("claim", None, Some("5m"), minutes(5)),
            ("both", Some("20m"), Some("5m"), minutes(5)),
            ("never, says the pool", Some("Never"), None, Duration::MAX),
            (
                "never, says the claim",
                Some("5m"),
                Some("Never"),
                Duration::MAX,
            ),
            ("blanks around it", Some(" 1h30m "), None, minutes(90)),
        ] {
            let claim = NodeClaim {
                readiness_ttl: claim.map(str::to_owned),
                ..NodeClaim::default()
            };
            let pool = pool.map(|ttl| NodePool {
                readiness_ttl: Some(ttl.to_owned()),
                ..NodePool::default()
            });
            let karpenter = Karpenter {
                claim: Ok(&claim),
                pool: pool.as_ref(),
            };
            assert_eq!(
                in_force(&repair(), &node, karpenter),
                Ok(expected),
                "{name}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_replaced_by_something_shorter() {
        for text in ["", "soon", "15", "-5m", "59s", "0", "never"] {
            let read = parse(text, String::new);
            assert!(matches!(read, Err(NoTtl::Unreadable { .. })), "{text:?}");
        }
    }

    #[test]
    fn a_node_that_karpenter_has_not_taken_in_yet_has_no_ttl_yet() {
        let new = node("n")
            .taint("karpenter.sh/unregistered", "NoExecute")
            .build();
        let old = node("n").build();
        for (name, node, why, is_known) in [
            ("not registered, no claim", &new, NoClaim::NotFound, false),
            ("not Karpenter's", &old, NoClaim::NotFound, true),
            ("nothing seen yet", &old, NoClaim::Unseen, false),
            ("not enabled", &new, NoClaim::Disabled, true),
            ("not installed", &new, NoClaim::NotInstalled, true),
        ] {
            let karpenter = Karpenter::without(why);
            let expected = if is_known {
                Ok(minutes(15))
            } else {
                Err(NoTtl::Undecided)
            };
            assert_eq!(in_force(&repair(), node, karpenter), expected, "{name}");
        }
    }
}
