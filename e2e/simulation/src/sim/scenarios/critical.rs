//! Critical components: `DaemonSet`s, their pods, and CSI drivers.

use serde_json::json;

use super::ends::End::{Gated, Held, PutOn, Says};
use super::objects::{
    COMPONENTS_READY, DRIVER, DRIVER_REGISTERED, GATE, GPU, HAS_GPU, Rule, csi_node, daemon_set,
    daemon_set_key, rolls_out, rule, storage,
};
use super::{Base, joining, joining_as};
use crate::sim::actors::{Csi, Deed, Operator};
use crate::sim::settings::{Settings, usual};
use crate::sim::time::s;
use crate::{Key, Kind};

const GARDENER: &str = "node.gardener.cloud/critical-components-not-ready";

fn unpublished() -> Settings {
    Settings {
        publish_conditions: false,
        ..usual()
    }
}

/// A continuous rule that waits for all critical components.
fn agent_rule() -> Rule {
    rule("agent").continuous().waits_for(COMPONENTS_READY)
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "gardener: nodes register with Gardener's taint and wait for DaemonSets and a CSI driver",
        s(60),
        |it| {
            let gardener = rule("gardener").waits_for(COMPONENTS_READY).remove_only();
            let cni = daemon_set("cni").critical().waits_for_driver(DRIVER);
            let kubelets = joining_as(4, |it| it.taint(GARDENER, "NoSchedule"));
            it.has(gardener.taint(GARDENER, "NoSchedule"))
                .has(cni.ready_after(s(5)))
                .has(daemon_set("proxy").critical())
                // The network never comes up on one node.
                .nodes(kubelets.then(s(7), "n-3", Deed::Fail("cni", s(3600))))
                .workload(4)
                .acts(Csi::of(DRIVER, s(4), s(9)))
        },
        &[
            Gated(GARDENER, 4),
            PutOn(GARDENER, 0),
            Held(GARDENER, &["n-3"]),
        ],
    ),
    Base::new(
        "rolling-update: a rolling update under a continuous rule gates each node for a moment",
        s(80),
        |it| {
            it.has(agent_rule())
                .has(daemon_set("agent").critical())
                .nodes(joining(4))
                .acts(rolls_out())
        },
        &[
            Gated(GATE, 4),
            PutOn(GATE, 8),
            Says(COMPONENTS_READY, "True"),
            Held(GATE, &[]),
        ],
    ),
    Base::new(
        "surging-update: a rolling update with surge gates none",
        s(80),
        |it| {
            it.has(agent_rule())
                .has(daemon_set("agent").critical().surges())
                .nodes(joining(3))
                .acts(rolls_out())
        },
        &[PutOn(GATE, 3), Held(GATE, &[])],
    ),
    Base::new(
        "unpublished: nothing is published: nodes say nothing of their components",
        s(50),
        |it| {
            let kubelets = joining(3)
                .then(s(25), "n-1", Deed::Fail("agent", s(5)))
                .then(s(35), "n-2", Deed::Fail("agent", s(3600)));
            it.has(agent_rule())
                .has(daemon_set("agent").critical())
                .nodes(kubelets)
        },
        &[
            PutOn(GATE, 5),
            Says(COMPONENTS_READY, ""),
            Held(GATE, &["n-2"]),
        ],
    )
    .settings(unpublished),
    Base::new(
        "late-component: a critical DaemonSet is added while no node is held, and another one goes",
        s(60),
        |it| {
            let operator = Operator::default()
                .creates(s(30), daemon_set("slow").critical().ready_after(s(4)))
                .deletes(s(45), daemon_set_key("agent"));
            it.has(agent_rule())
                .has(daemon_set("agent").critical())
                .nodes(joining(3))
                .acts(operator)
        },
        &[PutOn(GATE, 6), Held(GATE, &[])],
    ),
    Base::new(
        "csi-driver: a CSI driver registers late, vanishes on two nodes and returns on one",
        s(70),
        |it| {
            let csi = Csi::of(DRIVER, s(4), s(9))
                .vanishes(s(35), "n-1", DRIVER, Some(s(20)))
                .vanishes(s(35), "n-2", DRIVER, None);
            it.has(rule("csi").continuous().waits_for(DRIVER_REGISTERED))
                .nodes(joining(3))
                .acts(csi)
        },
        &[PutOn(GATE, 5), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "csi-storage: a CSI driver loses its storage on two nodes, which recovers on one; on a third one another driver does",
        s(70),
        |it| {
            let recovers = storage(DRIVER, &[]);
            let mut operator = Operator::default().edits(s(50), csi_node("n-1"), recovers);
            for (node, driver, how) in [
                ("n-0", "other.example.com", "StorageDegraded"),
                ("n-1", DRIVER, "StorageUnreachable"),
                ("n-2", DRIVER, "StorageDegraded"),
            ] {
                operator = operator.edits(s(35), csi_node(node), storage(driver, &[how]));
            }
            it.has(rule("csi").continuous().waits_for(DRIVER_REGISTERED))
                .nodes(joining(3))
                .acts(Csi::of(DRIVER, s(4), s(9)))
                .acts(operator)
        },
        &[PutOn(GATE, 5), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "gpu-count: nodes need as many of a resource as a label says, which comes late; one never has them, and one loses some again",
        s(80),
        |it| {
            let asks = json!([{
                "type": HAS_GPU,
                "requiredStatus": "True",
                "nodegate": { "minimumFromLabel": "nvidia.com/gpu.count" },
            }]);
            let count = json!({"nvidia.com/gpu.count": "8"});
            let operator = Operator::default()
                .labels(s(15), "n-0", &count)
                .labels(s(25), "n-1", &count)
                .labels(s(15), "n-2", &count);
            let kubelets = joining(3)
                .then(s(12), "", Deed::Offer(GPU, "7"))
                .then(s(20), "n-0", Deed::Offer(GPU, "8"))
                .then(s(20), "n-1", Deed::Offer(GPU, "8"))
                .then(s(50), "n-0", Deed::Offer(GPU, "7"));
            it.has(rule("gpus").continuous().with("conditions", asks))
                .nodes(kubelets)
                .acts(operator)
        },
        &[PutOn(GATE, 4), Held(GATE, &["n-0", "n-2"])],
    ),
    Base::new(
        "unreadable: among good objects are some that cannot be read: what they are about is left as it is, and nothing else",
        s(60),
        |it| {
            let labels = json!({"node.gardener.cloud/critical-component": "true"});
            let odd_pod = Key::namespaced(Kind::Pod, "kube-system", "odd");
            let odd = json!({"metadata": {"labels": labels}, "spec": {"nodeName": "n-1"}});
            let selector = |value| json!({"spec": {"template": {"spec": {"nodeSelector": value}}}});
            let operator = Operator::default()
                .creates(s(20), (odd_pod.clone(), odd))
                .edits_status(s(20), odd_pod.clone(), &json!({"conditions": "odd"}))
                .edits(s(30), daemon_set_key("agent"), selector(json!(5)))
                .edits(s(40), daemon_set_key("agent"), selector(json!(null)))
                .deletes(s(45), odd_pod);
            it.has(agent_rule())
                .has(daemon_set("agent").critical())
                .nodes(joining(3).then(s(33), "n-2", Deed::Fail("agent", s(3600))))
                .acts(operator)
        },
        &[Gated(GATE, 3), Held(GATE, &["n-2"])],
    ),
];
