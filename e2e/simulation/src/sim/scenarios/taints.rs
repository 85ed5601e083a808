//! Taints of others that a `DaemonSet` does not tolerate, while rules wait for it.

use super::ends::End::{Held, PutOn};
use super::objects::{
    AGENT, ALL_DAEMON_SETS, COMPONENTS_READY, DaemonSet, GATE, OTHER_GATE, daemon_set, rule,
};
use super::{Base, joining, joining_as};
use crate::sim::actors::{Deed, Foreign, Machine};
use crate::sim::scenario::Scene;
use crate::sim::time::s;

const CLASS_GATE: &str = "readiness.k8s.io/class";
const DEDICATED: &str = "dedicated";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
const INFRA: &str = "node-role.kubernetes.io/infra";
/// Another project's startup taint.
const STARTUP: &str = "x.csi.example.com/agent-not-ready";
pub(super) const STAYING: [&str; 3] = [DEDICATED, CONTROL_PLANE, INFRA];
/// Taints that other controllers put on nodes for a while.
pub(super) const PASSING: [(&str, &str); 5] = [
    (STARTUP, "NoExecute"),
    ("ToBeDeletedByClusterAutoscaler", "NoSchedule"),
    ("karpenter.sh/disrupted", "NoSchedule"),
    ("medik8s.io/remediation", "NoExecute"),
    ("node.kubernetes.io/out-of-service", "NoExecute"),
];

/// A critical `DaemonSet` that tolerates only the taints of the rules.
fn agent() -> DaemonSet {
    let agent = daemon_set("agent").critical();
    agent.tolerates(&[GATE, OTHER_GATE, CLASS_GATE])
}

/// A rule that names the agent, one that waits for all `DaemonSet`s, and one that waits for critical components.
fn three_rules(it: Scene<'_>) -> Scene<'_> {
    let all = rule("all").waits_for(ALL_DAEMON_SETS);
    let class = rule("class").waits_for(COMPONENTS_READY);
    it.has(rule("named").waits_for(AGENT))
        .has(all.taint(OTHER_GATE, "NoSchedule"))
        .has(class.taint(CLASS_GATE, "NoSchedule"))
}

fn registers(machine: Machine, with: &str, nodes: &[&str]) -> Machine {
    if nodes.contains(&machine.name.as_str()) {
        machine.taint(with, "NoSchedule")
    } else {
        machine
    }
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "passing-taints: others put taints on held nodes for a while, which keep a DaemonSet away: the nodes wait for it all the same",
        s(80),
        |it| {
            let startup = Foreign::of(STARTUP, "NoSchedule").removes(s(15), "n-0");
            let mut it = three_rules(it)
                .has(agent().ready_after(s(20)))
                .acts(startup);
            for ((key, effect), node) in
                PASSING.into_iter().zip(["n-1", "n-1", "n-2", "n-3", "n-4"])
            {
                it = it.acts(
                    Foreign::of(key, effect)
                        .adds(s(14), node)
                        .removes(s(17), node),
                );
            }
            let kubelets = joining_as(5, |it| registers(it, STARTUP, &["n-0"]));
            it.nodes(kubelets.then(s(6), "n-1", Deed::Fail("agent", s(3600))))
        },
        &[
            PutOn(GATE, 5),
            PutOn(OTHER_GATE, 5),
            PutOn(CLASS_GATE, 5),
            Held(GATE, &["n-1"]),
            Held(OTHER_GATE, &["n-1"]),
            Held(CLASS_GATE, &["n-1"]),
        ],
    ),
    Base::new(
        "staying-taints: taints that stay keep a DaemonSet away: a rule that names it holds the node until the taint goes, except a control plane; a class and all leave it out",
        s(60),
        |it| {
            let kubelets = joining_as(4, |it| {
                registers(
                    registers(it, DEDICATED, &["n-0", "n-3"]),
                    CONTROL_PLANE,
                    &["n-1"],
                )
            });
            three_rules(it)
                .has(agent())
                .nodes(kubelets)
                .acts(Foreign::of(DEDICATED, "NoSchedule").removes(s(30), "n-3"))
        },
        &[
            PutOn(GATE, 3),
            Held(GATE, &["n-0"]),
            Held(OTHER_GATE, &[]),
            Held(CLASS_GATE, &[]),
        ],
    ),
    Base::new(
        "live-pod: taints that stay come after a DaemonSet's pod: while it is there, the nodes wait for it",
        s(80),
        |it| {
            let kubelets = joining(3)
                .then(s(25), "n-0", Deed::Fail("agent", s(3600)))
                .then(s(40), "n-1", Deed::Fail("agent", s(3600)));
            let infra = Foreign::of(INFRA, "NoSchedule")
                .adds(s(60), "n-0")
                .adds(s(30), "n-1");
            let all = rule("all").continuous().waits_for(ALL_DAEMON_SETS);
            it.has(rule("named").continuous().waits_for(AGENT))
                .has(all.taint(OTHER_GATE, "NoSchedule"))
                .has(agent())
                .nodes(kubelets)
                .acts(infra)
                .acts(Foreign::of(DEDICATED, "NoSchedule").adds(s(30), "n-2"))
        },
        &[
            PutOn(GATE, 5),
            Held(GATE, &["n-0", "n-1"]),
            Held(OTHER_GATE, &["n-0", "n-1"]),
        ],
    ),
];
