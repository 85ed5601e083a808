//! Nodes that never become ready.

use serde_json::{Value, json};

use super::ends::End::{Gone, Held, PutOn, There};
use super::objects::{GATE, MAINTENANCE, READY, Rule, rule, rule_key};
use super::{Base, joining};
use crate::sim::actors::Order::{Say, SayGood};
use crate::sim::actors::ask::taint;
use crate::sim::actors::{Annotator, Forgery, Karpenter, Kubelets, Operator, Pool, Reporter};
use crate::sim::scenario::Scene;
use crate::sim::settings::{Settings, usual};
use crate::sim::time::s;
use crate::{Key, Kind};

/// A startup taint that no rule manages.
const OTHERS: &str = "example.com/startup";
/// The annotation that forbids repair.
const VETO: &str = "nodegate.dev/do-not-repair";
/// The nodes of the pool, and what becomes of them when the second one is replaced.
const POOL: &[&str] = &["pool-1", "pool-2", "pool-3", "pool-4", "pool-5"];
const REPLACED: &[&str] = &["pool-1", "pool-3", "pool-4", "pool-5", "pool-6"];

fn repairing(action: &str) -> Rule {
    let repair = json!({"readinessTTL": "1m", "action": action, "maxUnhealthy": "20%"});
    rule("network").nodegate("repair", repair)
}

fn karpenter() -> Settings {
    Settings {
        enable_karpenter: true,
        ..usual()
    }
}

/// A pool of five nodes that register with these taints.
fn pool<'a>(scene: Scene<'a>, reporter: Reporter, taints: &[&str]) -> Scene<'a> {
    pool_of(scene, 5, reporter, taints)
}

fn pool_of<'a>(scene: Scene<'a>, nodes: usize, reporter: Reporter, taints: &[&str]) -> Scene<'a> {
    let pool = Pool {
        name: "pool",
        nodes,
        startup_taints: taints.iter().map(|key| taint(key)).collect(),
    };
    scene
        .has((pool_key(), json!({"spec": {}})))
        .nodes(Kubelets::default())
        .acts(Karpenter::new(pool, s(3)))
        .acts(reporter)
}

fn pool_key() -> Key {
    Key::cluster(Kind::NodePool, "pool")
}

