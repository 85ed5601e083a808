//! Rules are created, changed and deleted.

use serde_json::{Value, json};

use super::ends::End::{Gated, Gone, Held, PutOn};
use super::objects::{GATE, OTHER_GATE, READY, Rule, SECOND, rule, rule_key};
use super::{Base, booting, joining};
use crate::sim::actors::Order::{Say, SayGood};
use crate::sim::actors::{Deed, Kubelets, Machine, Operator, Reporter, Which};
use crate::sim::time::s;
use crate::{Definition, Kind};

/// A rule that may gate a tenth of the nodes in use as it comes into force.
fn limited() -> Rule {
    rule("network")
        .continuous()
        .nodegate("disruption", json!({"maxFirstGated": "10%"}))
}

/// An edit that lets a rule gate all nodes in use.
fn allowed() -> Value {
    json!({"spec": {"nodegate": {"disruption": {"maxFirstGated": "100%"}}}})
}

/// Two nodes are unhealthy from the start; later one of them recovers, and another one fails.
fn turning() -> Reporter {
    Reporter::new(READY)
        .ails("n-1")
        .ails("n-2")
        .then(s(65), "n-1", SayGood)
        .then(s(65), "n-0", Say("False"))
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "existing-fleet-left: a rule comes that leaves alone the nodes that are there: one of them joins anew, and another is gated by somebody else",
        s(70),
        |it| {
            let leaves = rule("network").nodegate("existingNodes", json!("Leave"));
            let operator = Operator::default()
                .creates(s(25), leaves)
                .taints(s(35), "n-3", &[GATE]);
            let reporter = Reporter::new(READY).ails("n-1").ails("n-2").ails("n-3");
            it.nodes(joining(4).then(s(40), "n-2", Deed::Replace(s(3))))
                .acts(operator)
                .acts(reporter.then(s(45), "n-3", SayGood))
        },
        &[Gated(GATE, 2), PutOn(GATE, 1), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "first-blow: a rule comes that would gate most nodes in use: it gates none of them, holds one that joins, and goes on once few are left",
        s(170),
        |it| {
            let bad = ["n-0", "n-1", "n-2", "n-3", "n-4", "n-5"];
            let reporter = bad.into_iter().fold(Reporter::new(READY), Reporter::ails);
            let good = &["n-0", "n-1", "n-2", "n-3"];
            let mut machines = booting(8, s(5), s(1));
            machines.push(Machine::new("n-8").zone("c").boots(s(130)));
            it.nodes(Kubelets::new(machines))
                .acts(Operator::default().creates(s(110), limited()))
                .acts(reporter.then(s(150), good, SayGood))
        },
        &[PutOn(GATE, 3), Held(GATE, &["n-4", "n-5"])],
    ),
    Base::new(
        "first-blow-allowed: a rule comes that would gate all nodes in use, and is allowed to",
        s(110),
        |it| {
            let operator = Operator::default()
                .creates(s(60), limited())
                .edits(s(90), rule_key("network"), allowed());
            let nodes = ["n-0", "n-1", "n-2", "n-3", "n-4"];
            let reporter = nodes.into_iter().fold(Reporter::new(READY), Reporter::ails);
            it.nodes(joining(5)).acts(operator).acts(reporter)
        },
        &[PutOn(GATE, 5), Held(GATE, &["n-0", "n-1", "n-2", "n-3", "n-4"])],
    ),
    Base::new(
        "first-blow-replaced: a rule is replaced by one of another name, which would gate most nodes in use once it governs: it gates none of them, and all of them once it is allowed to",
        s(170),
        |it| {
            let bad = ["n-0", "n-1", "n-2", "n-3", "n-4", "n-5"];
            let reporter = bad.into_iter().fold(Reporter::new(READY), Reporter::ails);
            let operator = Operator::default()
                .creates(s(60), limited())
                .deletes(s(110), rule_key("earlier"))
                .edits(s(150), rule_key("network"), allowed());
            it.has(rule("earlier").continuous().waits_for(SECOND))
                .nodes(joining(8))
                .acts(operator)
                .acts(reporter)
                .acts(Reporter::new(SECOND))
        },
        &[Held(GATE, &["n-0", "n-1", "n-2", "n-3", "n-4", "n-5"])],
    ),
    Base::new(
        "first-blow-relabelled: nodes in use get a rule's label one after another: it gates as many as it may, and the others once it is allowed to",
        s(170),
        |it| {
            let bad = ["n-0", "n-1", "n-2", "n-3", "n-4", "n-5"];
            let reporter = bad.into_iter().fold(Reporter::new(READY), Reporter::ails);
            let late = |operator: Operator, (number, name): (u64, &&'static str)| {
                operator.labels(s(60 + 4 * number), name, &json!({"pool": "late"}))
            };
            let operator = (0..).zip(&bad).fold(Operator::default(), late);
            it.has(limited().on("pool", "late"))
                .nodes(joining(8))
                .acts(operator.edits(s(150), rule_key("network"), allowed()))
                .acts(reporter)
        },
        &[Held(GATE, &["n-0", "n-1", "n-2", "n-3", "n-4", "n-5"])],
    ),
    Base::new(
        "rule-suspended: a rule is suspended while nodes turn bad and good, and goes on later; another one stays suspended",
        s(110),
        |it| {
            let suspend = |on: bool| json!({"spec": {"nodegate": { "suspend": on }}});
            let operator = Operator::default()
                .edits(s(25), rule_key("network"), suspend(true))
                .edits(s(25), rule_key("storage"), suspend(true))
                .edits(s(90), rule_key("network"), suspend(false));
            it.has(rule("network").continuous())
                .has(rule("storage").continuous().taint(OTHER_GATE, "NoSchedule"))
                .nodes(joining(4))
                .acts(operator)
                .acts(turning())
        },
        &[Held(GATE, &["n-0", "n-2"]), Held(OTHER_GATE, &["n-1", "n-2"])],
    ),
    Base::new(
        "pruned: another project's definition drops what two rules have under nodegate: until they have it again they gate and release no node, neither those that one was to leave alone nor those that turn bad or good",
        s(110),
        |it| {
            let leaves = json!({"existingNodes": "Leave"});
            let waits = json!({"gracePeriod": "10s"});
            let written = |nodegate: &Value| json!({"spec": {"nodegate": nodegate}});
            let touched = json!({"metadata": {"annotations": {"example.com/touched": "yes"}}});
            let storage = rule("storage").continuous().taint(OTHER_GATE, "NoSchedule");
            let operator = Operator::default()
                .creates(s(25), rule("network").with("nodegate", leaves.clone()))
                .defines(s(50), Definition::Theirs)
                .edits(s(50), rule_key("network"), touched.clone())
                .edits(s(50), rule_key("storage"), touched)
                .defines(s(85), Definition::Ours)
                .edits(s(90), rule_key("network"), written(&leaves))
                .edits(s(90), rule_key("storage"), written(&waits));
            let mut machines = booting(4, s(5), s(1));
            machines.push(Machine::new("n-4").boots(s(70)));
            it.has(storage.with("nodegate", waits))
                .nodes(Kubelets::new(machines))
                .acts(operator)
                .acts(turning().ails("n-4"))
        },
        &[
            PutOn(GATE, 1),
            Held(GATE, &["n-4"]),
            Held(OTHER_GATE, &["n-0", "n-2", "n-4"]),
        ],
    ),
    Base::new(
        "all-suspended: all rules are suspended at once while nodes turn bad and good; one of them is deleted meanwhile, and cleans up",
        s(110),
        |it| {
            it.has(rule("network").continuous())
                .has(rule("storage").continuous().taint(OTHER_GATE, "NoSchedule"))
                .nodes(joining(4))
                .acts(Operator::default().deletes(s(75), rule_key("storage")))
                .acts(turning())
        },
        &[
            Held(GATE, &["n-0", "n-2"]),
            Held(OTHER_GATE, &[]),
            Gone(Kind::NodeReadinessRule, "storage"),
        ],
    )
    .braked(s(25), s(90))
    .instances(2),
    Base::new(
        "rule-deleted: a rule is deleted while it holds nodes",
        s(40),
        |it| {
            it.has(rule("network"))
                .nodes(joining(4))
                .acts(Operator::default().deletes(s(25), rule_key("network")))
                .acts(Reporter::new(READY).ails("n-1").ails("n-2"))
        },
        &[Gated(GATE, 4), Held(GATE, &[]), Gone(Kind::NodeReadinessRule, "network")],
    ),
    Base::new(
        "rule-re-created: a rule is deleted and created again under its name: what was completed under the old one does not count",
        s(60),
        |it| {
            let operator = Operator::default()
                .deletes(s(30), rule_key("network"))
                .creates(s(40), rule("network"));
            it.has(rule("network"))
                .nodes(joining(3))
                .acts(operator)
                .acts(Reporter::new(READY).then(s(35), "n-1", Say("False")))
        },
        &[PutOn(GATE, 4), Held(GATE, &["n-1"])],
    ),
    Base::new(
        "rule-edited: where the definition lets them, a rule's conditions, selector and mode are edited",
        s(70),
        |it| {
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
            it.has(rule("network"))
                .nodes(joining(3))
                .acts(operator)
                .acts(Reporter::new(READY))
                .acts(Reporter::new(SECOND).ails("n-0").ails("n-2"))
        },
        &[PutOn(GATE, 5), Held(GATE, &["n-0"])],
    ),
    Base::new(
        "patience: a continuous rule is given a grace period: what is over sooner gates no node",
        s(80),
        |it| {
            let patience = json!({"spec": {"nodegate": { "gracePeriod": "20s" }}});
            let reporter = Reporter::new(READY)
                .then(s(30), Which::All, Say("False"))
                .then(s(40), "n-0", SayGood)
                .then(s(45), "n-1", SayGood);
            it.has(rule("network").continuous())
                .nodes(joining(3))
                .acts(Operator::default().edits(s(25), rule_key("network"), patience))
                .acts(reporter)
        },
        &[PutOn(GATE, 4), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "long-patience: a grace period is longer than anything that is seen late: what is over sooner gates no node",
        s(280),
        |it| {
            let reporter = Reporter::new(READY)
                .then(s(100), Which::All, Say("False"))
                .then(s(150), "n-0", SayGood)
                .then(s(190), "n-1", SayGood);
            it.has(rule("network").continuous().nodegate("gracePeriod", json!("2m")))
                .nodes(joining(3))
                .acts(reporter)
        },
        &[PutOn(GATE, 4), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "succession: a rule is made as another one with the same taint is deleted: the nodes that are held stay so",
        s(60),
        |it| {
            let operator = Operator::default()
                .creates(s(30), rule("successor").continuous())
                .deletes(s(30), rule_key("network"));
            it.has(rule("network").continuous())
                .nodes(joining(4))
                .acts(operator)
                .acts(Reporter::new(READY).ails("n-1").ails("n-2"))
        },
        &[
            PutOn(GATE, 4),
            Gone(Kind::NodeReadinessRule, "network"),
            Held(GATE, &["n-1", "n-2"]),
        ],
    ),
    Base::new(
        "dry-run-again: a rule in force is only tried out from then on: nothing changes any more",
        s(50),
        |it| {
            let dry = json!({"spec": {"dryRun": true}});
            let reporter = Reporter::new(READY)
                .ails("n-1")
                .then(s(35), "n-0", Say("False"))
                .then(s(35), "n-1", SayGood);
            it.has(rule("network").continuous())
                .nodes(joining(3))
                .acts(Operator::default().edits(s(30), rule_key("network"), dry))
                .acts(reporter)
        },
        &[PutOn(GATE, 3), Held(GATE, &["n-1"])],
    ),
    Base::new(
        "rules-come-and-go: a rule is created and deleted again and again while nodes join",
        s(40),
        |it| {
            let operator = Operator::default()
                .creates(s(2), rule("network"))
                .deletes(s(8), rule_key("network"))
                .creates(s(12), rule("network"))
                .deletes(s(15), rule_key("network"))
                .creates(s(20), rule("network"));
            it.nodes(Kubelets::new(booting(6, s(3), s(2))))
                .acts(operator)
                .acts(Reporter::new(READY).first(s(4), s(12)).ails("n-4"))
        },
        &[Held(GATE, &["n-4"])],
    ),
];
