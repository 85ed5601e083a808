//! Taints that nodes register with, and taints that somebody else has put there.

use serde_json::json;

use super::ends::{closed, gated, put_on};
use super::objects::{GATE, READY, place, rule};
use super::{Base, booting, joining, with, workload};
use crate::sim::actors::ask::node_key;
use crate::sim::actors::{Kubelets, Operator, Order, Reporter, Which};
use crate::sim::time::s;

const CILIUM: &str = "node.cilium.io/agent-not-ready";
const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";

/// The kubelets of so many machines that register with this taint.
fn registering(count: usize, key: &str, effect: &str) -> Kubelets {
    let machines = booting(count, s(5), s(1)).into_iter();
    Kubelets::new(machines.map(|it| it.taint(key, effect)).collect())
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "startup-taint",
        "a rule lifts another project's startup taint, and puts none on",
        s(40),
        |cluster, _| {
            let cilium = rule("cilium").waits_for(NETWORK_UNAVAILABLE, "False");
            let cilium = cilium.remove_only().taint(CILIUM, "NoExecute");
            place(cluster, cilium.object());
            let reporter = Reporter::of_problem(NETWORK_UNAVAILABLE).ails("n-2");
            let [scheduler, workload] = workload(4);
            with(
                registering(4, CILIUM, "NoExecute"),
                [scheduler, workload, Box::new(reporter)],
            )
        },
        |cluster| {
            gated(cluster, CILIUM, 4)?;
            put_on(cluster, CILIUM, 0)?;
            closed(cluster, CILIUM, &["n-2"])
        },
    ),
    Base::new(
        "registered-taint",
        "nodes register with the rule's own taint",
        s(40),
        |cluster, _| {
            place(cluster, rule("network").object());
            let reporter = Reporter::new(READY).ails("n-2");
            let [scheduler, workload] = workload(4);
            with(
                registering(4, GATE, "NoSchedule"),
                [scheduler, workload, Box::new(reporter)],
            )
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            put_on(cluster, GATE, 0)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "adoption",
        "somebody puts the rule's taint on nodes: it is lifted where the conditions are met, and kept where they are not",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").object());
            let taint = json!({"spec": {"taints": [{"key": GATE, "effect": "NoSchedule"}]}});
            let operator = Operator::default()
                .edits(s(35), node_key("n-1"), taint.clone())
                .edits(s(35), node_key("n-2"), taint);
            let reporter =
                Reporter::new(READY).then(s(30), Which::Node("n-2"), Order::Say("False"));
            with(joining(3), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 3)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
];
