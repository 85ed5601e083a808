//! Critical components: `DaemonSet`s, their pods, and CSI drivers.

use serde_json::json;

use super::ends::{closed, gated, put_on, says};
use super::objects::{
    COMPONENTS_READY, DRIVER, GATE, csi_node, daemon_set, daemon_set_key, place, rule, storage,
    version,
};
use super::{Base, booting, joining, with, workload};
use crate::sim::Settings;
use crate::sim::actors::{Csi, Deed, Driver, Kubelets, Operator};
use crate::sim::time::s;
use crate::{Key, Kind};

const GARDENER: &str = "node.gardener.cloud/critical-components-not-ready";

fn unpublished() -> Settings {
    Settings {
        publish_conditions: false,
        ..Settings::default()
    }
}

fn driver() -> Driver {
    Driver {
        name: DRIVER,
        after: (s(4), s(9)),
    }
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "gardener",
        "nodes register with Gardener's taint and wait for DaemonSets and a CSI driver",
        s(60),
        |cluster, _| {
            let gardener = rule("gardener").waits_for(COMPONENTS_READY, "True");
            let gardener = gardener.remove_only().taint(GARDENER, "NoSchedule");
            place(cluster, gardener.object());
            let cni = daemon_set("cni").critical().waits_for_driver(DRIVER);
            place(cluster, cni.ready_after(s(5)).object());
            place(cluster, daemon_set("proxy").critical().object());
            let machines = booting(4, s(5), s(1)).into_iter();
            let machines = machines.map(|it| it.taint(GARDENER, "NoSchedule"));
            let kubelets = Kubelets::new(machines.collect());
            // The network never comes up on one node.
            let kubelets = kubelets.then(s(7), "n-3", Deed::Fail("cni", s(3600)));
            let [scheduler, workload] = workload(4);
            let csi = Csi::new(vec![driver()]);
            with(kubelets, [scheduler, workload, Box::new(csi)])
        },
        |cluster| {
            gated(cluster, GARDENER, 4)?;
            put_on(cluster, GARDENER, 0)?;
            closed(cluster, GARDENER, &["n-3"])
        },
    ),
    Base::new(
        "rolling-update",
        "a rolling update under a continuous rule closes each node for a moment",
        s(80),
        |cluster, _| {
            place(
                cluster,
                rule("agent")
                    .continuous()
                    .waits_for(COMPONENTS_READY, "True")
                    .object(),
            );
            place(cluster, daemon_set("agent").critical().object());
            let operator = Operator::default().edits(s(30), daemon_set_key("agent"), version("2"));
            with(joining(4), [Box::new(operator)])
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            put_on(cluster, GATE, 8)?;
            says(cluster, COMPONENTS_READY, "True")?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "patient-rolling-update",
        "with a grace period the same closes none",
        s(80),
        |cluster, _| {
            let agent = rule("agent")
                .continuous()
                .waits_for(COMPONENTS_READY, "True");
            place(cluster, agent.with("gracePeriod", json!("30s")).object());
            place(cluster, daemon_set("agent").critical().object());
            let operator = Operator::default().edits(s(30), daemon_set_key("agent"), version("2"));
            with(joining(4), [Box::new(operator)])
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "surging-update",
        "a rolling update with surge closes none either",
        s(80),
        |cluster, _| {
            place(
                cluster,
                rule("agent")
                    .continuous()
                    .waits_for(COMPONENTS_READY, "True")
                    .object(),
            );
            place(cluster, daemon_set("agent").critical().surges().object());
            let operator = Operator::default().edits(s(30), daemon_set_key("agent"), version("2"));
            with(joining(3), [Box::new(operator)])
        },
        |cluster| {
            put_on(cluster, GATE, 3)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "unpublished",
        "nothing is published: nodes say nothing of their components",
        s(50),
        |cluster, _| {
            place(
                cluster,
                rule("agent")
                    .continuous()
                    .waits_for(COMPONENTS_READY, "True")
                    .object(),
            );
            place(cluster, daemon_set("agent").critical().object());
            let kubelets = joining(3).then(s(25), "n-1", Deed::Fail("agent", s(5)));
            let kubelets = kubelets.then(s(35), "n-2", Deed::Fail("agent", s(3600)));
            super::kubernetes(kubelets)
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            says(cluster, COMPONENTS_READY, "")?;
            closed(cluster, GATE, &["n-2"])
        },
    )
    .settings(unpublished),
    Base::new(
        "late-component",
        "a critical DaemonSet is added while nodes are open, and another one goes",
        s(60),
        |cluster, _| {
            place(
                cluster,
                rule("agent")
                    .continuous()
                    .waits_for(COMPONENTS_READY, "True")
                    .object(),
            );
            place(cluster, daemon_set("agent").critical().object());
            let slow = daemon_set("slow").critical().ready_after(s(4));
            let operator = Operator::default()
                .creates(s(30), slow.object())
                .deletes(s(45), daemon_set_key("agent"));
            with(joining(3), [Box::new(operator)])
        },
        |cluster| {
            put_on(cluster, GATE, 6)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "csi-driver",
        "a CSI driver registers late, vanishes on two nodes and returns on one",
        s(70),
        |cluster, _| {
            let csi = rule("csi").continuous();
            let csi = csi.waits_for("csidriver.nodegate.dev/csi.example.com", "True");
            place(cluster, csi.object());
            let csi = Csi::new(vec![driver()])
                .vanishes(s(35), "n-1", DRIVER, Some(s(20)))
                .vanishes(s(35), "n-2", DRIVER, None);
            with(joining(3), [Box::new(csi)])
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "csi-storage",
        "a CSI driver loses its storage on two nodes, which recovers on one; on a third one another driver does",
        s(70),
        |cluster, _| {
            let csi = rule("csi").continuous();
            let csi = csi.waits_for("csidriver.nodegate.dev/csi.example.com", "True");
            place(cluster, csi.object());
            let operator = Operator::default()
                .edits(
                    s(35),
                    csi_node("n-0"),
                    storage("other.example.com", &["StorageDegraded"]),
                )
                .edits(
                    s(35),
                    csi_node("n-1"),
                    storage(DRIVER, &["StorageUnreachable"]),
                )
                .edits(
                    s(35),
                    csi_node("n-2"),
                    storage(DRIVER, &["StorageDegraded"]),
                )
                .edits(s(50), csi_node("n-1"), storage(DRIVER, &[]));
            let csi = Csi::new(vec![driver()]);
            with(joining(3), [Box::new(csi), Box::new(operator)])
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "gpu",
        "nodes wait for a resource that a device plugin offers",
        s(50),
        |cluster, _| {
            let gpu = rule("gpu").waits_for("resource.nodegate.dev/nvidia.com/gpu", "True");
            place(cluster, gpu.object());
            let kubelets = joining(3)
                .then(s(20), "n-0", Deed::Offer("nvidia.com/gpu", "8"))
                .then(s(20), "n-1", Deed::Offer("nvidia.com/gpu", "0"))
                .then(s(30), "n-2", Deed::Offer("nvidia.com/gpu", "1"));
            super::kubernetes(kubelets)
        },
        |cluster| {
            put_on(cluster, GATE, 3)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "gpu-count",
        "nodes need as many of a resource as a label says, which comes late; one never has them, and one loses some again",
        s(80),
        |cluster, _| {
            let asks = json!([{
                "type": "resource.nodegate.dev/nvidia.com/gpu",
                "requiredStatus": "True",
                "minimumFromLabel": "nvidia.com/gpu.count",
            }]);
            let gpus = rule("gpus").continuous().with("conditions", asks);
            place(cluster, gpus.object());
            let count = json!({"nvidia.com/gpu.count": "8"});
            let operator = Operator::default()
                .labels(s(15), "n-0", &count)
                .labels(s(25), "n-1", &count)
                .labels(s(15), "n-2", &count);
            let offer = |gpus| Deed::Offer("nvidia.com/gpu", gpus);
            let kubelets = joining(3)
                .then(s(12), "", offer("7"))
                .then(s(20), "n-0", offer("8"))
                .then(s(20), "n-1", offer("8"))
                .then(s(50), "n-0", offer("7"));
            with(kubelets, [Box::new(operator)])
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &["n-0", "n-2"])
        },
    ),
    Base::new(
        "unreadable",
        "among good objects are some that cannot be read: what they are about is left as it is, and nothing else",
        s(60),
        |cluster, _| {
            place(
                cluster,
                rule("agent")
                    .continuous()
                    .waits_for(COMPONENTS_READY, "True")
                    .object(),
            );
            place(cluster, daemon_set("agent").critical().object());
            let labels = json!({"node.gardener.cloud/critical-component": "true"});
            let odd_pod = Key::namespaced(Kind::Pod, "kube-system", "odd");
            let odd = json!({"metadata": {"labels": labels}, "spec": {"nodeName": "n-1"}});
            let odd_set = json!({"spec": {"template": {"spec": {"nodeSelector": 5}}}});
            let good_set = json!({"spec": {"template": {"spec": {"nodeSelector": null}}}});
            let operator = Operator::default()
                .creates(s(20), (odd_pod.clone(), odd))
                .edits_status(s(20), odd_pod.clone(), &json!({"conditions": "odd"}))
                .edits(s(30), daemon_set_key("agent"), odd_set)
                .edits(s(40), daemon_set_key("agent"), good_set)
                .deletes(s(45), odd_pod);
            let kubelets = joining(3).then(s(33), "n-2", Deed::Fail("agent", s(3600)));
            with(kubelets, [Box::new(operator)])
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
];
