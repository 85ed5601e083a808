//! Behaviour first observed on real kubelets: a driver that leaves the `CSINode` and returns when its plugin starts, pods that
//! are briefly not Ready, a network that is removed, a kubelet that freezes, resources that a reboot takes away.

use serde_json::json;

use super::ends::{Checked, closed, gated, put_on};
use super::objects::{COMPONENTS_READY, DRIVER, GATE, daemon_set, place, rule};
use super::{Base, joining, kubernetes, with};
use crate::sim::Cluster;
use crate::sim::actors::{Csi, DaemonSets, Deed, Garbage, Lifecycle};
use crate::sim::time::{ms, s};

const DRIVER_REGISTERED: &str = "csidriver.nodegate.dev/csi.example.com";
/// The key of rules with a grace period.
const PATIENT: &str = "readiness.k8s.io/patient";

/// A plugin whose pods register the driver.
fn place_plugin(cluster: &mut Cluster) {
    let plugin = daemon_set("plugin").critical().waits_for_driver(DRIVER);
    place(cluster, plugin.ready_after(s(4)).object());
}

fn plugin() -> Csi {
    Csi::new(Vec::new()).by_pods(DRIVER, "plugin")
}

/// Three nodes have joined, one was closed again, and all are open.
fn one_closed_again(cluster: &Cluster) -> Checked {
    put_on(cluster, GATE, 4)?;
    closed(cluster, GATE, &[])
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "plugin-reboot",
        "a node reboots, and its kubelet takes the driver out and puts it back once the plugin's pod is Ready",
        s(100),
        |cluster, _| {
            let csi = rule("csi").waits_for(DRIVER_REGISTERED, "True");
            place(cluster, csi.with("regateOnReboot", json!(true)).object());
            place_plugin(cluster);
            let kubelets = joining(3).then(s(30), "n-1", Deed::Reboot(s(10)));
            with(kubelets, [Box::new(plugin())])
        },
        one_closed_again,
    )
    .settles(s(420)),
    Base::new(
        "plugin-reboot-components",
        "the same, where the driver is one of all critical components",
        s(100),
        |cluster, _| {
            let again = rule("agent").waits_for(COMPONENTS_READY, "True");
            place(cluster, again.with("regateOnReboot", json!(true)).object());
            place(cluster, daemon_set("agent").critical().object());
            place_plugin(cluster);
            let kubelets = joining(3).then(s(30), "n-1", Deed::Reboot(s(10)));
            with(kubelets, [Box::new(plugin())])
        },
        one_closed_again,
    )
    .settles(s(420)),
    Base::new(
        "plugin-restart",
        "a plugin starts again under continuous rules: the driver goes for a moment, and with a grace period no node is closed",
        s(90),
        |cluster, _| {
            let csi = rule("csi").continuous();
            let csi = csi.waits_for(DRIVER_REGISTERED, "True");
            place(cluster, csi.object());
            let patient = rule("patient").continuous();
            let patient = patient.waits_for(DRIVER_REGISTERED, "True");
            let patient = patient.with("gracePeriod", json!("30s"));
            place(cluster, patient.taint(PATIENT, "NoSchedule").object());
            place_plugin(cluster);
            let kubelets = joining(3)
                .then(s(30), "n-1", Deed::Fail("plugin", s(1)))
                .then(s(50), "n-2", Deed::Fail("plugin", ms(200)));
            with(kubelets, [Box::new(plugin())])
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            put_on(cluster, PATIENT, 3)?;
            closed(cluster, PATIENT, &[])?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "blink",
        "pods are not Ready for a blink, as when a kubelet starts again: a grace period is above that",
        s(90),
        |cluster, _| {
            let agent = rule("agent").continuous();
            let agent = agent.waits_for(COMPONENTS_READY, "True");
            place(cluster, agent.object());
            let patient = rule("patient").continuous();
            let patient = patient.waits_for(COMPONENTS_READY, "True");
            let patient = patient.with("gracePeriod", json!("5s"));
            place(cluster, patient.taint(PATIENT, "NoSchedule").object());
            place(cluster, daemon_set("agent").critical().object());
            let blink = || Deed::Fail("agent", ms(50));
            let kubelets = joining(3)
                .then(s(30), "n-1", blink())
                .then(s(40), "", blink())
                .then(s(40) + ms(120), "n-2", blink());
            kubernetes(kubelets)
        },
        |cluster| {
            put_on(cluster, PATIENT, 3)?;
            closed(cluster, PATIENT, &[])?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "no-network",
        "the network's configuration goes, and the kubelet says not Ready until it is back",
        s(90),
        |cluster, _| {
            let ready = rule("ready").continuous().waits_for("Ready", "True");
            place(cluster, ready.object());
            let kubelets = joining(3)
                .then(s(30), "n-1", Deed::Unready(s(12)))
                .then(s(40), "n-2", Deed::Unready(s(3600)));
            kubernetes(kubelets)
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "frozen",
        "a kubelet freezes until its node and its pods have been given up, and thaws",
        s(120),
        |cluster, _| {
            let ready = rule("ready").continuous();
            let conditions = json!([
                {"type": "Ready", "requiredStatus": "True"},
                {"type": COMPONENTS_READY, "requiredStatus": "True"},
            ]);
            place(cluster, ready.with("conditions", conditions).object());
            place(cluster, daemon_set("agent").critical().object());
            let kubelets = joining(3).then(s(20), "n-1", Deed::Freeze(s(70)));
            vec![
                Box::new(kubelets),
                Box::new(DaemonSets::default()),
                Box::new(Lifecycle::default().loses(s(70), "n-1")),
                Box::new(Garbage::default()),
            ]
        },
        one_closed_again,
    ),
    Base::new(
        "regate-gpu",
        "a node reboots and has no resource until its device plugin has registered again",
        s(80),
        |cluster, _| {
            let gpu = rule("gpu").waits_for("resource.nodegate.dev/nvidia.com/gpu", "True");
            place(cluster, gpu.with("regateOnReboot", json!(true)).object());
            let offer = || Deed::Offer("nvidia.com/gpu", "8");
            let kubelets = joining(2)
                .then(s(15), "", offer())
                .then(s(30), "n-1", Deed::Reboot(s(10)));
            kubernetes(kubelets)
        },
        |cluster| {
            gated(cluster, GATE, 2)?;
            put_on(cluster, GATE, 3)?;
            closed(cluster, GATE, &[])
        },
    ),
];
