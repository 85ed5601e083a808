//! The repair of late nodes that Karpenter created.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Bench, Happening, Input, Refusal, Seen, settings};
use crate::RequestError;
use crate::io::Request;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};
use nodegate_core::condition::Watch;

const POOL: &str = "karpenter.sh/nodepool";
const TTL: &str = "nodegate.dev/readiness-ttl";
/// The age in milliseconds at which the initial nodes are late.
const OVERDUE: u64 = 60_000;

fn deleting() -> RuleBuilder {
    repairing("DeleteNodeClaim")
}

fn repairing(action: &str) -> RuleBuilder {
    rule("r")
        .waits_for("Net")
        .bootstrap_only()
        .nodegate(&format!(
            "repair: {{readinessTTL: 1m, action: {action}, maxUnhealthy: 100%}}"
        ))
}

/// The claim of this node.
fn claim_of(node: &str) -> Value {
    json!({
        "metadata": {"name": format!("{node}-claim"), "uid": format!("{node}-claim-uid")},
        "status": {"nodeName": node},
    })
}

/// The claim of this node in pool `p`.
fn pooled(node: &str) -> Value {
    let mut claim = claim_of(node);
    claim["metadata"]["labels"] = json!({POOL: "p"});
    claim
}

/// An engine that watches Karpenter's objects, with a claim for each of these nodes.
fn bench_of(rules: &[RuleBuilder], nodes: &[NodeBuilder]) -> Bench {
    let mut karpenter = settings();
    karpenter.enable_karpenter = true;
    let mut bench = Bench::of(&karpenter);
    for node in nodes {
        let name = node.clone().json()["metadata"]["name"].clone();
        let claim = claim_of(name.as_str().unwrap());
        bench.cluster.put(Watch::NodeClaims, claim);
    }
    bench.begin(rules, nodes);
    bench
}

/// The same, just before the nodes are late, with an empty record.
fn late(rules: &[RuleBuilder], nodes: &[NodeBuilder]) -> Bench {
    let mut bench = bench_of(rules, nodes);
    bench.wait(OVERDUE - 1000);
    forget(&mut bench);
    bench
}

fn forget(bench: &mut Bench) {
    bench.asked();
    bench.told();
    bench.counted();
}

fn is_being_deleted(bench: &Bench, claim: &str) -> bool {
    let claim = bench.cluster.get(Watch::NodeClaims, claim).unwrap();
    !claim["metadata"]["deletionTimestamp"].is_null()
}

/// What is asked about the claim.
fn steps(bench: &mut Bench) -> Vec<String> {
    let mut asked = bench.asked();
    asked.retain(|it| it != "conditions of n");
    asked
}

fn deletions(bench: &mut Bench) -> usize {
    let asked = bench.asked();
    asked.iter().filter(|it| it.starts_with("delete")).count()
}

#[test]
fn a_node_that_is_late_is_read_again_and_then_its_claim_deleted_once() {
    let mut bench = late(&[deleting()], &[node("n")]);
    bench.wait(2000);
    assert_eq!(
        bench.asked(),
        [
            "conditions of n",
            "read n",
            "delete n-claim",
            "hurry n-claim",
            "status of r"
        ]
    );
    assert_eq!(
        bench.told(),
        [
            "NodeClaimDeleted n: NodeClaim 'n-claim' deleted by rule 'r'. The node should have been ready by 2026-01-01T00:02:40Z: \
             Net is not reported (counts as Unknown, must be True)"
        ]
    );
    assert_eq!(bench.counted(), ["Repaired(\"DeleteNodeClaim\") r"]);
}

#[test]
fn a_claim_is_left_where_its_rule_is_suspended_before_the_last_read_is_answered() {
    let mut bench = late(&[deleting()], &[node("n")]);
    bench.held_up = |request| matches!(request, Request::ReadNode(..));
    bench.wait(2000);
    assert_eq!(bench.pending.len(), 1, "it was about to be deleted");
    bench.held_up = |_| false;
    bench.take(vec![Input::SuspendAll(true)]);
    bench.answers();
    bench.wait(60_000);
    assert_eq!(deletions(&mut bench), 0);
    bench.take(vec![Input::SuspendAll(false)]);
    bench.wait(60_000);
    assert_eq!(deletions(&mut bench), 1);
}

