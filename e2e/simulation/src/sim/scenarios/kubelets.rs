//! Behaviour first observed on real kubelets: a driver that leaves the `CSINode` and returns when its plugin starts, pods that
//! are briefly not Ready, a network that is removed, a kubelet that freezes, resources that a reboot takes away.

use serde_json::json;

use super::ends::End::{self, Gated, Held, PutOn};
use super::objects::{
    COMPONENTS_READY, DRIVER, DRIVER_REGISTERED, DaemonSet, GATE, GPU, HAS_GPU, daemon_set, rule,
};
use super::{Base, joining};
use crate::sim::actors::{Csi, Deed, Lifecycle};
use crate::sim::time::{ms, s};

/// The key of rules with a grace period.
const PATIENT: &str = "readiness.k8s.io/patient";

/// Three nodes have joined, one was gated again, and none is held.
const ONE_GATED_AGAIN: &[End] = &[PutOn(GATE, 4), Held(GATE, &[])];

/// A plugin whose pods register the driver.
fn plugin() -> DaemonSet {
    let plugin = daemon_set("plugin").critical().waits_for_driver(DRIVER);
    plugin.ready_after(s(4))
}

fn registers() -> Csi {
    Csi::by_pods(DRIVER, "plugin")
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "plugin-reboot-components: a node reboots, and its kubelet takes the driver out and puts it back once the plugin's pod is Ready",
        s(100),
        |it| {
            it.has(rule("agent").waits_for(COMPONENTS_READY).regates())
                .has(daemon_set("agent").critical())
                .has(plugin())
                .nodes(joining(3).then(s(30), "n-1", Deed::Reboot(s(10))))
                .acts(registers())
        },
        ONE_GATED_AGAIN,
    )
    .settles(s(420)),
    Base::new(
        "plugin-restart: a plugin starts again under continuous rules: the driver goes for a moment, and with a grace period no node is gated",
        s(90),
        |it| {
            let patient = rule("patient").continuous().waits_for(DRIVER_REGISTERED);
            let patient = patient.nodegate("gracePeriod", json!("30s"));
            let kubelets = joining(3)
                .then(s(30), "n-1", Deed::Fail("plugin", s(1)))
                .then(s(50), "n-2", Deed::Fail("plugin", ms(200)));
            it.has(rule("csi").continuous().waits_for(DRIVER_REGISTERED))
                .has(patient.taint(PATIENT, "NoSchedule"))
                .has(plugin())
                .nodes(kubelets)
                .acts(registers())
        },
        &[Gated(GATE, 3), PutOn(PATIENT, 3), Held(PATIENT, &[]), Held(GATE, &[])],
    ),
    Base::new(
        "frozen: a kubelet freezes until its node and its pods have been given up, and thaws",
        s(120),
        |it| {
            let kubelets = joining(3).then(s(20), "n-1", Deed::Freeze(s(70)));
            it.has(rule("ready").continuous().waits_for_all(&["Ready", COMPONENTS_READY]))
                .has(daemon_set("agent").critical())
                .nodes_under(kubelets, Lifecycle::default().loses(s(70), "n-1"))
        },
        ONE_GATED_AGAIN,
    ),
    Base::new(
        "regate-gpu: a node reboots and has no resource until its device plugin has registered again",
        s(80),
        |it| {
            let kubelets = joining(2)
                .then(s(15), "", Deed::Offer(GPU, "8"))
                .then(s(30), "n-1", Deed::Reboot(s(10)));
            it.has(rule("gpu").waits_for(HAS_GPU).regates()).nodes(kubelets)
        },
        &[Gated(GATE, 2), PutOn(GATE, 3), Held(GATE, &[])],
    ),
];
