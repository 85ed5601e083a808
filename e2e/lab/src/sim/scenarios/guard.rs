//! Many nodes fail at once under a guarded rule.

use serde_json::json;

use super::ends::{Checked, closed, put_on, times_put_on};
use super::objects::{
    COMPONENTS_READY, GATE, READY, Rule, daemon_set, daemon_set_key, place, rule,
};
use super::{Base, booting, joining, with};
use crate::sim::Cluster;
use crate::sim::actors::ask::node_key;
use crate::sim::actors::kubelet::READY_AFTER;
use crate::sim::actors::{Kubelets, Operator, Order, Reporter, Which};
use crate::sim::time::s;

fn guarded() -> Rule {
    rule("guarded").continuous().with("disruption", json!({}))
}

/// This many nodes have joined, and at most `most` have been closed.
fn at_most(cluster: &Cluster, joined: usize, most: usize) -> Checked {
    let closed = times_put_on(cluster, GATE).saturating_sub(joined);
    if closed <= most {
        Ok(())
    } else {
        Err(format!(
            "{closed} open nodes were closed, instead of at most {most}"
        ))
    }
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "lie",
        "a reporter lies about all nodes for a while",
        s(90),
        |cluster, _| {
            place(cluster, guarded().object());
            let reporter = Reporter::new(READY)
                .then(s(40), Which::All, Order::Say("False"))
                .then(s(70), Which::All, Order::SayGood);
            with(joining(9), [Box::new(reporter)])
        },
        |cluster| {
            at_most(cluster, 9, 3)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "bad-version",
        "a new version of a critical component comes up nowhere, and is taken back",
        s(90),
        |cluster, _| {
            place(
                cluster,
                guarded().waits_for(COMPONENTS_READY, "True").object(),
            );
            let agent = daemon_set("agent").critical().updates_at_once(9);
            place(cluster, agent.object());
            let of = |after: &str| json!({"spec": {"template": {"metadata": {"annotations": {READY_AFTER: after}}}}});
            let operator = Operator::default()
                .edits(s(40), daemon_set_key("agent"), of("never"))
                .edits(s(70), daemon_set_key("agent"), of("1000"));
            with(joining(9), [Box::new(operator)])
        },
        |cluster| {
            at_most(cluster, 9, 3)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "zone-outage",
        "all nodes of one zone turn bad: they are closed one after the other",
        s(100),
        |cluster, _| {
            place(cluster, guarded().object());
            let reporter = Reporter::new(READY).then(s(40), Which::Zone("a"), Order::Say("False"));
            with(joining(9), [Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 12)?;
            closed(cluster, GATE, &["n-0", "n-3", "n-6"])
        },
    ),
    Base::new(
        "partial-outage",
        "most nodes of the only zone turn bad at once, as a small zone: it stays open",
        s(115),
        |cluster, _| {
            place(cluster, guarded().object());
            let machines = booting(10, s(5), s(1)).into_iter();
            let machines = machines.map(|machine| machine.zone("a")).collect();
            let mut reporter = Reporter::new(READY);
            for node in ["n-0", "n-1", "n-2", "n-3", "n-4", "n-5", "n-6"] {
                reporter = reporter
                    .then(s(40), Which::Node(node), Order::Say("False"))
                    .then(s(100), Which::Node(node), Order::SayGood);
            }
            with(Kubelets::new(machines), [Box::new(reporter)])
        },
        |cluster| {
            at_most(cluster, 10, 1)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "closed-by-another",
        "another controller has closed most nodes of the only zone when a rule begins to guard them: the others stay open",
        s(155),
        |_, _| {
            let machines = booting(10, s(5), s(1)).into_iter();
            let machines = machines.map(|machine| machine.zone("a")).collect();
            let mut reporter = Reporter::new(READY);
            let mut operator = Operator::default();
            for node in ["n-0", "n-1", "n-2", "n-3", "n-4", "n-5"] {
                reporter = reporter.then(s(60), Which::Node(node), Order::Say("False"));
                let taint = json!({"key": GATE, "effect": "NoSchedule"});
                operator =
                    operator.edits(s(62), node_key(node), json!({"spec": {"taints": [taint]}}));
            }
            operator = operator.creates(s(70), guarded().object());
            for node in ["n-6", "n-7"] {
                reporter = reporter.then(s(110), Which::Node(node), Order::Say("False"));
            }
            let reporter = reporter.then(s(140), Which::All, Order::SayGood);
            with(
                Kubelets::new(machines),
                [Box::new(reporter), Box::new(operator)],
            )
        },
        |cluster| {
            put_on(cluster, GATE, 0)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "some-bad-nodes",
        "a few nodes in different zones turn bad: each is closed",
        s(80),
        |cluster, _| {
            place(cluster, guarded().object());
            let reporter = Reporter::new(READY)
                .then(s(40), Which::Node("n-0"), Order::Say("False"))
                .then(s(41), Which::Node("n-4"), Order::Say("False"))
                .then(s(60), Which::Node("n-0"), Order::SayGood);
            with(joining(9), [Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 11)?;
            closed(cluster, GATE, &["n-4"])
        },
    ),
];