#[test]
fn a_deletion_that_fails_is_tried_again_and_counts_as_failed_where_it_was_refused() {
    for (name, refusal, counts) in [
        (
            "refused",
            (|request| match request {
                Request::DeleteNodeClaim { .. } => Some(RequestError::Failed("forbidden".into())),
                _ => None,
            }) as Refusal,
            true,
        ),
        (
            "not reached",
            |request| match request {
                Request::DeleteNodeClaim { .. } => {
                    Some(RequestError::Unreachable("nothing listens".into()))
                }
                _ => None,
            },
            false,
        ),
        (
            "the look is refused",
            |request| match request {
                Request::ReadNode(..) => Some(RequestError::Failed("forbidden".into())),
                _ => None,
            },
            true,
        ),
    ] {
        let mut bench = late(&[deleting()], &[node("n")]);
        bench.refusal = refusal;
        bench.wait(4000);
        assert!(
            (3..12).contains(&bench.refused),
            "{name}: {} times",
            bench.refused
        );
        let failed = "RepairFailed r".to_owned();
        assert_eq!(bench.counted().contains(&failed), counts, "{name}");
        assert_eq!(bench.told(), [""; 0], "{name}");
        bench.refusal = |_| None;
        bench.asked();
        bench.wait(30_000);
        assert_eq!(deletions(&mut bench), 1, "{name}");
        assert_eq!(bench.told().len(), 1, "{name}");
    }
}

#[test]
fn a_claim_has_a_termination_time_only_once_it_is_being_deleted() {
    let refused = |request: &Request| match request {
        Request::DeleteNodeClaim { .. } => Some(RequestError::Conflict),
        _ => None,
    };
    let unhurried = |request: &Request| match request {
        Request::PatchNodeClaim(..) => Some(RequestError::Unreachable("nothing listens".into())),
        _ => None,
    };
    let cases: [(&str, Refusal, bool); 2] = [
        ("the deletion conflicts", refused, false),
        ("the claim cannot be patched", unhurried, true),
    ];
    for (name, refusal, is_deleted) in cases {
        let mut bench = late(&[deleting()], &[node("n")]);
        bench.refusal = refusal;
        bench.wait(30_000);
        assert!(bench.refused > 0, "{name}");
        assert_eq!(is_being_deleted(&bench, "n-claim"), is_deleted, "{name}");
        let claim = bench.cluster.get(Watch::NodeClaims, "n-claim").unwrap();
        assert_eq!(claim["metadata"]["annotations"], json!(null), "{name}");
    }
}

#[test]
fn a_claim_that_is_created_again_under_its_name_is_another_one() {
    let mut bench = late(&[deleting()], &[node("n")]);
    bench.wait(2000);
    assert_eq!(deletions(&mut bench), 1);
    let mut claim = claim_of("n");
    claim["metadata"]["uid"] = json!("another");
    bench.shows(Watch::NodeClaims, claim.clone());
    assert_eq!(deletions(&mut bench), 1);
    // The same for one that is created after there was none for a while.
    bench.shows_gone(Watch::NodeClaims, "n-claim");
    bench.shows(Watch::NodeClaims, claim);
    assert_eq!(deletions(&mut bench), 0, "that one has been deleted");
}

#[test]
fn a_deletion_goes_no_further_once_the_process_is_to_stop() {
    let mut bench = late(&[deleting()], &[node("n")]);
    bench.held_up = |request| matches!(request, Request::ReadNode(..));
    bench.wait(1000);
    bench.take(vec![Input::Stop]);
    bench.answers();
    assert_eq!(steps(&mut bench), ["read n"]);
}

#[test]
fn a_few_claims_are_deleted_at_a_time() {
    let names: Vec<String> = (0..10).map(|index| format!("n-{index}")).collect();
    // In zones of their own: one in which all are late is left alone.
    let of_zone = |name: &String| node(name).label("topology.kubernetes.io/zone", name);
    let nodes: Vec<_> = names.iter().map(of_zone).collect();
    let mut bench = late(&[deleting()], &nodes);
    bench.held_up = |request| matches!(request, Request::ReadNode(..));
    bench.wait(3000);
    assert_eq!(bench.pending.len(), 8);
    bench.answers();
    bench.wait(1000);
    assert_eq!(
        bench.pending.len(),
        2,
        "the others had to wait for their turn"
    );
    bench.answers();
    assert_eq!(deletions(&mut bench), 10);
}

