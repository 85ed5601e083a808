//! What goes for a moment: labels of nodes, and `DaemonSet`s.

use serde_json::json;

use super::ends::End::{Held, PutOn};
use super::objects::{
    AGENT, COMPONENTS_READY, GATE, OTHER_GATE, READY, Rule, daemon_set, daemon_set_key, rule,
};
use super::{Base, LABELS_SETTLE, joining, joining_as};
use crate::sim::actors::{Deed, Kubelets, Operator, Reporter, Unlabeller};
use crate::sim::time::s;

/// A label that a labeller puts on nodes, with [`YES`].
const FEATURE: &str = "feature";
const YES: &str = "yes";
const BOOTED: &str = "readiness.k8s.io/booted";

/// A continuous rule that waits for the agent.
fn agent_rule() -> Rule {
    rule("agent").continuous().waits_for(AGENT)
}

/// A continuous rule for nodes with the feature.
fn feature_rule() -> Rule {
    rule("feature")
        .continuous()
        .on(FEATURE, YES)
        .taint(OTHER_GATE, "NoSchedule")
}

/// Of five machines the first three have the feature. The agent never gets ready on those in the middle.
fn featured() -> Kubelets {
    let kubelets = joining_as(5, |it| match it.name.as_str() {
        "n-0" | "n-1" | "n-2" => it.label(FEATURE, YES),
        _ => it,
    });
    ["n-1", "n-2", "n-3"]
        .into_iter()
        .fold(kubelets, |it, node| {
            it.then(s(6), node, Deed::Fail("agent", s(3600)))
        })
}

/// Reports that these nodes are not ready, either.
fn reporter() -> Reporter {
    Reporter::new(READY).ails("n-1").ails("n-2").ails("n-3")
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "labeller-restarts: a labeller takes its label off nodes for three seconds, off one that it has just labelled, and off one for good: by that no node is released, gated or put on record as complete",
        s(80),
        |it| {
            let booted = rule("booted").waits_for(AGENT).remove_only();
            let operator = Operator::default()
                .labels(s(40), "n-3", &json!({FEATURE: YES}))
                .labels(s(60), "n-2", &json!({FEATURE: null}))
                .takes_off(s(60), s(3), (FEATURE, YES), &["n-0", "n-1", "n-3"]);
            it.has(agent_rule())
                .has(feature_rule())
                .has(booted.taint(BOOTED, "NoSchedule"))
                .has(daemon_set("agent").only_on(FEATURE, YES))
                .nodes(featured())
                .acts(operator)
                .acts(reporter())
        },
        // The first one waits for its new pod.
        &[
            PutOn(GATE, 5),
            PutOn(OTHER_GATE, 4),
            Held(GATE, &["n-1", "n-3"]),
            Held(OTHER_GATE, &["n-1", "n-3"]),
        ],
    )
    .settles(LABELS_SETTLE),
    Base::new(
        "labels-taken-at-restart: labels are away for more than three minutes, on one node for good: a process that starts meanwhile holds whom an earlier one held",
        s(280),
        |it| {
            let operator = Operator::default()
                .labels(s(70), "n-2", &json!({FEATURE: null}))
                .takes_off(s(70), s(200), (FEATURE, YES), &["n-0", "n-1"]);
            it.has(agent_rule())
                .has(feature_rule())
                .has(daemon_set("agent").only_on(FEATURE, YES))
                .nodes(featured())
                .acts(operator)
                .acts(reporter())
        },
        &[Held(GATE, &["n-1"]), Held(OTHER_GATE, &["n-1"])],
    )
    .settles(LABELS_SETTLE),
    Base::new(
        "unlabelled: somebody takes a label off each node with a taint, and puts it on once it has none, and the DaemonSet that is waited for selects by it: nodes are gated once in five minutes, and after the fourth time not for ten minutes",
        s(40),
        |it| {
            it.has(agent_rule())
                .has(daemon_set("agent").only_on(FEATURE, YES).ready_after(s(10)))
                .nodes(joining(2))
                .acts(Unlabeller::of(FEATURE, YES))
        },
        &[PutOn(GATE, 8)],
    )
    .settles(s(1450)),
    Base::new(
        "daemon-set-re-created: a DaemonSet is made again, and its pods are left to themselves meanwhile: no node is gated or released by that, whether its pods are to be Ready or of a revision",
        s(80),
        |it| {
            let revision = rule("revision").waits_for(AGENT).taint(OTHER_GATE, "NoSchedule");
            let operator = Operator::default()
                .orphans(s(40), &daemon_set_key("agent"))
                .creates(s(43), daemon_set("agent"));
            it.has(agent_rule())
                .has(revision.nodegate("regateOn", json!(["Revision"])))
                .has(daemon_set("agent"))
                .nodes(joining(4).then(s(6), "n-3", Deed::Fail("agent", s(3600))))
                .acts(operator)
        },
        &[
            PutOn(GATE, 4),
            PutOn(OTHER_GATE, 4),
            Held(GATE, &["n-3"]),
            Held(OTHER_GATE, &["n-3"]),
        ],
    ),
    Base::new(
        "daemon-set-deleted-class: of two critical DaemonSets one is deleted and made again ten seconds later, and one deleted for good: who waits for the first stays held, and who waits for the second is released a little later",
        s(100),
        |it| {
            let operator = Operator::default()
                .deletes(s(40), daemon_set_key("agent"))
                .creates(s(50), daemon_set("agent").critical())
                .deletes(s(70), daemon_set_key("plugin"));
            let kubelets = joining_as(3, |it| match it.name.as_str() {
                "n-2" => it.label(FEATURE, YES),
                _ => it,
            });
            let kubelets = kubelets
                .then(s(6), "n-1", Deed::Fail("agent", s(3600)))
                .then(s(6), "n-2", Deed::Fail("plugin", s(3600)));
            it.has(rule("critical").continuous().waits_for(COMPONENTS_READY))
                .has(daemon_set("agent").critical())
                .has(daemon_set("plugin").critical().only_on(FEATURE, YES))
                .nodes(kubelets)
                .acts(operator)
        },
        &[Held(GATE, &["n-1"])],
    ),
];
