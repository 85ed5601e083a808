//! Conditions that name a component: `DaemonSet`s, checks and drivers of devices.

use serde_json::{Map, Value, json};

use super::ends::End::{Gated, Held, PutOn, Says};
use super::objects::{
    AGENT, ALL_BOUND, ALL_DAEMON_SETS, COMPONENTS_READY, DRIVER, GATE, OTHER_GATE, Rule, check_run,
    daemon_set, daemon_set_key, rolls_out, rule, slice, version,
};
use super::{Base, joining, joining_as};
use crate::sim::actors::ask::node_key;
use crate::sim::actors::{Deed, Operator};
use crate::sim::scenario::Scene;
use crate::sim::time::s;
use crate::{Key, Kind};

const PROXY: &str = "daemonset.nodegate.dev/kube-system.proxy";
/// The condition that the newest run of the check `nccl` in `kube-system` has succeeded.
const CHECK: &str = "check.nodegate.dev/kube-system.nccl";
const CRITICAL: &str = "readiness.k8s.io/critical";
const NEVER: &str = "readiness.k8s.io/never";

/// A continuous rule that waits for the agent.
fn agent_rule() -> Rule {
    rule("agent").continuous().waits_for(AGENT)
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "named: nodes wait for a DaemonSet by its name alone; on one it never gets ready, for one it is not meant",
        s(60),
        |it| {
            let kubelets = joining_as(4, |it| match it.name.as_str() {
                "n-3" => it,
                _ => it.label("agent", "yes"),
            });
            it.has(rule("agent").waits_for(AGENT))
                .has(daemon_set("agent").ready_after(s(5)).only_on("agent", "yes"))
                .nodes(kubelets.then(s(6), "n-1", Deed::Fail("agent", s(3600))))
                .workload(4)
        },
        &[Gated(GATE, 3), Held(GATE, &["n-1"])],
    ),
    Base::new(
        "named-rolling-update: a rolling update under a continuous rule that names the DaemonSet gates each node for a moment",
        s(80),
        |it| {
            it.has(agent_rule())
                .has(daemon_set("agent"))
                .nodes(joining(4))
                .acts(rolls_out())
        },
        &[Gated(GATE, 4), PutOn(GATE, 8), Says(AGENT, "True"), Held(GATE, &[])],
    )
    .instances(2),
    Base::new(
        "named-revision: a rolling update under a bootstrap-only rule that goes by revisions gates each node once more; another rule, which does not, gates none",
        s(80),
        |it| {
            let agent = rule("agent").waits_for(AGENT);
            let other = rule("other").waits_for(AGENT);
            it.has(agent.nodegate("regateOn", json!(["Revision"])))
                .has(other.taint(OTHER_GATE, "NoSchedule"))
                .has(daemon_set("agent"))
                .nodes(joining(4))
                .acts(rolls_out())
        },
        &[
            PutOn(GATE, 8),
            PutOn(OTHER_GATE, 4),
            Held(GATE, &[]),
            Held(OTHER_GATE, &[]),
        ],
    ),
    Base::new(
        "named-another-selector: a DaemonSet is deleted and created again with another selector, which others' pods match too",
        s(80),
        |it| {
            let again = daemon_set("agent").selects("shared").ready_after(s(3));
            let operator = Operator::default()
                .deletes(s(30), daemon_set_key("agent"))
                .creates(s(32), again);
            it.has(agent_rule())
                .has(daemon_set("agent"))
                .has(daemon_set("other").selects("shared"))
                .nodes(joining(3).then(s(50), "n-2", Deed::Fail("shared", s(3600))))
                .acts(operator)
        },
        &[PutOn(GATE, 7), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "named-late: a rule names two DaemonSets, of which one comes late, and another never",
        s(60),
        |it| {
            let never = rule("never").taint(NEVER, "NoSchedule");
            let proxy = daemon_set("proxy").ready_after(s(2));
            it.has(rule("late").continuous().waits_for_all(&[AGENT, PROXY]))
                .has(never.waits_for("daemonset.nodegate.dev/kube-system.no-such.thing"))
                .has(daemon_set("agent"))
                .nodes(joining(3))
                .acts(Operator::default().creates(s(30), proxy))
        },
        &[Gated(GATE, 3), Held(GATE, &[]), Held(NEVER, &["n-0", "n-1", "n-2"])],
    ),
    Base::new(
        "named-deleted: a DaemonSet is deleted under a rule with a guard and a grace period, and comes back",
        s(150),
        |it| {
            let agent = agent_rule().nodegate("gracePeriod", json!("5s"));
            let operator = Operator::default()
                .deletes(s(40), daemon_set_key("agent"))
                .creates(s(100), daemon_set("agent"));
            it.has(agent.nodegate("disruption", json!({})))
                .has(daemon_set("agent"))
                .nodes(joining(6))
                .acts(operator)
        },
        &[Says(AGENT, "True"), Held(GATE, &[])],
    ),
    Base::new(
        "check: nodes wait for a run of a check: one succeeds, one fails and is tried again, one fails for good, one never comes",
        s(60),
        |it| {
            let ends = |phase: &str| json!({"phase": phase});
            let run = |name: &str| Key::namespaced(Kind::Pod, "kube-system", name);
            let operator = Operator::default()
                .creates(s(20), check_run("a-0", "n-0"))
                .creates(s(20), check_run("a-1", "n-1"))
                .creates(s(20), check_run("a-2", "n-2"))
                .edits_status(s(25), run("a-0"), &ends("Succeeded"))
                .edits_status(s(26), run("a-1"), &ends("Failed"))
                .edits_status(s(27), run("a-2"), &ends("Failed"))
                .creates(s(30), check_run("b-1", "n-1"))
                .edits_status(s(35), run("b-1"), &ends("Succeeded"));
            it.has(rule("check").waits_for(CHECK))
                .nodes(joining(4))
                .acts(operator)
        },
        &[Gated(GATE, 4), Held(GATE, &["n-2", "n-3"])],
    ),
    Base::new(
        "all-daemon-sets: nodes wait for every DaemonSet: one that comes late, one for other nodes, one that is to be ignored",
        s(70),
        |it| {
            let ignored = daemon_set("ignored").ready_after(s(3600));
            let late = daemon_set("late").ready_after(s(4));
            it.has(rule("all").continuous().waits_for(ALL_DAEMON_SETS))
                .has(daemon_set("agent"))
                .has(daemon_set("elsewhere").only_on("gpu", "yes"))
                .has(ignored.label("nodegate.dev/ignore"))
                .nodes(joining(3).then(s(50), "n-1", Deed::Fail("late", s(3600))))
                .acts(Operator::default().creates(s(30), late))
        },
        &[Held(GATE, &["n-1"])],
    ),
    Base::new(
        "all-but-some: rules leave out DaemonSets by name, which never get ready, and on one node have no room: they hold the nodes of a rule that waits for all",
        s(60),
        |it| {
            let but = |kind: &str, left_out: &str| {
                let ours = json!({"except": [left_out]});
                json!([{"type": kind, "requiredStatus": "True", "nodegate": ours}])
            };
            let most = rule("most").continuous();
            let critical = rule("critical").continuous().taint(CRITICAL, "NoSchedule");
            let all = rule("all").continuous().waits_for(ALL_DAEMON_SETS);
            let slow = daemon_set("slow").ready_after(s(3600)).critical();
            let kubelets = joining_as(3, |it| match it.name.as_str() {
                "n-2" => it.taint("ToBeDeletedByClusterAutoscaler", "NoSchedule"),
                _ => it,
            });
            it.has(most.with("conditions", but(ALL_DAEMON_SETS, "kube-system/slow")))
                .has(critical.with("conditions", but(COMPONENTS_READY, "kube-system/slow")))
                .has(all.taint(OTHER_GATE, "NoSchedule"))
                .has(daemon_set("agent").critical())
                .has(slow.waits_for_driver(DRIVER).tolerates(&[GATE, CRITICAL, OTHER_GATE]))
                .nodes(kubelets.then(s(30), "n-1", Deed::Fail("agent", s(3600))))
        },
        &[
            Held(GATE, &["n-1"]),
            Held(CRITICAL, &["n-1"]),
            Held(OTHER_GATE, &["n-0", "n-1", "n-2"]),
        ],
    ),
    Base::new(
        "room-first: nodes wait until every DaemonSet has a pod, Ready or not: one is for other nodes, and a taint that passes keeps one off a node",
        s(60),
        |it| {
            let kubelets = joining_as(3, |it| {
                if it.name == "n-1" {
                    it.taint("ToBeDeletedByClusterAutoscaler", "NoSchedule")
                } else {
                    it
                }
            });
            let never = daemon_set("never").ready_after(s(3600));
            it.has(rule("room").waits_for(ALL_BOUND))
                .has(daemon_set("agent").ready_after(s(30)).tolerates(&[GATE]))
                .has(daemon_set("elsewhere").only_on("gpu", "yes"))
                .has(never)
                .nodes(kubelets)
                .workload(4)
        },
        &[Gated(GATE, 3), Held(GATE, &["n-1"])],
    ),
    Base::new(
        "available: nodes wait until the pods of a DaemonSet have been Ready for its minReadySeconds, by name and by class; one begins anew, and one fails before",
        s(100),
        |it| {
            let kubelets = joining(3)
                .then(s(22), "n-1", Deed::Fail("agent", s(3)))
                .then(s(20), "n-2", Deed::Fail("agent", s(3600)));
            it.has(rule("agent").waits_for(AGENT))
                .has(rule("critical").waits_for(COMPONENTS_READY).taint(OTHER_GATE, "NoSchedule"))
                .has(daemon_set("agent").critical().available_after(20))
                .nodes(kubelets)
        },
        &[
            Gated(GATE, 3),
            Held(GATE, &["n-2"]),
            Held(OTHER_GATE, &["n-2"]),
        ],
    ),
    Base::new(
        "available-by-turns: a rolling update under a continuous rule goes on node by node, each held until its new pod is available",
        s(120),
        |it| {
            let operator = Operator::default().edits(s(45), daemon_set_key("agent"), version("2"));
            it.has(rule("agent").continuous().waits_for(COMPONENTS_READY))
                .has(daemon_set("agent").critical().available_after(8))
                .nodes(joining(3))
                .acts(operator)
        },
        &[PutOn(GATE, 6), Held(GATE, &[])],
    ),
    Base::new(
        "devices: nodes wait for a driver's devices: all slices of a pool, of its newest generation, without a taint",
        s(70),
        |it| {
            let key = |name: &str| Key::cluster(Kind::ResourceSlice, name);
            let tainted = json!({"spec": {"devices": [
                {"name": "gpu-0", "taints": [{"key": "broken", "effect": "NoExecute"}]},
            ]}});
            let operator = Operator::default()
                .creates(s(20), slice("a-0", "n-0", 1, 1))
                .creates(s(20), slice("a-1", "n-1", 1, 2))
                .creates(s(21), slice("a-2", "n-2", 1, 1))
                .creates(s(25), slice("b-1", "n-1", 1, 2))
                .creates(s(30), slice("b-0", "n-0", 2, 2))
                .deletes(s(31), key("a-0"))
                .edits(s(35), key("a-2"), tainted);
            let devices = "resourceslice.nodegate.dev/gpu.example.com";
            it.has(rule("devices").continuous().waits_for(devices))
                .nodes(joining(4))
                .acts(operator)
        },
        &[Held(GATE, &["n-0", "n-2", "n-3"])],
    ),
    Base::new(
        "hostile: a kubelet writes more slices, conditions and forged annotations than anybody reads: the others are released",
        s(60),
        |it| {
            let forged = |index: usize| {
                let key = format!("nodegate.dev/taint-added-by-{index}");
                let taint = json!({"rule-name": "r", "taint-key": GATE, "taint-effect": "NoSchedule"});
                (key, json!(taint.to_string()))
            };
            let forged: Map<String, Value> = (0..1_200).map(forged).collect();
            let condition = |index: usize| json!({"type": format!("example.com/{index}"), "status": "False"});
            let conditions: Vec<Value> = (0..500).map(condition).collect();
            let operator = Operator::default()
                .edits(s(25), node_key("n-0"), json!({"metadata": {"annotations": forged}}))
                .edits_status(s(26), node_key("n-0"), &json!({"conditions": conditions}))
                .creates(s(30), slice("a-1", "n-1", 1, 1))
                .creates(s(30), slice("a-2", "n-2", 1, 1));
            let slices = (0..1_001).map(|index| slice(&format!("h-{index}"), "n-0", 1, 1));
            slices
                .fold(it, Scene::has)
                .has(rule("devices").waits_for("resourceslice.nodegate.dev/gpu.example.com"))
                .nodes(joining(3))
                .acts(operator)
        },
        &[Gated(GATE, 3), Held(GATE, &["n-0"])],
    ),
];
