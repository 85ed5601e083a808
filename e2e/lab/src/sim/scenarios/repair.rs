//! Nodes that never become ready.

use serde_json::{Value, json};

use super::ends::{closed, gone, put_on, there};
use super::objects::{GATE, READY, Rule, place, rule};
use super::{Actors, Base, joining, with};
use crate::sim::actors::ask::node_key;
use crate::sim::actors::{
    Annotator, Forgery, Karpenter, Kubelets, Operator, Order, Pool, Reporter, Which,
};
use crate::sim::time::s;
use crate::sim::{Cluster, Settings};
use crate::{Key, Kind};

/// A startup taint that no rule manages.
const OTHERS: &str = "example.com/startup";
/// The annotation that forbids repair.
const VETO: &str = "nodegate.dev/do-not-repair";

fn repairing(action: &str) -> Rule {
    let repair = json!({"readinessTTL": "1m", "action": action, "maxUnhealthy": "20%"});
    rule("network").with("repair", repair)
}

fn karpenter() -> Settings {
    Settings {
        enable_karpenter: true,
        ..Settings::default()
    }
}

/// A pool of five nodes that register with the rule's taint.
fn pool(cluster: &mut Cluster, reporter: Reporter) -> Actors {
    pool_with(cluster, reporter, &[GATE])
}

/// A pool of five nodes that register with these taints.
fn pool_with(cluster: &mut Cluster, reporter: Reporter, taints: &[&str]) -> Actors {
    let key = Key::cluster(Kind::NodePool, "pool");
    place(cluster, (key, json!({"spec": {}})));
    let pool = Pool {
        name: "pool",
        nodes: 5,
        startup_taints: taints.iter().map(|key| taint(key)).collect(),
    };
    let karpenter = Karpenter::new(vec![pool], s(3));
    with(
        Kubelets::default(),
        [Box::new(karpenter), Box::new(reporter)],
    )
}

fn taint(key: &str) -> Value {
    json!({"key": key, "effect": "NoSchedule"})
}

