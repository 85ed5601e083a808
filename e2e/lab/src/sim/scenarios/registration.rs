//! Taints that nodes register with, and taints that other controllers have added.

use serde_json::json;

use super::ends::{born_closed, closed, gated, put_on};
use super::objects::{COMPONENTS_READY, GATE, READY, daemon_set, place, rule};
use super::{Base, booting, joining, with, workload};
use crate::sim::actors::ask::node_key;
use crate::sim::actors::{Deed, Kubelets, Operator, Order, Reporter, Which};
use crate::sim::birth::gate_at_birth;
use crate::sim::time::s;

const CILIUM: &str = "node.cilium.io/agent-not-ready";
const ALWAYS: &str = "readiness.k8s.io/always";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";

/// The kubelets of this many machines that register with this taint.
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
        "late-heartbeat",
        "nodes register with the taint of a rule that comes long after the reporter on one of them has died",
        s(200),
        |_, _| {
            let strict = rule("network").with("heartbeatTimeout", json!("1m"));
            let operator = Operator::default().creates(s(150), strict.object());
            let reporter = Reporter::new(READY).beat(s(20));
            let reporter = reporter.then(s(40), Which::Node("n-1"), Order::Die);
            with(
                registering(3, GATE, "NoSchedule"),
                [Box::new(reporter), Box::new(operator)],
            )
        },
        |cluster| {
            put_on(cluster, GATE, 0)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "birth",
        "the API server closes nodes as it creates them, for a rule of each kind; one goes and comes back under its name",
        s(60),
        |cluster, _| {
            gate_at_birth(cluster.server_mut());
            place(cluster, rule("network").object());
            let always = rule("always").continuous().taint(ALWAYS, "NoSchedule");
            place(cluster, always.object());
            let reporter = Reporter::new(READY).ails("n-2");
            let [scheduler, workload] = workload(4);
            let kubelets = joining(4).then(s(30), "n-1", Deed::Replace(s(3)));
            with(kubelets, [scheduler, workload, Box::new(reporter)])
        },
        |cluster| {
            for key in [GATE, ALWAYS] {
                born_closed(cluster, key, &[true; 5])?;
                put_on(cluster, key, 0)?;
                closed(cluster, key, &["n-2"])?;
            }
            Ok(())
        },
    ),
    Base::new(
        "birth-suspended",
        "the API server closes nodes as it creates them, except while all rules are suspended",
        s(90),
        |cluster, _| {
            gate_at_birth(cluster.server_mut());
            place(cluster, rule("network").continuous().object());
            let reporter = Reporter::new(READY).ails("n-1").ails("n-3");
            let kubelets = Kubelets::new(booting(4, s(5), s(10)));
            with(kubelets, [Box::new(reporter)])
        },
        |cluster| {
            born_closed(cluster, GATE, &[true, true, false, false])?;
            put_on(cluster, GATE, 1)?;
            closed(cluster, GATE, &["n-1", "n-3"])
        },
    )
    .braked(s(20), s(60)),
    Base::new(
        "introduced",
        "the cloud provider labels nodes late, and with that another component is to run there: they are closed again",
        s(60),
        |cluster, _| {
            let agent = rule("agent").waits_for(COMPONENTS_READY, "True");
            place(cluster, agent.object());
            let csi = daemon_set("csi").critical().ready_after(s(5));
            place(cluster, csi.only_on("cloud", "known").object());
            let introduces = |node: &str| {
                (
                    json!({"metadata": {"labels": {"cloud": "known"}}, "spec": {"taints": null}}),
                    node_key(node),
                )
            };
            let mut operator = Operator::default();
            for node in ["n-0", "n-1"] {
                let (patch, key) = introduces(node);
                operator = operator.edits(s(25), key, patch);
            }
            let kubelets = registering(3, UNINITIALIZED, "NoSchedule");
            with(kubelets, [Box::new(operator)])
        },
        |cluster| {
            closed(cluster, UNINITIALIZED, &["n-2"])?;
            closed(cluster, GATE, &[])
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