#[test]
fn nothing_is_deleted_while_evidence_is_stale_nor_for_as_long_again() {
    let mut bench = late(&[deleting()], &[node("n")]);
    bench.silent = vec![Watch::NodePools];
    bench.wait(30_000);
    assert_eq!(
        deletions(&mut bench),
        1,
        "the watch had not been silent for long"
    );

    let mut bench = bench_of(&[deleting()], &[node("n")]);
    bench.wait(OVERDUE - 35_000);
    bench.silent = vec![Watch::NodePools];
    bench.wait(45_000);
    assert_eq!(deletions(&mut bench), 0, "nobody knows of pools");
    bench.silent.clear();
    bench.wait(30_000);
    assert_eq!(deletions(&mut bench), 0, "as long again");
    bench.wait(17_000);
    assert_eq!(deletions(&mut bench), 1);
}

#[test]
fn an_obstacle_to_a_repair_is_reported_once() {
    let several = |bench: &mut Bench| {
        let mut second = claim_of("n");
        second["metadata"]["name"] = json!("z-claim");
        bench.shows(Watch::NodeClaims, second);
    };
    let gone = |bench: &mut Bench| bench.shows_gone(Watch::NodeClaims, "n-claim");
    let unreadable = |bench: &mut Bench| {
        let mut claim = claim_of("n");
        claim["status"]["conditions"] = json!("none");
        bench.shows(Watch::NodeClaims, claim);
    };
    #[rustfmt::skip]
    let cases: [(&str, Happening, &str); 3] = [
        ("two claims", several, "NodeClaims 'n-claim' and 'z-claim' both name this node"),
        ("no claim", gone, "no NodeClaim names this node"),
        ("a claim that cannot be parsed", unreadable, "no NodeClaim names this node"),
    ];
    for (name, change, why) in cases {
        let mut bench = late(&[deleting()], &[node("n")]);
        change(&mut bench);
        bench.told();
        bench.wait(100_000);
        let told = bench.told();
        let impossible = format!("NodeRepairImpossible n: Rule 'r' cannot repair this node: {why}");
        assert_eq!(told, [impossible], "{name}");
        assert_eq!(deletions(&mut bench), 0, "{name}");
    }
}

#[test]
fn where_too_many_are_late_they_are_told_what_their_rule_would_have_done() {
    let many = "2 of 2 nodes of rule 'r' are past their readiness TTL or not Ready any more, and maxUnhealthy 1 allows 1";
    let late_since = "The node should have been ready by 2026-01-01T00:02:40Z: Net is not reported (counts as Unknown, must be True)";
    #[rustfmt::skip]
    let cases = [
        ("DeleteNodeClaim", format!("NodeRepairBlocked NODE: Rule 'r' does not repair this node: {many}")),
        ("None", format!("NodeNotReadyInTime NODE: {late_since} (rule 'r'). It has no condition nodegate.dev/NotReadyInTime: {many}" )),
    ];
    for (action, told) in cases {
        let limited = repairing(action).nodegate(&format!(
            "repair: {{readinessTTL: 1m, action: {action}, maxUnhealthy: 1}}"
        ));
        let mut bench = late(&[limited], &[node("a"), node("b")]);
        bench.told();
        bench.wait(10_000);
        let expected = ["a", "b"].map(|node| told.replace("NODE", node));
        assert_eq!(bench.told(), expected, "{action}");
    }
}

#[test]
fn a_node_that_is_spared_is_told_of_once_and_repaired_when_nothing_forbids_it_any_more() {
    let veto = "nodegate.dev/do-not-repair";
    let pool = |annotations: Value| json!({"metadata": {"name": "p", "uid": "p-uid", "annotations": annotations}});
    let mut bench = late(&[deleting()], &[node("n")]);
    bench.shows(Watch::NodeClaims, pooled("n"));
    bench.shows(Watch::NodePools, pool(json!({veto: "true"})));
    bench.wait(10_000);
    bench.change("n", |node| {
        node["status"]["conditions"] = json!([{"type": "Net", "status": "False"}]);
    });
    bench.wait(600_000);
    assert_eq!(deletions(&mut bench), 0);
    assert_eq!(
        bench.told(),
        [
            "NodeRepairSpared n: Rule 'r' does not repair this node: annotation nodegate.dev/do-not-repair on its NodePool forbids \
             it. The node should have been ready by 2026-01-01T00:02:40Z: Net is not reported (counts as Unknown, must be True)"
        ]
    );
    bench.shows(Watch::NodePools, pool(json!({veto: "false"})));
    bench.wait(1000);
    assert_eq!(deletions(&mut bench), 1);
}

