//! Other controllers write taints and annotations on the same nodes.

use serde_json::json;

use super::ends::{closed, gated, put_on};
use super::objects::{GATE, READY, place, rule};
use super::{Base, booting, joining, with, workload};
use crate::sim::actors::ask::node_key;
use crate::sim::actors::foreign::THEIRS;
use crate::sim::actors::{
    Annotator, Foreign, Forgery, Kubelets, Manner, Operator, Order, Reporter, Undoer, Which,
};
use crate::sim::time::{ms, s};

/// A taint that looks like a rule's but belongs to none.
const NOBODYS: &str = "readiness.k8s.io/nobodys";

pub(super) const ALL: &[Base] = &[
    Base::new(
        "foreign-writer",
        "another controller writes whole lists of taints, with the revision that it has read",
        s(50),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let mut foreign = Foreign::new(Manner::Careful, ms(200));
            for node in ["n-0", "n-1", "n-2"] {
                for at in [6, 9, 12, 16, 20] {
                    foreign = foreign.adds(s(at), node).removes(s(at + 2), node);
                }
            }
            let foreign = foreign.adds(s(30), "n-1");
            let reporter = Reporter::new(READY).ails("n-2");
            with(joining(3), [Box::new(foreign), Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            closed(cluster, THEIRS, &["n-1"])?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "careless-writer",
        "another controller writes whole lists of taints as they were before, and undoes what it has not seen",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let mut foreign = Foreign::new(Manner::Careless, ms(1500));
            for node in ["n-0", "n-1", "n-2"] {
                for at in [6, 9, 12, 16, 20] {
                    foreign = foreign.adds(s(at), node).removes(s(at + 2), node);
                }
            }
            let foreign = foreign.adds(s(30), "n-1");
            let reporter = Reporter::new(READY).ails("n-2");
            with(joining(3), [Box::new(foreign), Box::new(reporter)])
        },
        |cluster| {
            closed(cluster, THEIRS, &["n-1"])?;
            closed(cluster, GATE, &["n-2"])
        },
    )
    .settles(s(120)),
    Base::new(
        "undone",
        "somebody takes the rule's taint off wherever it is put on, for a while",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let undoer = Undoer::removes(GATE, s(5), s(50));
            let reporter = Reporter::new(READY).ails("n-1");
            with(joining(3), [Box::new(undoer), Box::new(reporter)])
        },
        |cluster| closed(cluster, GATE, &["n-1"]),
    )
    .settles(s(300)),
    Base::new(
        "put-back",
        "somebody puts the rule's taint back wherever it is lifted, for a while",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").object());
            let undoer = Undoer::puts_back(GATE, s(5), s(40));
            let reporter = Reporter::new(READY);
            with(joining(3), [Box::new(undoer), Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            closed(cluster, GATE, &[])
        },
    )
    .settles(s(300)),
    Base::new(
        "forged",
        "a kubelet forges the controller's annotations: nobody's taint is lifted for it",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let nobodys = json!({"spec": {"taints": [{"key": NOBODYS, "effect": "NoSchedule"},
                                                     {"key": THEIRS, "effect": "NoSchedule"}]}});
            let annotator = Annotator::default()
                .forges(s(30), "n-0", Forgery::OwnershipOf(THEIRS))
                .forges(s(36), "n-0", Forgery::OwnershipOf(NOBODYS))
                .forges(s(30), "n-1", Forgery::Ownership)
                .forges(s(32), "n-1", Forgery::Completion)
                .forges(s(34), "n-2", Forgery::Nothing);
            let operator = Operator::default().edits(s(25), node_key("n-0"), nobodys);
            let reporter = Reporter::new(READY)
                .ails("n-1")
                .ails("n-2")
                .then(s(45), Which::Node("n-2"), Order::SayGood);
            with(
                joining(3),
                [Box::new(annotator), Box::new(operator), Box::new(reporter)],
            )
        },
        |cluster| {
            closed(cluster, THEIRS, &["n-0"])?;
            closed(cluster, NOBODYS, &["n-0"])?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "another-effect",
        "somebody puts a taint on nodes with the key of the rule's, and another effect: it is not the rule's",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let theirs = json!({"spec": {"taints": [{"key": GATE, "effect": "PreferNoSchedule"}]}});
            let operator = Operator::default()
                .edits(s(25), node_key("n-0"), theirs.clone())
                .edits(s(25), node_key("n-1"), theirs);
            let reporter = Reporter::new(READY)
                .then(s(30), Which::Node("n-1"), Order::Say("False"))
                .then(s(40), Which::Node("n-1"), Order::SayGood);
            with(joining(3), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 3)?;
            closed(cluster, GATE, &["n-0", "n-1"])
        },
    ),
    Base::new(
        "evicting",
        "a rule that evicts closes an open node, whose pods go elsewhere",
        s(60),
        |cluster, _| {
            let evicting = rule("network").continuous().taint(GATE, "NoExecute");
            place(cluster, evicting.object());
            let reporter =
                Reporter::new(READY).then(s(35), Which::Node("n-1"), Order::Say("False"));
            let [scheduler, workload] = workload(6);
            let kubelets = Kubelets::new(booting(3, s(1), ms(100)));
            with(kubelets, [scheduler, workload, Box::new(reporter)])
        },
        |cluster| {
            let on = |node: &str| {
                let pods = cluster.objects(crate::Kind::Pod);
                pods.filter(|(_, pod)| pod["spec"]["nodeName"] == node).count()
            };
            super::ends::same("pods on the closed node", &on("n-1"), &0)?;
            super::ends::same("pods elsewhere", &(on("n-0") + on("n-2")), &6)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
];
