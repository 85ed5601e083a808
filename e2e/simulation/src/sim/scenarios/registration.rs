//! Taints that nodes register with, and taints that other controllers have added.

use serde_json::json;

use super::ends::End::{BornHeld, Gated, Held, PutOn};
use super::objects::{AGENT, CILIUM, COMPONENTS_READY, GATE, READY, daemon_set, rule};
use super::{Base, booting, joining, joining_as};
use crate::sim::actors::Order::{Die, Say};
use crate::sim::actors::ask::node_key;
use crate::sim::actors::{Deed, Foreign, Kubelets, Operator, Reporter};
use crate::sim::birth::gate_at_birth;
use crate::sim::time::s;

const ALWAYS: &str = "readiness.k8s.io/always";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const CLUSTER_API: &str = "node.cluster.x-k8s.io/uninitialized";
const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";

pub(super) const ALL: &[Base] = &[
    Base::new(
        "startup-taint: a rule removes another project's startup taint, and puts none on",
        s(40),
        |it| {
            let available = json!([{"type": NETWORK_UNAVAILABLE, "requiredStatus": "False"}]);
            let cilium = rule("cilium").with("conditions", available).remove_only();
            it.has(cilium.taint(CILIUM, "NoExecute"))
                .nodes(joining_as(4, |it| it.taint(CILIUM, "NoExecute")))
                .workload(4)
                .acts(Reporter::of_problem(NETWORK_UNAVAILABLE).ails("n-2"))
        },
        &[Gated(CILIUM, 4), PutOn(CILIUM, 0), Held(CILIUM, &["n-2"])],
    ),
    Base::new(
        "late-heartbeat: nodes register with the taint of a rule that comes long after the reporter on one of them has died",
        s(200),
        |it| {
            let strict = rule("network").nodegate("heartbeatTimeout", json!("1m"));
            it.nodes(joining_as(3, |it| it.taint(GATE, "NoSchedule")))
                .acts(Reporter::new(READY).beat(s(20)).then(s(40), "n-1", Die))
                .acts(Operator::default().creates(s(150), strict))
        },
        &[PutOn(GATE, 0), Held(GATE, &["n-1"])],
    ),
    Base::new(
        "birth: the API server gates nodes as it creates them, for a rule of each kind; one goes and comes back under its name",
        s(60),
        |it| {
            gate_at_birth(it.cluster.server_mut());
            it.has(rule("network"))
                .has(rule("always").continuous().taint(ALWAYS, "NoSchedule"))
                .nodes(joining(4).then(s(30), "n-1", Deed::Replace(s(3))))
                .workload(4)
                .acts(Reporter::new(READY).ails("n-2"))
        },
        &[
            BornHeld(GATE, &[true; 5]),
            PutOn(GATE, 0),
            Held(GATE, &["n-2"]),
            BornHeld(ALWAYS, &[true; 5]),
            PutOn(ALWAYS, 0),
            Held(ALWAYS, &["n-2"]),
        ],
    ),
    Base::new(
        "birth-suspended: the API server gates nodes as it creates them, except while all rules are suspended",
        s(90),
        |it| {
            gate_at_birth(it.cluster.server_mut());
            it.has(rule("network").continuous())
                .nodes(Kubelets::new(booting(4, s(5), s(10))))
                .acts(Reporter::new(READY).ails("n-1").ails("n-3"))
        },
        &[
            BornHeld(GATE, &[true, true, false, false]),
            PutOn(GATE, 1),
            Held(GATE, &["n-1", "n-3"]),
        ],
    )
    .braked(s(20), s(60)),
    Base::new(
        "introduced: the cloud provider labels nodes late, and with that another component is to run there: they are gated again",
        s(60),
        |it| {
            let csi = daemon_set("csi").critical().ready_after(s(5));
            let introduced =
                json!({"metadata": {"labels": {"cloud": "known"}}, "spec": {"taints": null}});
            let operator = Operator::default()
                .edits(s(25), node_key("n-0"), introduced.clone())
                .edits(s(25), node_key("n-1"), introduced);
            it.has(rule("agent").waits_for(COMPONENTS_READY))
                .has(csi.only_on("cloud", "known"))
                .nodes(joining_as(3, |it| it.taint(UNINITIALIZED, "NoSchedule")))
                .acts(operator)
        },
        &[Held(UNINITIALIZED, &["n-2"]), Held(GATE, &[])],
    ),
    Base::new(
        "cluster-api: Cluster API labels nodes late, then takes its taint off: until then a DaemonSet that a rule names may have to run there",
        s(60),
        |it| {
            let labels = json!({"pool": "workers"});
            let operator = Operator::default()
                .labels(s(25), "n-0", &labels)
                .labels(s(25), "n-1", &labels);
            let cluster_api = Foreign::of(CLUSTER_API, "NoSchedule")
                .removes(s(27), "n-0")
                .removes(s(27), "n-1");
            let kubelets = joining_as(3, |it| it.taint(CLUSTER_API, "NoSchedule"));
            it.has(rule("agent").waits_for(AGENT))
                .has(daemon_set("agent").only_on("pool", "workers"))
                .nodes(kubelets.then(s(6), "n-1", Deed::Fail("agent", s(3600))))
                .acts(operator)
                .acts(cluster_api)
        },
        &[
            PutOn(GATE, 3),
            Held(CLUSTER_API, &["n-2"]),
            Held(GATE, &["n-1", "n-2"]),
        ],
    ),
    Base::new(
        "adoption: somebody puts the rule's taint on nodes: it is removed where the conditions are met, and kept where they are not",
        s(60),
        |it| {
            let operator =
                Operator::default()
                    .taints(s(35), "n-1", &[GATE])
                    .taints(s(35), "n-2", &[GATE]);
            it.has(rule("network"))
                .nodes(joining(3))
                .acts(operator)
                .acts(Reporter::new(READY).then(s(30), "n-2", Say("False")))
        },
        &[PutOn(GATE, 3), Held(GATE, &["n-2"])],
    ),
];