#[test]
fn a_claim_that_names_the_instance_is_found_when_it_comes() {
    let on_instance = || {
        let mut node = node("n");
        node.json()["spec"]["providerID"] = json!("aws:///i-1");
        node
    };
    for (name, status) in [
        ("by the node's name", json!({"nodeName": "n"})),
        ("by the instance", json!({"providerID": "aws:///i-1"})),
    ] {
        let mut bench = late(&[deleting()], &[on_instance()]);
        bench.shows_gone(Watch::NodeClaims, "n-claim");
        bench.wait(10_000);
        assert_eq!(deletions(&mut bench), 0, "{name}");
        let mut claim = claim_of("n");
        claim["status"] = status;
        bench.shows(Watch::NodeClaims, claim);
        assert_eq!(deletions(&mut bench), 1, "{name}");
    }
}

#[test]
fn the_readiness_ttl_of_a_pool_is_in_force_when_the_pool_is_seen_or_changes() {
    let pool =
        |ttl: &str| json!({"metadata": {"name": "p", "uid": "p-uid", "annotations": {TTL: ttl}}});
    let mut bench = bench_of(&[deleting()], &[]);
    bench.shows(Watch::NodePools, pool("forever"));
    bench.shows(Watch::NodeClaims, pooled("n"));
    bench.sees(&node("n").created(at(100)));
    bench.wait(100_000);
    assert_eq!(deletions(&mut bench), 0);
    let told = bench.told();
    let complaints: Vec<_> = told.iter().filter(|it| it.contains("Impossible")).collect();
    assert_eq!(
        complaints,
        [
            "NodeRepairImpossible n: Rule 'r' cannot repair this node: annotation nodegate.dev/readiness-ttl of NodePool 'p' is \
             \"forever\", which is no readiness TTL: write a duration of at least 1m, for example 15m, or Never"
        ]
    );
    bench.shows(Watch::NodePools, pool("1m"));
    bench.wait(59_000);
    assert_eq!(
        deletions(&mut bench),
        0,
        "it has its whole time from now on"
    );
    bench.wait(2000);
    assert_eq!(deletions(&mut bench), 1);
}

#[test]
fn a_pool_that_is_gone_leaves_its_nodes_to_the_rule() {
    let mut bench = bench_of(&[deleting()], &[]);
    let forever = json!({"metadata": {"name": "p", "uid": "p-uid", "annotations": {TTL: "1x"}}});
    bench.shows(Watch::NodePools, forever);
    bench.shows(Watch::NodeClaims, pooled("n"));
    bench.sees(&node("n").created(at(100)));
    bench.wait(10_000);
    bench.shows_gone(Watch::NodePools, "p");
    bench.wait(61_000);
    assert_eq!(deletions(&mut bench), 1);
}

