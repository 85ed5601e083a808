//! Many nodes fail at once under a guarded rule.

use serde_json::json;

use super::ends::End::{GatedAgain, Held, PutOn};
use super::objects::{
    COMPONENTS_READY, DRAIN, GATE, READY, Rule, daemon_set, daemon_set_key, rule,
};
use super::{Base, joining, joining_as};
use crate::sim::actors::Order::{Say, SayGood};
use crate::sim::actors::kubelet::READY_AFTER;
use crate::sim::actors::{Operator, Reporter, Which};
use crate::sim::time::s;

fn guarded() -> Rule {
    rule("guarded")
        .continuous()
        .nodegate("disruption", json!({}))
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "bad-version: a new version of a critical component comes up nowhere, and is taken back",
        s(90),
        |it| {
            let ready = |after: &str| json!({"spec": {"template": {"metadata": {"annotations": {READY_AFTER: after}}}}});
            let operator = Operator::default()
                .edits(s(40), daemon_set_key("agent"), ready("never"))
                .edits(s(70), daemon_set_key("agent"), ready("1000"));
            it.has(guarded().waits_for(COMPONENTS_READY))
                .has(daemon_set("agent").critical().updates_at_once(9))
                .nodes(joining(9))
                .acts(operator)
        },
        &[GatedAgain(9, 3), Held(GATE, &[])],
    ),
    Base::new(
        "zone-outage: all nodes of one zone turn bad: they are gated one after the other",
        s(100),
        |it| {
            it.has(guarded())
                .nodes(joining(9))
                .acts(Reporter::new(READY).then(s(40), Which::Zone("a"), Say("False")))
        },
        &[PutOn(GATE, 12), Held(GATE, &["n-0", "n-3", "n-6"])],
    ),
    Base::new(
        "partial-outage: most nodes of the only zone turn bad at once, as a small zone: it stays released",
        s(115),
        |it| {
            let bad = &["n-0", "n-1", "n-2", "n-3", "n-4", "n-5", "n-6"];
            let reporter =
                Reporter::new(READY)
                    .then(s(40), bad, Say("False"))
                    .then(s(100), bad, SayGood);
            it.has(guarded())
                .nodes(joining_as(10, |it| it.zone("a")))
                .acts(reporter)
        },
        &[GatedAgain(10, 1), Held(GATE, &[])],
    ),
    Base::new(
        "gated-by-another: another controller has gated most nodes of the only zone when a rule begins to guard them: the others stay released",
        s(155),
        |it| {
            let gated = &["n-0", "n-1", "n-2", "n-3", "n-4", "n-5"];
            let mut operator = Operator::default().creates(s(70), guarded());
            for node in gated {
                operator = operator.taints(s(62), node, &[GATE]);
            }
            let reporter = Reporter::new(READY)
                .then(s(60), gated, Say("False"))
                .then(s(110), &["n-6", "n-7"], Say("False"))
                .then(s(140), Which::All, SayGood);
            it.nodes(joining_as(10, |it| it.zone("a")))
                .acts(reporter)
                .acts(operator)
        },
        &[PutOn(GATE, 0), Held(GATE, &[])],
    ),
    Base::new(
        "maintenance: nodes of the only zone turn bad while they are in maintenance: they stay released and do not count, so others that turn bad are gated; afterwards those that are still bad are, too",
        s(150),
        |it| {
            let maintained = &["n-0", "n-1", "n-2", "n-3"];
            let drain = Reporter::of_problem(DRAIN)
                .then(s(45), maintained, Say("True"))
                .then(s(135), &["n-0", "n-1"], SayGood);
            let reporter = Reporter::new(READY)
                .then(s(85), maintained, Say("False"))
                .then(s(95), &["n-4", "n-5"], Say("False"))
                .then(s(130), "n-0", SayGood);
            it.has(guarded())
                .nodes(joining_as(10, |it| it.zone("a")))
                .acts(drain)
                .acts(reporter)
        },
        &[PutOn(GATE, 13), Held(GATE, &["n-1", "n-4", "n-5"])],
    ),
];