fn veto(value: &str) -> Value {
    json!({"metadata": {"annotations": {VETO: value}}})
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "release: a node that is not ready in time is released all the same",
        s(150),
        |it| {
            it.has(repairing("Release"))
                .nodes(joining(5))
                .acts(Reporter::new(READY).ails("n-1"))
        },
        &[PutOn(GATE, 5), Held(GATE, &[])],
    ),
    Base::new(
        "replace: the claim of a node that is not ready in time is deleted, and another node comes",
        s(180),
        |it| {
            let scene = it.has(repairing("DeleteNodeClaim"));
            pool(scene, Reporter::new(READY).ails("pool-2"), &[GATE])
        },
        &[Gone(Kind::NodeClaim, "pool-2"), There(REPLACED), Held(GATE, &[])],
    )
    .settings(karpenter),
    Base::new(
        "replace-blocked: too many nodes are not ready in time, as the time of all begins with the rule: none is replaced",
        s(180),
        |it| {
            let reporter = Reporter::new(READY).ails("pool-2").ails("pool-3");
            pool(it, reporter.ails("pool-4"), &[GATE])
                .acts(Operator::default().creates(s(25), repairing("DeleteNodeClaim")))
        },
        &[There(POOL), Held(GATE, &["pool-2", "pool-3", "pool-4"])],
    )
    .settings(karpenter),
    Base::new(
        "replace-paused: a rule pauses repair by its number of nodes, until it allows one",
        s(180),
        |it| {
            let repair = json!({"readinessTTL": "1m", "action": "DeleteNodeClaim", "maxUnhealthy": 0});
            let allowed = json!({"spec": {"nodegate": { "repair": {"maxUnhealthy": 1} }}});
            let scene = it.has(rule("network").nodegate("repair", repair));
            pool(scene, Reporter::new(READY).ails("pool-2"), &[GATE])
                .acts(Operator::default().edits(s(130), rule_key("network"), allowed))
        },
        &[Gone(Kind::NodeClaim, "pool-2"), There(REPLACED), Held(GATE, &[])],
    )
    .settings(karpenter),
    Base::new(
        "release-forged: a kubelet writes on its node that its time has long been up: it is not released for that",
        s(150),
        |it| {
            it.has(repairing("Release"))
                .nodes(joining(5))
                .acts(Annotator::default().forges(s(20), "n-1", Forgery::Deadline))
                .acts(Reporter::new(READY).ails("n-1"))
        },
        &[PutOn(GATE, 5), Held(GATE, &[])],
    ),
    Base::new(
        "release-maintenance: late nodes are in maintenance: one is released once it ends, and the other stays held",
        s(160),
        |it| {
            let repair = json!({"readinessTTL": "1m", "action": "Release", "maxUnhealthy": "100%"});
            let maintenance = Reporter::of_problem(MAINTENANCE)
                .then(s(25), &["n-1", "n-2"], Say("True"))
                .then(s(130), "n-1", SayGood);
            it.has(rule("network").nodegate("repair", repair))
                .nodes(joining(5))
                .acts(maintenance)
                .acts(Reporter::new(READY).ails("n-1").ails("n-2"))
        },
        &[PutOn(GATE, 5), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "replace-vetoed: a pool forbids the repair of its nodes: none is replaced until it allows it",
        s(180),
        |it| {
            let operator = Operator::default()
                .edits(s(2), pool_key(), veto("true"))
                .edits(s(120), pool_key(), veto("false"));
            let scene = it.has(repairing("DeleteNodeClaim"));
            pool(scene, Reporter::new(READY).ails("pool-2"), &[GATE]).acts(operator)
        },
        &[Gone(Kind::NodeClaim, "pool-2"), There(REPLACED), Held(GATE, &[])],
    )
    .settings(karpenter),
    Base::new(
        "replace-none-released: a node that was released is gated by somebody and never gets ready again: it is not replaced",
        s(180),
        |it| {
            let reporter = Reporter::new(READY).then(s(40), "pool-2", Say("False"));
            // Another startup taint never goes, so Karpenter initializes none of the nodes.
            pool(it.has(repairing("DeleteNodeClaim")), reporter, &[GATE, OTHERS])
                .acts(Operator::default().taints(s(45), "pool-2", &[GATE, OTHERS]))
        },
        &[There(POOL), Held(GATE, &["pool-2"])],
    )
    .settings(karpenter),
    Base::new(
        "replace-none-initialized: a rule comes to nodes that run workload already: the one that is not ready is not replaced",
        s(180),
        |it| {
            pool(it, Reporter::new(READY).ails("pool-2"), &[])
                .acts(Operator::default().creates(s(40), repairing("DeleteNodeClaim")))
        },
        &[There(POOL), Held(GATE, &["pool-2"])],
    )
    .settings(karpenter),
    Base::new(
        "replace-in-vain: the only node of a pool never gets ready, nor does any that replaces it: after three that is given up",
        s(780),
        |it| {
            let names = ["pool-1", "pool-2", "pool-3", "pool-4", "pool-5", "pool-6"];
            let reporter = names.into_iter().fold(Reporter::new(READY), Reporter::ails);
            pool_of(it.has(repairing("DeleteNodeClaim")), 1, reporter, &[GATE])
        },
        &[There(&["pool-4"]), Held(GATE, &["pool-4"])],
    )
    .settings(karpenter),
    Base::new(
        "replace-zone: every node that joins is late at once, and the rule would replace all: none is, as the cause is not the node",
        s(180),
        |it| {
            let repair =
                json!({"readinessTTL": "1m", "action": "DeleteNodeClaim", "maxUnhealthy": "100%"});
            let reporter = POOL.iter().copied().fold(Reporter::new(READY), Reporter::ails);
            let rule = rule("network").nodegate("repair", repair);
            pool(it, reporter, &[GATE]).acts(Operator::default().creates(s(25), rule))
        },
        &[There(POOL), Held(GATE, POOL)],
    )
    .settings(karpenter),
];