#[test]
fn a_rule_says_that_it_cannot_repair_any_node_where_there_are_no_claims() {
    let of_kind = |bench: &Bench| {
        let conditions = bench.status("r")["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|it| it["type"] == "RepairUnavailable");
        found.map(|it| it["message"].as_str().unwrap().to_owned())
    };
    let mut bench = Bench::new(&[deleting()], &[node("n")]);
    bench.wait(3000);
    assert_eq!(
        of_kind(&bench).as_deref(),
        Some(
            "no node can be repaired: NodeClaims are not watched: start the controller with --enable-karpenter"
        )
    );
    let mut bench = Bench::new(&[repairing("Release")], &[node("n")]);
    bench.wait(3000);
    assert_eq!(of_kind(&bench), None, "which takes no claim");
    let mut bench = bench_of(&[deleting()], &[node("n")]);
    bench.wait(3000);
    assert_eq!(of_kind(&bench), None);
    let gone = Seen::NotInstalled(Watch::NodeClaims);
    bench.take(vec![Input::Seen(gone)]);
    bench.wait(3000);
    assert_eq!(
        of_kind(&bench).as_deref(),
        Some(
            "no node can be repaired: Karpenter's NodeClaim resource is not installed in this cluster"
        )
    );
}

#[test]
fn a_dry_run_sums_up_what_it_would_repair() {
    // By their deadlines, or since another node is not Ready.
    let none = "would not repair 2 nodes while so many are unhealthy";
    for (limit, ready, said) in [
        ("100%", "True", "would repair 2 nodes"),
        ("1", "True", none),
        ("0", "False", none),
    ] {
        let rule = rule("r")
            .waits_for("Net")
            .bootstrap_only()
            .dry_run()
            .nodegate(&format!(
                "repair: {{readinessTTL: 1m, action: DeleteNodeClaim, maxUnhealthy: {limit}}}"
            ));
        let gated = |name| node(name).taint(GATE, "NoSchedule").created(at(100));
        let other = node("c").condition("Net", "True");
        let nodes = [gated("a"), gated("b"), other.condition("Ready", ready)];
        let mut bench = bench_of(&[rule], &nodes);
        let summary = |bench: &Bench| {
            let summary = &bench.status("r")["dryRunResults"]["summary"];
            summary.as_str().unwrap().to_owned()
        };
        bench.wait(58_000);
        assert!(!summary(&bench).contains("repair"), "{}", summary(&bench));
        bench.wait(5000);
        assert!(summary(&bench).contains(said), "{}", summary(&bench));
        assert_eq!(deletions(&mut bench), 0);
    }
}

/// The node goes with its claim, and this one comes in its place.
fn replace(bench: &mut Bench, old: &str, new: &str) {
    bench.shows_gone(Watch::NodeClaims, &format!("{old}-claim"));
    bench.gone(old);
    bench.wait(1000);
    bench.shows(Watch::NodeClaims, claim_of(new));
    bench.sees(&node(new).created(bench.now.wall));
}

#[test]
fn replacing_what_does_not_help_is_rarer_each_time_and_ends_until_a_node_gets_ready() {
    let old = node("old").condition("Net", "True").completed("r-uid");
    let mut bench = bench_of(&[deleting()], &[node("n0"), old]);
    // In minutes from when each node came.
    let lasts = |bench: &mut Bench, name: &str| {
        (1..30).find(|_| {
            bench.wait(60_000);
            is_being_deleted(bench, &format!("{name}-claim"))
        })
    };
    let mut all = Vec::new();
    for (name, next) in [("n0", "n1"), ("n1", "n2"), ("n2", "n3")] {
        // A node that has been ready for long says nothing.
        bench.change("old", |node| {
            node["metadata"]["labels"]["seen"] = json!(name);
        });
        all.push(lasts(&mut bench, name));
        replace(&mut bench, name, next);
    }
    all.push(lasts(&mut bench, "n3"));
    assert_eq!(all, [Some(1), Some(2), Some(4), None]);
    let told = bench.told();
    let futile = "NodeRepairBlocked n3: Rule 'r' does not repair this node: 3 replacements of rule 'r' missed Net too: replacing does not help";
    assert!(told.iter().any(|it| it == futile), "{told:#?}");
    let setbacks = bench.status("r")["nodegate"]["setbacks"].clone();
    assert_eq!(
        (&setbacks[0]["condition"], &setbacks[0]["missed"]),
        (&json!("Net"), &json!(2))
    );

    // The next leader knows it.
    let mut rule = deleting();
    rule.json()["metadata"]["generation"] = json!(1);
    rule.json()["status"] = bench.status("r").clone();
    let mut next = bench_of(&[rule], &[]);
    let passed = bench.now.monotonic - bench.began;
    next.wait(passed.as_millis().try_into().unwrap());
    next.shows(Watch::NodeClaims, claim_of("n3"));
    let now = next.now.wall;
    next.sees(&node("n3").created(now));
    assert_eq!(lasts(&mut next, "n3"), None);

    let now = bench.now.wall;
    bench.sees(&node("ready").created(now).condition("Net", "True"));
    assert!(lasts(&mut bench, "n3").is_some());
    bench.wait(5000);
    assert_eq!(bench.status("r")["nodegate"]["setbacks"][0]["missed"], 0);
}

#[test]
fn a_deletion_whose_answer_was_lost_counts_as_a_replacement() {
    for (error, counts) in [
        (RequestError::TimedOut(Duration::from_secs(10)), true),
        (RequestError::Unreachable(String::new()), true),
        (RequestError::Failed("forbidden".into()), false),
    ] {
        let mut bench = bench_of(&[deleting()], &[node("n0")]);
        bench.refusal = match error {
            RequestError::TimedOut(_) => {
                |it| refused(it, RequestError::TimedOut(Duration::from_secs(10)))
            }
            RequestError::Unreachable(_) => {
                |it| refused(it, RequestError::Unreachable(String::new()))
            }
            _ => |it| refused(it, RequestError::Failed("forbidden".into())),
        };
        bench.wait(OVERDUE);
        replace(&mut bench, "n0", "n1");
        bench.wait(5000);
        let setback = &bench.status("r")["nodegate"]["setbacks"][0];
        assert_eq!(setback["condition"] == "Net", counts, "{error}");
    }
}

fn refused(request: &Request, why: RequestError) -> Option<RequestError> {
    matches!(request, Request::DeleteNodeClaim { .. }).then_some(why)
}