fn claim(name: &str) -> Key {
    Key::cluster(Kind::NodeClaim, name)
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "release",
        "a node that is not ready in time is opened all the same",
        s(150),
        |cluster, _| {
            place(cluster, repairing("Release").object());
            let reporter = Reporter::new(READY).ails("n-1");
            with(joining(5), [Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "late",
        "a node that is not ready in time is only told of",
        s(150),
        |cluster, _| {
            place(cluster, repairing("None").object());
            let reporter = Reporter::new(READY).ails("n-1");
            with(joining(5), [Box::new(reporter)])
        },
        |cluster| closed(cluster, GATE, &["n-1"]),
    ),
    Base::new(
        "replace",
        "the claim of a node that is not ready in time is deleted, and another node comes",
        s(180),
        |cluster, _| {
            place(cluster, repairing("DeleteNodeClaim").object());
            pool(cluster, Reporter::new(READY).ails("pool-2"))
        },
        |cluster| {
            gone(cluster, &claim("pool-2"))?;
            there(cluster, &["pool-1", "pool-3", "pool-4", "pool-5", "pool-6"])?;
            closed(cluster, GATE, &[])
        },
    )
    .settings(karpenter),
    Base::new(
        "replace-blocked",
        "too many nodes are not ready in time, as the time of all begins with the rule: none is replaced",
        s(180),
        |cluster, _| {
            let rule = repairing("DeleteNodeClaim").object();
            let operator = Operator::default().creates(s(25), rule);
            let reporter = Reporter::new(READY).ails("pool-2").ails("pool-3");
            let mut actors = pool(cluster, reporter.ails("pool-4"));
            actors.push(Box::new(operator));
            actors
        },
        |cluster| {
            there(cluster, &["pool-1", "pool-2", "pool-3", "pool-4", "pool-5"])?;
            closed(cluster, GATE, &["pool-2", "pool-3", "pool-4"])
        },
    )
    .settings(karpenter),
    Base::new(
        "remediate-missing",
        "a rule asks for remediations of a kind that the cluster lacks: the others' nodes are opened all the same",
        s(150),
        |cluster, _| {
            let template = json!({
                "apiVersion": "example.com/v1",
                "kind": "RebootTemplate",
                "name": "reboot",
                "namespace": "default",
            });
            let repair = json!({"readinessTTL": "1m", "action": "Remediate", "remediationTemplate": template});
            place(cluster, repairing("Remediate").with("repair", repair).object());
            let reporter = Reporter::new(READY).ails("n-1");
            with(joining(5), [Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "replace-paused",
        "a rule pauses repair by its number of nodes, until it allows one",
        s(180),
        |cluster, _| {
            let repair = json!({"readinessTTL": "1m", "action": "DeleteNodeClaim", "maxUnhealthyCount": 0});
            let (key, paused) = repairing("DeleteNodeClaim").with("repair", repair).object();
            let operator = Operator::default().edits(
                s(130),
                key.clone(),
                json!({"spec": {"repair": {"maxUnhealthyCount": 1}}}),
            );
            place(cluster, (key, paused));
            let mut actors = pool(cluster, Reporter::new(READY).ails("pool-2"));
            actors.push(Box::new(operator));
            actors
        },
        |cluster| {
            gone(cluster, &claim("pool-2"))?;
            there(cluster, &["pool-1", "pool-3", "pool-4", "pool-5", "pool-6"])?;
            closed(cluster, GATE, &[])
        },
    )
    .settings(karpenter),
    Base::new(
        "release-forged",
        "a kubelet writes on its node that its time has long been up: it is not opened for that",
        s(150),
        |cluster, _| {
            place(cluster, repairing("Release").object());
            let annotator = Annotator::default().forges(s(20), "n-1", Forgery::Deadline);
            let reporter = Reporter::new(READY).ails("n-1");
            with(joining(5), [Box::new(annotator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "release-vetoed",
        "somebody forbids the repair of a node: it stays closed however late it is",
        s(150),
        |cluster, _| {
            place(cluster, repairing("Release").object());
            let veto = json!({"metadata": {"annotations": {VETO: "true"}}});
            let operator = Operator::default().edits(s(30), node_key("n-1"), veto);
            let reporter = Reporter::new(READY).ails("n-1");
            with(joining(5), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| closed(cluster, GATE, &["n-1"]),
    ),
    Base::new(
        "replace-vetoed",
        "a pool forbids the repair of its nodes: none is replaced until it allows it",
        s(180),
        |cluster, _| {
            place(cluster, repairing("DeleteNodeClaim").object());
            let veto = |value: &str| json!({"metadata": {"annotations": {VETO: value}}});
            let key = || Key::cluster(Kind::NodePool, "pool");
            let operator = Operator::default()
                .edits(s(2), key(), veto("true"))
                .edits(s(120), key(), veto("false"));
            let mut actors = pool(cluster, Reporter::new(READY).ails("pool-2"));
            actors.push(Box::new(operator));
            actors
        },
        |cluster| {
            gone(cluster, &claim("pool-2"))?;
            there(cluster, &["pool-1", "pool-3", "pool-4", "pool-5", "pool-6"])?;
            closed(cluster, GATE, &[])
        },
    )
    .settings(karpenter),
    Base::new(
        "replace-none-open",
        "a node that has been open is closed by somebody and never gets ready again: it is not replaced",
        s(180),
        |cluster, _| {
            place(cluster, repairing("DeleteNodeClaim").object());
            let reporter =
                Reporter::new(READY).then(s(40), Which::Node("pool-2"), Order::Say("False"));
            // Another startup taint never goes, so Karpenter initializes none of the nodes.
            let mut actors = pool_with(cluster, reporter, &[GATE, OTHERS]);
            let closed = json!({"spec": {"taints": [taint(GATE), taint(OTHERS)]}});
            let operator = Operator::default().edits(s(45), node_key("pool-2"), closed);
            actors.push(Box::new(operator));
            actors
        },
        |cluster| {
            there(cluster, &["pool-1", "pool-2", "pool-3", "pool-4", "pool-5"])?;
            closed(cluster, GATE, &["pool-2"])
        },
    )
    .settings(karpenter),
    Base::new(
        "replace-none-initialized",
        "a rule comes to nodes that run workload already: the one that is not ready is not replaced",
        s(180),
        |cluster, _| {
            let rule = repairing("DeleteNodeClaim").object();
            let operator = Operator::default().creates(s(40), rule);
            let reporter = Reporter::new(READY).ails("pool-2");
            let mut actors = pool_with(cluster, reporter, &[]);
            actors.push(Box::new(operator));
            actors
        },
        |cluster| {
            there(cluster, &["pool-1", "pool-2", "pool-3", "pool-4", "pool-5"])?;
            closed(cluster, GATE, &["pool-2"])
        },
    )
    .settings(karpenter),
];
