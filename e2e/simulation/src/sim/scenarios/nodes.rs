//! Nodes reboot, return under their names, leave, change labels, and join in crowds.

use serde_json::json;

use super::ends::End::{Gated, Held, PutOn};
use super::objects::{
    CILIUM, COMPONENTS_READY, DRIVER, DRIVER_REGISTERED, GATE, MAINTENANCE, READY, daemon_set, rule,
};
use super::{Base, LABELS_SETTLE, booting, joining, joining_as};
use crate::sim::actors::Order::{Say, SayGood};
use crate::sim::actors::{Csi, Deed, Kubelets, Operator, Reporter, Which};
use crate::sim::time::{ms, s};

/// Three nodes, of which one reboots.
fn rebooting() -> Kubelets {
    joining(3).then(s(30), "n-1", Deed::Reboot(s(10)))
}

pub(super) const ALL: &[Base] = &[
    Base::new(
        "regate: a node that reboots is gated again, until its condition is written anew",
        s(80),
        |it| {
            it.has(rule("network").regates())
                .nodes(rebooting())
                .acts(Reporter::new(READY))
        },
        &[PutOn(GATE, 4), Held(GATE, &[])],
    ),
    Base::new(
        "regate-components: a node that reboots waits for its critical pods again",
        s(100),
        |it| {
            it.has(rule("agent").waits_for(COMPONENTS_READY).regates())
                .has(daemon_set("agent").critical().ready_after(s(6)))
                .nodes(rebooting())
        },
        &[PutOn(GATE, 4), Held(GATE, &[])],
    )
    // Pods may be stale for a minute after the new boot was observed.
    .settles(s(120)),
    Base::new(
        "regate-late-pods: a node reboots, and its kubelet says nothing of its pods for a while: their word from before does not count",
        s(100),
        |it| {
            let kubelets = joining_as(3, |it| it.pods_after(s(9)));
            it.has(rule("agent").waits_for(COMPONENTS_READY).regates())
                .has(daemon_set("agent").critical())
                .nodes(kubelets.then(s(30), "n-1", Deed::Reboot(s(10))))
        },
        &[PutOn(GATE, 4), Held(GATE, &[])],
    )
    .settles(s(120)),
    Base::new(
        "regate-csi: a node reboots, and its CSI driver registers as it was before: it counts once its pod is Ready again",
        s(100),
        |it| {
            let plugin = daemon_set("plugin").critical().waits_for_driver(DRIVER);
            it.has(rule("csi").waits_for(DRIVER_REGISTERED).regates())
                .has(plugin.ready_after(s(6)))
                .nodes(rebooting())
                .acts(Csi::of(DRIVER, s(1), s(4)))
        },
        &[PutOn(GATE, 4), Held(GATE, &[])],
    )
    // A driver that registers as before may be stale for six minutes.
    .settles(s(420)),
    Base::new(
        "regate-maintenance: nodes turn bad, most of them in maintenance: they stay released, and once it ends they are gated until their condition is met",
        s(100),
        |it| {
            let maintenance = Reporter::of_problem(MAINTENANCE)
                .then(s(30), &["n-1", "n-2", "n-3", "n-4"], Say("True"))
                .then(s(60), &["n-1", "n-2", "n-4"], SayGood);
            let reporter = Reporter::new(READY)
                .then(s(40), &["n-0", "n-1", "n-2", "n-3"], Say("False"))
                .then(s(80), "n-1", SayGood);
            it.has(rule("network").nodegate("regateOn", json!(["Maintenance"])))
                .nodes(joining(5))
                .acts(maintenance)
                .acts(reporter)
        },
        // It stays in maintenance (n-3), or met its condition all the time (n-4).
        &[PutOn(GATE, 7), Held(GATE, &["n-2"])],
    ),
    Base::new(
        "re-registration-components: a node registers again under its name while the pods and the drivers of the old one are still there",
        s(100),
        |it| {
            it.has(rule("agent").waits_for(COMPONENTS_READY))
                .has(daemon_set("agent").critical().ready_after(s(4)))
                .nodes(joining(3).then(s(30), "n-1", Deed::Replace(s(2))))
        },
        &[Gated(GATE, 4), Held(GATE, &[])],
    ),
    Base::new(
        "re-registration-late-pods: a node registers again under its name, and its kubelet says nothing of the old one's pods for a while",
        s(110),
        |it| {
            let kubelets = joining_as(3, |it| it.pods_after(s(9)));
            it.has(rule("agent").waits_for(COMPONENTS_READY))
                .has(daemon_set("agent").critical())
                .nodes(kubelets.then(s(30), "n-1", Deed::Replace(ms(300))))
        },
        &[Gated(GATE, 4), Held(GATE, &[])],
    ),
    Base::new(
        "re-registration-csi: a node registers again under its name while the CSINode of the old one is still there",
        s(80),
        |it| {
            let kubelets = joining(3)
                .then(s(30), "n-1", Deed::Replace(ms(300)))
                .then(s(30), "n-2", Deed::Replace(ms(50)));
            it.has(rule("csi").waits_for(DRIVER_REGISTERED))
                .nodes(kubelets)
                .acts(Csi::of(DRIVER, s(4), s(9)))
        },
        &[Gated(GATE, 5), Held(GATE, &[])],
    ),
    Base::new(
        "re-registration-in-flight: nodes register again under their names while a write to the old ones may be under way",
        s(40),
        |it| {
            let mut kubelets = joining_as(8, |it| it.taint(CILIUM, "NoExecute"));
            for number in 0..8 {
                let at = s(5 + number) + ms(105);
                kubelets = kubelets.then(at, &format!("n-{number}"), Deed::Replace(ms(0)));
            }
            it.has(rule("cilium").remove_only().taint(CILIUM, "NoExecute"))
                .nodes(kubelets)
                .acts(Reporter::new(READY).first(ms(100), ms(101)))
        },
        &[Gated(CILIUM, 16), Held(CILIUM, &[])],
    ),
    Base::new(
        "labels: labels change, and with them which rules select a node",
        s(60),
        |it| {
            let pool = |name: &str| json!({"pool": name});
            let operator = Operator::default()
                .labels(s(9), "n-0", &pool("a"))
                .labels(s(9), "n-1", &pool("a"))
                .labels(s(30), "n-1", &pool("b"))
                .labels(s(30), "n-2", &pool("a"));
            it.has(rule("network").on("pool", "a").continuous())
                .nodes(joining(4))
                .acts(operator)
                .acts(Reporter::new(READY).ails("n-1").ails("n-2"))
        },
        &[Held(GATE, &["n-2"])],
    )
    .settles(LABELS_SETTLE),
    Base::new(
        "burst: fifty nodes join at once, and somebody's pods wait for them",
        s(60),
        |it| {
            it.has(rule("network"))
                .nodes(Kubelets::new(booting(50, s(5), ms(50))))
                .workload(20)
                .acts(Reporter::new(READY).first(s(3), s(15)))
        },
        &[Gated(GATE, 50), PutOn(GATE, 50), Held(GATE, &[])],
    ),
    Base::new(
        "busy-leader: of two instances one leads, and has something to do all the time",
        s(70),
        |it| {
            let mut reporter = Reporter::new(READY);
            for round in 0..9 {
                let at = s(16 + 6 * round);
                reporter = reporter
                    .then(at, Which::All, Say("False"))
                    .then(at + s(3), Which::All, SayGood);
            }
            it.has(rule("network").continuous()).nodes(joining(1)).acts(reporter)
        },
        &[Held(GATE, &[])],
    )
    .instances(2),
];
