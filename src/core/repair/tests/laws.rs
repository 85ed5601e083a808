//! Laws of repair over random clusters.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::{Cluster, POOL, claim, claim_of, repairing, seen};
use crate::repair::{Deadline, Verdict};
use crate::testing::{Builder, RuleBuilder, at, kept, node};

/// Labels that say where a node belongs.
const PLACES: [&str; 4] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    POOL,
];

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
        let pool = traits.pool.map(|pool| pool.to_string());
        json["metadata"]["labels"] = pool.map_or(json!({}), |pool| json!({ POOL: pool }));
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
    fn no_label_of_a_node_changes_what_happens_to_another(
        all in proptest::collection::vec(traits(), 1..20),
        placed in proptest::collection::vec(0..2_u8, 20),
        mover in 0..20_usize,
        labels in proptest::collection::btree_map(
            proptest::sample::select(&PLACES[..]),
            proptest::sample::select(&["", "0", "1"][..]),
            0..4,
        ),
        has_claim in any::<bool>(),
        limit in proptest::sample::select(&["20%", "100%", "2"][..]),
        now in 0..2000_i64,
    ) {
        let rule = repairing(&format!("DeleteNodeClaim, maxUnhealthy: {limit}"));
        let nodes = cluster_of(&rule, &all).nodes;
        let mover = mover % all.len();
        let verdicts = |labels: &BTreeMap<&str, &str>| {
            let mut cluster = cluster_of(&rule, &all);
            let first = cluster.nodes.iter().zip(&placed).map(|(node, zone)| {
                let mut first = node.clone();
                first.labels.insert(PLACES[0].into(), zone.to_string());
                first
            });
            let first: Vec<_> = first.collect();
            cluster.seen = first.iter().map(seen).collect();
            cluster.nodes = first;
            if !has_claim {
                cluster.claims.remove(&format!("n{mover}-claim"));
            }
            let mover = &mut cluster.nodes[mover].labels;
            mover.extend(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
            let verdicts = (0..nodes.len()).map(|index| format!("{:?}", cluster.verdict(index, at(now))));
            verdicts.collect::<Vec<_>>()
        };
        let mut before = verdicts(&BTreeMap::new());
        let mut after = verdicts(&labels);
        before.remove(mover);
        after.remove(mover);
        prop_assert_eq!(before, after);
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
