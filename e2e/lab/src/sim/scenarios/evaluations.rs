//! Evaluations of nodes, with their feature gate on.

use serde_json::json;

use super::ends::End::{Closed, Evaluated};
use super::objects::{GATE, READY, rule, rule_key};
use super::{Base, joining};
use crate::sim::actors::{Deed, Operator, Order, Reporter};
use crate::sim::settings::{Settings, usual};
use crate::sim::time::s;
use crate::{Key, Kind};

const SECOND: &str = "example.com/StorageReady";
const OTHER_GATE: &str = "readiness.k8s.io/storage";

fn with_evaluations() -> Settings {
    Settings {
        node_readiness_evaluation: true,
        ..usual()
    }
}

fn key(name: &str) -> Key {
    Key::cluster(Kind::NodeReadinessEvaluation, name)
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "evaluations: each node that a rule selects has an evaluation: nodes join, fail, leave, come again and change labels, a rule \
         comes and goes, and somebody changes and deletes evaluations",
        s(110),
        |it| {
            let storage = rule("storage").continuous().on("pool", "a");
            let storage = storage
                .waits_for(SECOND)
                .taint(OTHER_GATE, "NoSchedule");
            let off = json!({"kubernetes.io/os": null, "pool": null});
            let operator = Operator::default()
                .labels(s(15), "n-0", &json!({"pool": "a"}))
                .labels(s(15), "n-3", &json!({"pool": "a"}))
                .creates(s(25), storage)
                .edits_status(s(40), key("n-0"), &json!({"state": "Ready"}))
                .deletes(s(45), key("n-1"))
                .labels(s(60), "n-3", &off)
                .deletes(s(80), rule_key("storage"));
            let network = Reporter::new(READY)
                .ails("n-1")
                .then(s(50), "n-2", Order::Say("False"))
                .then(s(65), "n-2", Order::SayGood);
            let kubelets = joining(6)
                .then(s(35), "n-4", Deed::Replace(s(1)))
                .then(s(70), "n-5", Deed::Leave);
            it.has(rule("network").continuous())
                .nodes(kubelets)
                .acts(operator)
                .acts(network)
                .acts(Reporter::new(SECOND).ails("n-0").beat(s(20)))
        },
        &[
            Closed(GATE, &["n-1"]),
            Evaluated(&[
                ("n-0", "Ready"),
                ("n-1", "NotReady"),
                ("n-2", "Ready"),
                ("n-4", "Ready"),
            ]),
        ],
    )
    .settings(with_evaluations)
    .instances(2),
    Base::new(
        "evaluations-of-rules: a rule goes and comes again under its name, and another one is only tried out at first: evaluations \
         follow",
        s(70),
        |it| {
            let storage = rule("storage").continuous().waits_for(SECOND);
            let storage = storage.taint(OTHER_GATE, "NoSchedule");
            let operator = Operator::default()
                .deletes(s(25), rule_key("network"))
                .edits(s(35), rule_key("storage"), json!({"spec": {"dryRun": false}}))
                .creates(s(50), rule("network").continuous());
            it.has(rule("network").continuous())
                .has(storage.with("dryRun", json!(true)))
                .nodes(joining(3))
                .acts(operator)
                .acts(Reporter::new(READY).ails("n-1"))
                .acts(Reporter::new(SECOND).ails("n-2"))
        },
        &[Evaluated(&[
            ("n-0", "Ready"),
            ("n-1", "NotReady"),
            ("n-2", "NotReady"),
        ])],
    )
    .settings(with_evaluations),
];
