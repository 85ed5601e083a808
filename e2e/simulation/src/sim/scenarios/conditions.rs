//! Node conditions that reporters write.

use serde_json::json;

use super::ends::End::{Gated, Held, PutOn};
use super::objects::{AGENT, GATE, OTHER_GATE, READY, SECOND, daemon_set, rule, rule_key};
use super::{Base, joining};
use crate::sim::actors::Order::{Die, Revive, Say, SayGood};
use crate::sim::actors::{Deed, Operator, Reporter};
use crate::sim::time::s;

pub(super) const ALL: &[Base] = &[
    Base::new(
        "bootstrap: nodes join and are released when their condition is met; one never is",
        s(30),
        |it| {
            it.has(rule("network"))
                .nodes(joining(5))
                .workload(6)
                .acts(Reporter::new(READY).ails("n-3"))
        },
        &[Gated(GATE, 5), PutOn(GATE, 5), Held(GATE, &["n-3"])],
    ),
    Base::new(
        "several-conditions: a rule waits for two conditions, which come apart",
        s(40),
        |it| {
            it.has(rule("both").waits_for_all(&[READY, SECOND]))
                .nodes(joining(4))
                .acts(Reporter::new(READY).ails("n-2"))
                .acts(Reporter::new(SECOND).first(s(5), s(20)).ails("n-0"))
        },
        &[Gated(GATE, 4), Held(GATE, &["n-0", "n-2"])],
    ),
    Base::new(
        "reasons: a condition counts for one rule, and not for another one that accepts it with other reasons only",
        s(40),
        |it| {
            let asks = |reason: &str| json!([{"type": READY, "requiredStatus": "True", "nodegate": { "reasons": ["Other", reason] }}]);
            let refuses = rule("refuses").with("conditions", asks("IsSettled"));
            it.has(rule("accepts").with("conditions", asks("Is")))
                .has(refuses.taint(OTHER_GATE, "NoSchedule"))
                .nodes(joining(2))
                .acts(Reporter::new(READY))
        },
        &[Held(GATE, &[]), Held(OTHER_GATE, &["n-0", "n-1"])],
    ),
    Base::new(
        "heartbeat: a reporter dies on two nodes and comes back on one of them",
        s(180),
        |it| {
            let reporter = Reporter::new(READY)
                .beat(s(20))
                .then(s(40), &["n-1", "n-2"], Die)
                .then(s(150), "n-2", Revive);
            it.has(
                rule("network")
                    .continuous()
                    .nodegate("heartbeatTimeout", json!("1m")),
            )
            .nodes(joining(3))
            .acts(reporter)
        },
        &[PutOn(GATE, 5), Held(GATE, &["n-1"])],
    ),
    Base::new(
        "written-once: a reporter writes its condition once and never renews it: its silence gates no node",
        s(150),
        |it| {
            let available = json!([{"type": "NetworkUnavailable", "requiredStatus": "False"}]);
            let network = rule("network").continuous().with("conditions", available);
            it.has(network.nodegate("heartbeatTimeout", json!("1m")))
                .nodes(joining(5))
                .acts(
                    Reporter::of_problem("NetworkUnavailable")
                        .once()
                        .ails("n-3"),
                )
        },
        &[PutOn(GATE, 5), Held(GATE, &["n-3"])],
    ),
    Base::new(
        "settling: rules release nodes once their conditions have been met for a minute: on one node a report breaks that for a moment, on another one a pod does, and one is never met",
        s(90),
        |it| {
            let reporter = Reporter::new(READY)
                .ails("n-2")
                .then(s(40), "n-1", Say("False"))
                .then(s(45), "n-1", SayGood);
            let minute = || json!("1m");
            let agent = rule("agent").continuous().waits_for(AGENT);
            it.has(rule("network").nodegate("settlePeriod", minute()))
                .has(agent.taint(OTHER_GATE, "NoSchedule").nodegate("settlePeriod", minute()))
                .has(daemon_set("agent"))
                .nodes(joining(3).then(s(40), "n-0", Deed::Fail("agent", s(5))))
                .acts(reporter)
        },
        &[
            Gated(GATE, 3),
            Held(GATE, &["n-2"]),
            PutOn(OTHER_GATE, 3),
            Held(OTHER_GATE, &[]),
        ],
    )
    .settles(s(120)),
    Base::new(
        "conflict: two rules for one taint: the older one governs, until it is deleted",
        s(60),
        |it| {
            let operator = Operator::default()
                .creates(s(3), rule("storage").waits_for(SECOND).continuous())
                .deletes(s(40), rule_key("network"));
            it.has(rule("network").continuous())
                .nodes(joining(3))
                .acts(operator)
                .acts(Reporter::new(READY).ails("n-0"))
                .acts(Reporter::new(SECOND).ails("n-1"))
        },
        &[Gated(GATE, 3), Held(GATE, &["n-1"])],
    ),
];
