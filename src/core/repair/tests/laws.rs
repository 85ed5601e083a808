//! Laws of repair over random clusters.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::{Cluster, POOL, claim, claim_of, repairing};
use crate::repair::{Deadline, Verdict};
use crate::testing::{Builder, RuleBuilder, at, kept, node};

/// The properties of a node.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "every one of them is drawn on its own"
)]
struct Traits {
    pool: Option<u8>,
    deadline: Option<i64>,
    ready: bool,
    completed: bool,
    initialized: bool,
    deleting: bool,
    forbidden: bool,
    claim_deleting: bool,
    rebooting: bool,
}

fn traits() -> impl Strategy<Value = Traits> {
    (
        proptest::option::of(0..3_u8),
        proptest::option::of(0..2000_i64),
        any::<bool>(),
        // Most nodes are candidates, so that the limit matters.
        proptest::array::uniform6(proptest::bool::weighted(0.1)),
    )
        .prop_map(|(pool, deadline, ready, rare)| {
            let [
                completed,
                initialized,
                deleting,
                forbidden,
                claim_deleting,
                rebooting,
            ] = rare;
            Traits {
                pool,
                deadline,
                ready,
                completed,
                initialized,
                deleting,
                forbidden,
                claim_deleting,
                rebooting,
            }
        })
}

fn cluster_of(rule: &RuleBuilder, all: &[Traits]) -> Cluster {
    let mut nodes = Vec::new();
    for (index, traits) in all.iter().enumerate() {
        let ready = if traits.ready { "True" } else { "False" };
        let mut node = node(&format!("n{index}")).condition("Ready", ready);
        if let Some(pool) = traits.pool {
            node = node.label(POOL, &pool.to_string());
        }
        if let Some(deadline) = traits.deadline {
            node = node.annotation(&Deadline::key("gate-uid"), &at(deadline).to_string());
        }
        if traits.completed {
            node = node.completed("gate-uid");
        }
        if traits.initialized {
            node = node.label("karpenter.sh/initialized", "true");
        }
        if traits.deleting {
            node = node.deleting();
        }
        if traits.forbidden {
            node = node.annotation("karpenter.sh/do-not-repair", "true");
        }
        nodes.push(node);
    }
    let mut cluster = Cluster::new(rule, &nodes);
    for (node, traits) in cluster.nodes.iter().zip(all) {
        let mut json = claim_of(&node.name);
        json["metadata"]["labels"] = json!({});
        if traits.claim_deleting {
            json["metadata"]["deletionTimestamp"] = json!(at(0));
        }
        if traits.rebooting {
            json["status"]["conditions"] = json!([{"type": "Rebooting", "status": "True"}]);
        }
        cluster.claims.put(kept(claim(json)));
    }
    cluster
}

proptest! {
    #[test]
    fn no_more_than_the_limit_is_repaired_and_never_what_must_be_left_alone(
        all in proptest::collection::vec(traits(), 1..40),
        action in prop_oneof![Just("Release"), Just("DeleteNodeClaim")],
        share in 0..60_usize,
        count in proptest::option::of(0..6_usize),
        now in 0..2000_i64,
    ) {
        let limit = count.map_or_else(|| format!("{share}%"), |count| count.to_string());
        let rule = repairing(action).nodegate(&format!(
            "repair: {{readinessTTL: 15m, action: {action}, maxUnhealthy: {limit}}}"
        ));
        let cluster = cluster_of(&rule, &all);
        let mut repaired = BTreeMap::<Option<u8>, usize>::new();
        for (index, traits) in all.iter().enumerate() {
            let verdict = cluster.verdict(index, at(now));
            if !matches!(verdict, Some(Verdict::Release | Verdict::DeleteNodeClaim(_))) {
                continue;
            }
            prop_assert!(traits.deadline.is_some_and(|deadline| deadline <= now), "{:?}", traits);
            let must_stay = traits.completed || traits.initialized || traits.deleting || traits.forbidden
                || traits.claim_deleting || traits.rebooting;
            prop_assert!(!must_stay, "{:?}", traits);
            *repaired.entry(traits.pool).or_default() += 1;
        }
        for (pool, repaired) in repaired {
            let members: Vec<_> = all.iter().filter(|traits| traits.pool == pool).collect();
            let allowed = count.unwrap_or((members.len() * share).div_ceil(100));
            prop_assert!(repaired <= allowed, "{repaired} of {} in {pool:?}", members.len());
            // Those that are already being repaired count as well.
            let past = members
                .iter()
                .filter(|traits| traits.deadline.is_some_and(|deadline| deadline <= now))
                .count();
            prop_assert!(past <= allowed, "{past} past their deadline in {pool:?}");
        }
    }

    #[test]
    fn a_first_deadline_is_never_earlier_than_the_ttl_after_the_later_of_joining_and_watching(
        joined in proptest::option::of(-5000..5000_i64),
        watching_since in -5000..5000_i64,
        now in 0..5000_i64,
        ttl in 60..5000_u64,
    ) {
        prop_assume!(watching_since <= now && joined.is_none_or(|joined| joined <= now));
        let deadline = Deadline::first(
            joined.map(at),
            at(watching_since),
            at(now),
            Duration::from_secs(ttl),
        );
        let Deadline::At(deadline) = deadline else {
            return Err(TestCaseError::fail("a TTL that ends has a deadline"));
        };
        let since = joined.unwrap_or(watching_since).max(watching_since);
        let least = at(since + i64::try_from(ttl).unwrap());
        prop_assert!(deadline >= least, "{deadline} is before {least}");
        prop_assert!(deadline > at(now), "nobody's time is up at first sight");
    }
}
