//! Node conditions that reporters write.

use serde_json::json;

use super::ends::{closed, gated, put_on};
use super::objects::{GATE, READY, place, rule};
use super::{Base, joining, with, workload};
use crate::sim::actors::{Operator, Order, Reporter, Which};
use crate::sim::time::s;

const SECOND: &str = "example.com/StorageReady";
const PROBLEM: &str = "example.com/ClockUnsynchronized";
const OTHER_GATE: &str = "readiness.k8s.io/storage";

pub(super) const ALL: &[Base] = &[
    Base::new(
        "bootstrap",
        "nodes join and are opened when their condition is met; one never is",
        s(30),
        |cluster, _| {
            place(cluster, rule("network").object());
            let [scheduler, workload] = workload(6);
            let reporter = Reporter::new(READY).ails("n-3");
            with(joining(5), [scheduler, workload, Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, GATE, 5)?;
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-3"])
        },
    ),
    Base::new(
        "flapping",
        "under a continuous rule conditions turn bad and good again",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let reporter = Reporter::new(READY)
                .then(s(25), Which::Node("n-1"), Order::Say("False"))
                .then(s(30), Which::Node("n-1"), Order::SayGood)
                .then(s(35), Which::Node("n-1"), Order::Say("Unknown"))
                .then(s(40), Which::Node("n-2"), Order::Say("False"))
                .then(s(41), Which::Node("n-2"), Order::SayGood);
            with(joining(4), [Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            put_on(cluster, GATE, 7)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "several-conditions",
        "a rule waits for two conditions, which come apart",
        s(40),
        |cluster, _| {
            let conditions = json!([
                {"type": READY, "requiredStatus": "True"},
                {"type": SECOND, "requiredStatus": "True"},
            ]);
            place(
                cluster,
                rule("both").with("conditions", conditions).object(),
            );
            let second = Reporter::new(SECOND).first(s(5), s(20)).ails("n-0");
            let first = Reporter::new(READY).ails("n-2");
            with(joining(4), [Box::new(first), Box::new(second)])
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            closed(cluster, GATE, &["n-0", "n-2"])
        },
    ),
    Base::new(
        "reasons",
        "a condition counts for one rule, and not for another one that accepts it with other reasons only",
        s(40),
        |cluster, _| {
            let asks = |reason: &str| json!([{"type": READY, "requiredStatus": "True", "reasons": ["Other", reason]}]);
            let accepts = rule("accepts").with("conditions", asks("Is"));
            place(cluster, accepts.object());
            let refuses = rule("refuses").with("conditions", asks("IsSettled"));
            place(cluster, refuses.taint(OTHER_GATE, "NoSchedule").object());
            with(joining(2), [Box::new(Reporter::new(READY))])
        },
        |cluster| {
            closed(cluster, GATE, &[])?;
            closed(cluster, OTHER_GATE, &["n-0", "n-1"])
        },
    ),
    Base::new(
        "one-of-several",
        "a continuous rule is content with one of two conditions",
        s(60),
        |cluster, _| {
            let conditions = json!([
                {"type": READY, "requiredStatus": "True"},
                {"type": SECOND, "requiredStatus": "True"},
            ]);
            let either = rule("either").continuous();
            let either = either.with("conditionPolicy", json!("anyOf"));
            place(cluster, either.with("conditions", conditions).object());
            let first = Reporter::new(READY).then(s(30), Which::All, Order::Say("False"));
            let second = Reporter::new(SECOND).ails("n-1").ails("n-2").then(
                s(40),
                Which::Node("n-2"),
                Order::SayGood,
            );
            with(joining(3), [Box::new(first), Box::new(second)])
        },
        |cluster| closed(cluster, GATE, &["n-1"]),
    ),
    Base::new(
        "absent-is-well",
        "a condition that nobody has reported counts as well, and a problem closes the node",
        s(40),
        |cluster, _| {
            let condition =
                json!({"type": PROBLEM, "requiredStatus": "False", "defaultStatus": "False"});
            let clock = rule("clock").continuous();
            place(
                cluster,
                clock.with("conditions", json!([condition])).object(),
            );
            let reporter = Reporter::of_problem(PROBLEM).first(s(5), s(15)).then(
                s(30),
                Which::Node("n-2"),
                Order::Say("True"),
            );
            with(joining(3), [Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 1)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "heartbeat",
        "a reporter dies on two nodes and comes back on one of them",
        s(180),
        |cluster, _| {
            let strict = rule("network").continuous();
            place(
                cluster,
                strict.with("heartbeatTimeout", json!("1m")).object(),
            );
            let reporter = Reporter::new(READY)
                .beat(s(20))
                .then(s(40), Which::Node("n-1"), Order::Die)
                .then(s(40), Which::Node("n-2"), Order::Die)
                .then(s(150), Which::Node("n-2"), Order::Revive);
            with(joining(3), [Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "two-taints",
        "two rules with taints of their own",
        s(40),
        |cluster, _| {
            place(cluster, rule("network").object());
            let storage = rule("storage").waits_for(SECOND, "True");
            let storage = storage.taint(OTHER_GATE, "NoExecute").continuous();
            place(cluster, storage.object());
            let first = Reporter::new(READY).ails("n-0");
            let second = Reporter::new(SECOND).ails("n-1").first(s(5), s(15));
            with(joining(3), [Box::new(first), Box::new(second)])
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            gated(cluster, OTHER_GATE, 3)?;
            closed(cluster, GATE, &["n-0"])?;
            closed(cluster, OTHER_GATE, &["n-1"])
        },
    ),
    Base::new(
        "conflict",
        "two rules for one taint: the older one governs, until it is deleted",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let storage = rule("storage").waits_for(SECOND, "True").continuous();
            let operator = Operator::default()
                .creates(s(3), storage.object())
                .deletes(s(40), super::objects::rule_key("network"));
            let first = Reporter::new(READY).ails("n-0");
            let second = Reporter::new(SECOND).ails("n-1");
            with(
                joining(3),
                [Box::new(operator), Box::new(first), Box::new(second)],
            )
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
];
