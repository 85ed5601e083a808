//! Rules are created, changed and deleted.

use serde_json::json;

use super::ends::{closed, gated, gone, put_on};
use super::objects::{GATE, READY, place, rule, rule_key};
use super::{Base, booting, joining, with};
use crate::sim::actors::ask::node_key;
use crate::sim::actors::{Deed, Kubelets, Operator, Order, Reporter, Which};
use crate::sim::time::s;

const SECOND: &str = "example.com/StorageReady";

const OTHER_GATE: &str = "readiness.k8s.io/storage";

/// A key that sorts before the first rule's.
const EARLIER_GATE: &str = "readiness.k8s.io/bandwidth";

/// Two nodes are unhealthy from the start; later one of them recovers, and another one fails.
fn turning() -> Box<Reporter> {
    let reporter = Reporter::new(READY)
        .ails("n-1")
        .ails("n-2")
        .then(s(65), Which::Node("n-1"), Order::SayGood)
        .then(s(65), Which::Node("n-0"), Order::Say("False"));
    Box::new(reporter)
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "existing-fleet",
        "a rule comes to nodes that are there, some of which are not ready",
        s(50),
        |_, _| {
            let operator = Operator::default().creates(s(25), rule("network").object());
            let reporter = Reporter::new(READY).ails("n-1").ails("n-2").then(
                s(40),
                Which::Node("n-2"),
                Order::SayGood,
            );
            with(joining(4), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 2)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "existing-fleet-left",
        "a rule comes that leaves alone the nodes that are there: one of them joins anew, and another is closed by somebody else",
        s(70),
        |_, _| {
            let leaves = rule("network").with("existingNodes", json!("Leave"));
            let taint = json!({"spec": {"taints": [{"key": GATE, "effect": "NoSchedule"}]}});
            let operator = Operator::default().creates(s(25), leaves.object()).edits(
                s(35),
                node_key("n-3"),
                taint,
            );
            let reporter = Reporter::new(READY)
                .ails("n-1")
                .ails("n-2")
                .ails("n-3")
                .then(s(45), Which::Node("n-3"), Order::SayGood);
            let kubelets = joining(4).then(s(40), "n-2", Deed::Replace(s(3)));
            with(kubelets, [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, GATE, 2)?;
            put_on(cluster, GATE, 1)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "rule-suspended",
        "a rule is suspended while nodes turn bad and good, and goes on later; another one stays suspended",
        s(110),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let storage = rule("storage").continuous().taint(OTHER_GATE, "NoSchedule");
            place(cluster, storage.object());
            let suspend = |on: bool| json!({"spec": {"suspend": on}});
            let operator = Operator::default()
                .edits(s(25), rule_key("network"), suspend(true))
                .edits(s(25), rule_key("storage"), suspend(true))
                .edits(s(90), rule_key("network"), suspend(false));
            with(joining(4), [Box::new(operator), turning()])
        },
        |cluster| {
            closed(cluster, GATE, &["n-0", "n-2"])?;
            closed(cluster, OTHER_GATE, &["n-1", "n-2"])
        },
    ),
    Base::new(
        "all-suspended",
        "all rules are suspended at once while nodes turn bad and good; one of them is deleted meanwhile, and cleans up",
        s(110),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let storage = rule("storage").continuous().taint(OTHER_GATE, "NoSchedule");
            place(cluster, storage.object());
            let operator = Operator::default().deletes(s(75), rule_key("storage"));
            with(joining(4), [Box::new(operator), turning()])
        },
        |cluster| {
            closed(cluster, GATE, &["n-0", "n-2"])?;
            closed(cluster, OTHER_GATE, &[])?;
            gone(cluster, &rule_key("storage"))
        },
    )
    .braked(s(25), s(90))
    .instances(2),
    Base::new(
        "rule-deleted",
        "a rule is deleted while it keeps nodes closed",
        s(40),
        |cluster, _| {
            place(cluster, rule("network").object());
            let operator = Operator::default().deletes(s(25), rule_key("network"));
            let reporter = Reporter::new(READY).ails("n-1").ails("n-2");
            with(joining(4), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])?;
            gone(cluster, &rule_key("network"))
        },
    ),
    Base::new(
        "rule-re-created",
        "a rule is deleted and created again under its name: what was completed under the old one does not count",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").object());
            let operator = Operator::default()
                .deletes(s(30), rule_key("network"))
                .creates(s(40), rule("network").object());
            let reporter =
                Reporter::new(READY).then(s(35), Which::Node("n-1"), Order::Say("False"));
            with(joining(3), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "rule-edited",
        "where the definition lets them, a rule's conditions, selector and mode are edited",
        s(70),
        |cluster, _| {
            place(cluster, rule("network").object());
            let conditions = json!({"spec": {"conditions": [
                {"type": READY, "requiredStatus": "True"},
                {"type": SECOND, "requiredStatus": "True"},
            ]}});
            let narrow = json!({"spec": {"nodeSelector": {"matchLabels": {"kubernetes.io/os": null, "pool": "a"}}}});
            let mode = json!({"spec": {"enforcementMode": "continuous"}});
            let operator = Operator::default()
                .labels(s(15), "n-0", &json!({"pool": "a"}))
                .labels(s(15), "n-1", &json!({"pool": "a"}))
                .edits(s(30), rule_key("network"), mode)
                .edits(s(40), rule_key("network"), conditions)
                .edits(s(50), rule_key("network"), narrow);
            let first = Reporter::new(READY);
            let second = Reporter::new(SECOND).ails("n-0").ails("n-2");
            with(
                joining(3),
                [Box::new(operator), Box::new(first), Box::new(second)],
            )
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-0"])
        },
    ),
    Base::new(
        "patience",
        "a continuous rule is given a grace period: what is over sooner closes no node",
        s(80),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let patience = json!({"spec": {"gracePeriod": "20s"}});
            let operator = Operator::default().edits(s(25), rule_key("network"), patience);
            let reporter = Reporter::new(READY)
                .then(s(30), Which::All, Order::Say("False"))
                .then(s(40), Which::Node("n-0"), Order::SayGood)
                .then(s(45), Which::Node("n-1"), Order::SayGood);
            with(joining(3), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "long-patience",
        "a grace period is longer than anything that is seen late: what is over sooner closes no node",
        s(280),
        |cluster, _| {
            let patient = rule("network").continuous();
            place(cluster, patient.with("gracePeriod", json!("2m")).object());
            let reporter = Reporter::new(READY)
                .then(s(100), Which::All, Order::Say("False"))
                .then(s(150), Which::Node("n-0"), Order::SayGood)
                .then(s(190), Which::Node("n-1"), Order::SayGood);
            with(joining(3), [Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "succession",
        "a rule is made as another one with the same taint is deleted: the nodes that are closed stay so",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let operator = Operator::default()
                .creates(s(30), rule("successor").continuous().object())
                .deletes(s(30), rule_key("network"));
            let reporter = Reporter::new(READY).ails("n-1").ails("n-2");
            with(joining(4), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            gone(cluster, &rule_key("network"))?;
            closed(cluster, GATE, &["n-1", "n-2"])
        },
    ),
    Base::new(
        "in-order",
        "a rule comes after another one: nodes join under both, and fail under one or both of them later",
        s(110),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let second = rule("bandwidth").continuous().waits_for(SECOND, "True");
            let second = second.taint(EARLIER_GATE, "NoSchedule");
            place(cluster, second.with("after", json!(["network"])).object());
            let network = Reporter::new(READY)
                .ails("n-1")
                .ails("n-2")
                .then(s(60), Which::Node("n-2"), Order::SayGood)
                .then(s(80), Which::Node("n-0"), Order::Say("False"));
            let bandwidth = Reporter::new(SECOND)
                .ails("n-3")
                .then(s(90), Which::Node("n-0"), Order::Say("False"));
            with(joining(4), [Box::new(network), Box::new(bandwidth)])
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-0", "n-1"])?;
            put_on(cluster, EARLIER_GATE, 4)?;
            closed(cluster, EARLIER_GATE, &["n-1", "n-3"])
        },
    ),
    Base::new(
        "dry-run",
        "a rule is tried out first, and in force then",
        s(50),
        |cluster, _| {
            place(
                cluster,
                rule("network").with("dryRun", json!(true)).object(),
            );
            let live = json!({"spec": {"dryRun": false}});
            let operator = Operator::default().edits(s(30), rule_key("network"), live);
            let reporter = Reporter::new(READY).ails("n-1");
            with(joining(3), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 1)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "dry-run-again",
        "a rule in force is only tried out from then on: nothing changes any more",
        s(50),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let dry = json!({"spec": {"dryRun": true}});
            let operator = Operator::default().edits(s(30), rule_key("network"), dry);
            let reporter = Reporter::new(READY)
                .ails("n-1")
                .then(s(35), Which::Node("n-0"), Order::Say("False"))
                .then(s(35), Which::Node("n-1"), Order::SayGood);
            with(joining(3), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 3)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "rules-come-and-go",
        "a rule is created and deleted again and again while nodes join",
        s(40),
        |_, _| {
            let object = || rule("network").object();
            let key = || rule_key("network");
            let operator = Operator::default()
                .creates(s(2), object())
                .deletes(s(8), key())
                .creates(s(12), object())
                .deletes(s(15), key())
                .creates(s(20), object());
            let reporter = Reporter::new(READY).first(s(4), s(12)).ails("n-4");
            let kubelets = Kubelets::new(booting(6, s(3), s(2)));
            with(kubelets, [Box::new(operator), Box::new(reporter)])
        },
        |cluster| closed(cluster, GATE, &["n-4"]),
    ),
];
