//! Evaluations of nodes, with their feature gate on.

use serde_json::json;

use super::ends::{closed, same};
use super::objects::{GATE, READY, place, rule, rule_key};
use super::{Base, joining, with};
use crate::sim::actors::ask::text;
use crate::sim::actors::{Deed, Operator, Order, Reporter, Which};
use crate::sim::time::s;
use crate::sim::{Cluster, Settings};
use crate::{Key, Kind};

const SECOND: &str = "example.com/StorageReady";
const OTHER_GATE: &str = "readiness.k8s.io/storage";

fn with_evaluations() -> Settings {
    Settings {
        node_readiness_evaluation: true,
        ..Settings::default()
    }
}

fn key(name: &str) -> Key {
    Key::cluster(Kind::NodeReadinessEvaluation, name)
}

/// Exactly these nodes have an evaluation, each with this state.
fn states(cluster: &Cluster, expected: &[(&str, &str)]) -> super::ends::Checked {
    let all = cluster.objects(Kind::NodeReadinessEvaluation);
    let states: Vec<_> = all
        .map(|(key, it)| (&*key.name, text(&it["status"]["state"])))
        .collect();
    same("the states of nodes", &states.as_slice(), &expected)
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "evaluations",
        "each node that a rule selects has an evaluation: nodes join, fail, leave, come again and change labels, a rule comes, and \
         somebody changes and deletes evaluations",
        s(110),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let storage = rule("storage").continuous().on("pool", "a");
            let storage = storage.waits_for(SECOND, "True").taint(OTHER_GATE, "NoSchedule");
            let off = json!({"kubernetes.io/os": null, "pool": null});
            let operator = Operator::default()
                .labels(s(15), "n-0", &json!({"pool": "a"}))
                .labels(s(15), "n-3", &json!({"pool": "a"}))
                .creates(s(25), storage.object())
                .edits_status(s(40), key("n-0"), &json!({"state": "Ready"}))
                .deletes(s(45), key("n-1"))
                .labels(s(60), "n-3", &off);
            let network = Reporter::new(READY)
                .ails("n-1")
                .then(s(50), Which::Node("n-2"), Order::Say("False"))
                .then(s(65), Which::Node("n-2"), Order::SayGood);
            let storage = Reporter::new(SECOND).ails("n-0").beat(s(20));
            let kubelets = joining(6)
                .then(s(35), "n-4", Deed::Replace(s(1)))
                .then(s(70), "n-5", Deed::Leave);
            with(
                kubelets,
                [Box::new(operator), Box::new(network), Box::new(storage)],
            )
        },
        |cluster| {
            closed(cluster, GATE, &["n-1"])?;
            closed(cluster, OTHER_GATE, &["n-0"])?;
            states(
                cluster,
                &[
                    ("n-0", "NotReady"),
                    ("n-1", "NotReady"),
                    ("n-2", "Ready"),
                    ("n-4", "Ready"),
                ],
            )
        },
    )
    .settings(with_evaluations)
    .instances(2),
    Base::new(
        "evaluations-of-rules",
        "a rule goes and comes again under its name, and another one is only tried out at first: evaluations follow",
        s(70),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let storage = rule("storage").continuous();
            let storage = storage
                .waits_for(SECOND, "True")
                .taint(OTHER_GATE, "NoSchedule");
            place(cluster, storage.with("dryRun", json!(true)).object());
            let operator = Operator::default()
                .deletes(s(25), rule_key("network"))
                .edits(s(35), rule_key("storage"), json!({"spec": {"dryRun": false}}))
                .creates(s(50), rule("network").continuous().object());
            let network = Reporter::new(READY).ails("n-1");
            let storage = Reporter::new(SECOND).ails("n-2");
            with(
                joining(3),
                [Box::new(operator), Box::new(network), Box::new(storage)],
            )
        },
        |cluster| {
            let expected = [("n-0", "Ready"), ("n-1", "NotReady"), ("n-2", "NotReady")];
            states(cluster, &expected)
        },
    )
    .settings(with_evaluations),
];
