//! Other controllers write taints and annotations on the same nodes.

use serde_json::json;

use super::ends::End::{Gated, Held, Pods, PutOn};
use super::objects::{GATE, READY, rule};
use super::{Base, booting, joining};
use crate::sim::actors::Order::{Say, SayGood};
use crate::sim::actors::ask::node_key;
use crate::sim::actors::foreign::THEIRS;
use crate::sim::actors::{
    Annotator, Foreign, Forgery, Kubelets, Manner, Operator, Reporter, Undoer,
};
use crate::sim::time::{Time, ms, s};

/// A taint that looks like a rule's but belongs to none.
const NOBODYS: &str = "readiness.k8s.io/nobodys";

/// Adds and removes its taint on three nodes again and again; one keeps it.
fn foreign(manner: Manner, lag: Time) -> Foreign {
    let mut foreign = Foreign::new(manner, lag);
    for node in ["n-0", "n-1", "n-2"] {
        for at in [6, 9, 12, 16, 20] {
            foreign = foreign.adds(s(at), node).removes(s(at + 2), node);
        }
    }
    foreign.adds(s(30), "n-1")
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "foreign-writer: another controller writes whole lists of taints, with the revision that it has read",
        s(50),
        |it| {
            it.has(rule("network").continuous())
                .nodes(joining(3))
                .acts(foreign(Manner::Careful, ms(200)))
                .acts(Reporter::new(READY).ails("n-2"))
        },
        &[Gated(GATE, 3), Held(THEIRS, &["n-1"]), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "careless-writer: another controller writes whole lists of taints as they were before, and undoes what it has not seen",
        s(60),
        |it| {
            it.has(rule("network").continuous())
                .nodes(joining(3))
                .acts(foreign(Manner::Careless, ms(1500)))
                .acts(Reporter::new(READY).ails("n-2"))
        },
        &[Held(THEIRS, &["n-1"]), Held(GATE, &["n-2"])],
    )
    .settles(s(120)),
    Base::new(
        "undone: somebody takes the rule's taint off wherever it is put on, for a while",
        s(60),
        |it| {
            it.has(rule("network").continuous())
                .nodes(joining(3))
                .acts(Undoer::removes(GATE, s(5), s(50)))
                .acts(Reporter::new(READY).ails("n-1"))
        },
        &[Held(GATE, &["n-1"])],
    )
    .settles(s(300)),
    Base::new(
        "put-back: somebody puts the rule's taint back wherever it is removed, for a while",
        s(60),
        |it| {
            it.has(rule("network"))
                .nodes(joining(3))
                .acts(Undoer::puts_back(GATE, s(5), s(40)))
                .acts(Reporter::new(READY))
        },
        &[Gated(GATE, 3), Held(GATE, &[])],
    )
    .settles(s(300)),
    Base::new(
        "forged: a kubelet forges the controller's annotations: nobody's taint is removed for it",
        s(60),
        |it| {
            let annotator = Annotator::default()
                .forges(s(30), "n-0", Forgery::OwnershipOf(THEIRS))
                .forges(s(36), "n-0", Forgery::OwnershipOf(NOBODYS))
                .forges(s(30), "n-1", Forgery::Ownership)
                .forges(s(32), "n-1", Forgery::Completion)
                .forges(s(34), "n-2", Forgery::Nothing);
            let reporter = Reporter::new(READY).ails("n-1").ails("n-2");
            it.has(rule("network").continuous())
                .nodes(joining(3))
                .acts(annotator)
                .acts(Operator::default().taints(s(25), "n-0", &[NOBODYS, THEIRS]))
                .acts(reporter.then(s(45), "n-2", SayGood))
        },
        &[Held(THEIRS, &["n-0"]), Held(NOBODYS, &["n-0"]), Held(GATE, &["n-1"])],
    ),
    Base::new(
        "another-effect: somebody puts a taint on nodes with the key of the rule's, and another effect: it is not the rule's",
        s(60),
        |it| {
            let theirs = json!({"spec": {"taints": [{"key": GATE, "effect": "PreferNoSchedule"}]}});
            let operator = Operator::default()
                .edits(s(25), node_key("n-0"), theirs.clone())
                .edits(s(25), node_key("n-1"), theirs);
            let reporter = Reporter::new(READY)
                .then(s(30), "n-1", Say("False"))
                .then(s(40), "n-1", SayGood);
            it.has(rule("network").continuous())
                .nodes(joining(3))
                .acts(operator)
                .acts(reporter)
        },
        &[PutOn(GATE, 3), Held(GATE, &["n-0", "n-1"])],
    ),
    Base::new(
        "evicting: a rule that evicts gates a node in use, whose pods go elsewhere",
        s(60),
        |it| {
            it.has(rule("network").continuous().taint(GATE, "NoExecute"))
                .nodes(Kubelets::new(booting(3, s(1), ms(100))))
                .workload(6)
                .acts(Reporter::new(READY).then(s(35), "n-1", Say("False")))
        },
        &[Pods(&["n-1"], 0), Pods(&["n-0", "n-2"], 6), Held(GATE, &["n-1"])],
    ),
];
