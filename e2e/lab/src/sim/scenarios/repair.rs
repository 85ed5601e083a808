//! Nodes that never get ready.

use serde_json::json;

use super::ends::{closed, gone, put_on, there};
use super::objects::{GATE, READY, Rule, place, rule};
use super::{Actors, Base, joining, with};
use crate::sim::actors::{Karpenter, Kubelets, Operator, Pool, Reporter};
use crate::sim::time::s;
use crate::sim::{Cluster, Settings};
use crate::{Key, Kind};

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

/// A pool of five nodes, whose nodes come with the rule's taint.
fn pool(cluster: &mut Cluster, reporter: Reporter) -> Actors {
    let key = Key::cluster(Kind::NodePool, "pool");
    place(cluster, (key, json!({"spec": {}})));
    let pool = Pool {
        name: "pool",
        nodes: 5,
        startup_taints: vec![json!({"key": GATE, "effect": "NoSchedule"})],
    };
    let karpenter = Karpenter::new(vec![pool], s(3));
    with(
        Kubelets::default(),
        [Box::new(karpenter), Box::new(reporter)],
    )
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
];
