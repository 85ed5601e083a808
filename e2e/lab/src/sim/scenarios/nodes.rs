//! Nodes reboot, return under their names, leave, change labels, and join in crowds.

use serde_json::json;

use super::ends::{closed, gated, put_on, there};
use super::objects::{COMPONENTS_READY, DRIVER, GATE, READY, daemon_set, place, rule};
use super::{Base, booting, joining, with, workload};
use crate::sim::actors::{
    Csi, Deed, Driver, Kubelets, Lifecycle, Operator, Order, Reporter, Which,
};
use crate::sim::time::{ms, s};

const CILIUM: &str = "node.cilium.io/agent-not-ready";

pub(super) const ALL: &[Base] = &[
    Base::new(
        "reboot",
        "a node whose bootstrap is completed reboots and stays open",
        s(80),
        |cluster, _| {
            place(cluster, rule("network").object());
            let kubelets = joining(3).then(s(30), "n-1", Deed::Reboot(s(10)));
            with(kubelets, [Box::new(Reporter::new(READY))])
        },
        |cluster| {
            put_on(cluster, GATE, 3)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "regate",
        "a node that reboots is closed again, until its condition is written anew",
        s(80),
        |cluster, _| {
            place(
                cluster,
                rule("network").with("regateOnReboot", json!(true)).object(),
            );
            let kubelets = joining(3).then(s(30), "n-1", Deed::Reboot(s(10)));
            with(kubelets, [Box::new(Reporter::new(READY))])
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "regate-components",
        "a node that reboots waits for its critical pods again",
        s(100),
        |cluster, _| {
            let again = rule("agent").waits_for(COMPONENTS_READY, "True");
            place(cluster, again.with("regateOnReboot", json!(true)).object());
            place(
                cluster,
                daemon_set("agent").critical().ready_after(s(6)).object(),
            );
            super::kubernetes(joining(3).then(s(30), "n-1", Deed::Reboot(s(10))))
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    )
    // Pods may be stale for a minute after the new boot was observed.
    .settles(s(120)),
    Base::new(
        "regate-late-pods",
        "a node reboots, and its kubelet says nothing of its pods for a while: their word from before does not count",
        s(100),
        |cluster, _| {
            let again = rule("agent").waits_for(COMPONENTS_READY, "True");
            place(cluster, again.with("regateOnReboot", json!(true)).object());
            place(cluster, daemon_set("agent").critical().object());
            let machines = booting(3, s(5), s(1)).into_iter();
            let machines = machines.map(|machine| machine.pods_after(s(9))).collect();
            super::kubernetes(Kubelets::new(machines).then(s(30), "n-1", Deed::Reboot(s(10))))
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    )
    .settles(s(120)),
    Base::new(
        "regate-csi",
        "a node reboots, and its CSI driver registers as it was before: it counts once its pod is Ready again",
        s(100),
        |cluster, _| {
            let csi = rule("csi").waits_for("csidriver.nodegate.dev/csi.example.com", "True");
            place(cluster, csi.with("regateOnReboot", json!(true)).object());
            let plugin = daemon_set("plugin").critical().waits_for_driver(DRIVER);
            place(cluster, plugin.ready_after(s(6)).object());
            let driver = Driver {
                name: DRIVER,
                after: (s(1), s(4)),
            };
            let kubelets = joining(3).then(s(30), "n-1", Deed::Reboot(s(10)));
            with(kubelets, [Box::new(Csi::new(vec![driver]))])
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    )
    // A driver that registers as before may be stale for six minutes.
    .settles(s(420)),
    Base::new(
        "re-registration",
        "a node is deleted and registers again under its name: it is another one",
        s(80),
        |cluster, _| {
            place(cluster, rule("network").object());
            let kubelets = joining(3).then(s(30), "n-1", Deed::Replace(s(10))).then(
                s(30),
                "n-2",
                Deed::Replace(s(1)),
            );
            with(kubelets, [Box::new(Reporter::new(READY))])
        },
        |cluster| {
            gated(cluster, GATE, 5)?;
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "re-registration-components",
        "a node registers again under its name while the pods and the drivers of the old one are still there",
        s(100),
        |cluster, _| {
            place(
                cluster,
                rule("agent").waits_for(COMPONENTS_READY, "True").object(),
            );
            place(
                cluster,
                daemon_set("agent").critical().ready_after(s(4)).object(),
            );
            super::kubernetes(joining(3).then(s(30), "n-1", Deed::Replace(s(2))))
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "re-registration-late-pods",
        "a node registers again under its name, and its kubelet says nothing of the old one's pods for a while",
        s(110),
        |cluster, _| {
            place(
                cluster,
                rule("agent").waits_for(COMPONENTS_READY, "True").object(),
            );
            place(cluster, daemon_set("agent").critical().object());
            let machines = booting(3, s(5), s(1)).into_iter();
            let machines = machines.map(|machine| machine.pods_after(s(9))).collect();
            super::kubernetes(Kubelets::new(machines).then(s(30), "n-1", Deed::Replace(ms(300))))
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "re-registration-csi",
        "a node registers again under its name while the CSINode of the old one is still there",
        s(80),
        |cluster, _| {
            let csi = rule("csi").waits_for("csidriver.nodegate.dev/csi.example.com", "True");
            place(cluster, csi.object());
            let driver = Driver {
                name: DRIVER,
                after: (s(4), s(9)),
            };
            let kubelets = joining(3)
                .then(s(30), "n-1", Deed::Replace(ms(300)))
                .then(s(30), "n-2", Deed::Replace(ms(50)));
            with(kubelets, [Box::new(Csi::new(vec![driver]))])
        },
        |cluster| {
            gated(cluster, GATE, 5)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "re-registration-in-flight",
        "nodes register again under their names while a write to the old ones may be under way",
        s(40),
        |cluster, _| {
            let cilium = rule("cilium").remove_only().taint(CILIUM, "NoExecute");
            place(cluster, cilium.object());
            let machines = booting(8, s(5), s(1)).into_iter();
            let machines = machines.map(|machine| machine.taint(CILIUM, "NoExecute"));
            let mut kubelets = Kubelets::new(machines.collect());
            for (number, name) in (0..).zip(["n-0", "n-1", "n-2", "n-3", "n-4", "n-5", "n-6", "n-7"]) {
                let at = s(5 + number) + ms(105);
                kubelets = kubelets.then(at, name, Deed::Replace(ms(0)));
            }
            let reporter = Reporter::new(READY).first(ms(100), ms(101));
            with(kubelets, [Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, CILIUM, 16)?;
            closed(cluster, CILIUM, &[])
        },
    ),
    Base::new(
        "deleted-while-closed",
        "a node goes while it is closed",
        s(40),
        |cluster, _| {
            place(cluster, rule("network").object());
            let kubelets = joining(3).then(s(20), "n-1", Deed::Leave);
            let reporter = Reporter::new(READY).ails("n-1");
            with(kubelets, [Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            there(cluster, &["n-0", "n-2"])?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "lost",
        "a kubelet dies, and its node is given up after a while",
        s(90),
        |cluster, _| {
            let rule = rule("alive").continuous().waits_for("Ready", "True");
            place(cluster, rule.object());
            let kubelets = joining(3).then(s(20), "n-1", Deed::Die);
            vec![
                Box::new(kubelets),
                Box::new(Lifecycle::default().loses(s(70), "n-1")),
            ]
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "labels",
        "labels change, and with them which rules select a node",
        s(60),
        |cluster, _| {
            place(
                cluster,
                rule("network").on("pool", "a").continuous().object(),
            );
            let pool = |name: &str| json!({"pool": name});
            let operator = Operator::default()
                .labels(s(9), "n-0", &pool("a"))
                .labels(s(9), "n-1", &pool("a"))
                .labels(s(30), "n-1", &pool("b"))
                .labels(s(30), "n-2", &pool("a"));
            let reporter = Reporter::new(READY).ails("n-1").ails("n-2");
            with(joining(4), [Box::new(operator), Box::new(reporter)])
        },
        |cluster| closed(cluster, GATE, &["n-2"]),
    ),
    Base::new(
        "burst",
        "fifty nodes join at once, and somebody's pods wait for them",
        s(60),
        |cluster, _| {
            place(cluster, rule("network").object());
            let [scheduler, workload] = workload(20);
            let reporter = Reporter::new(READY).first(s(3), s(15));
            let kubelets = Kubelets::new(booting(50, s(5), ms(50)));
            with(kubelets, [scheduler, workload, Box::new(reporter)])
        },
        |cluster| {
            gated(cluster, GATE, 50)?;
            put_on(cluster, GATE, 50)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "busy-leader",
        "of two instances one leads, and has something to do all the time",
        s(70),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let mut reporter = Reporter::new(READY);
            for round in 0..9 {
                let at = s(16 + 6 * round);
                reporter = reporter
                    .then(at, Which::All, Order::Say("False"))
                    .then(at + s(3), Which::All, Order::SayGood);
            }
            with(joining(1), [Box::new(reporter)])
        },
        |cluster| closed(cluster, GATE, &[]),
    )
    .instances(2),
    Base::new(
        "two-instances",
        "of two instances one leads",
        s(40),
        |cluster, _| {
            place(cluster, rule("network").continuous().object());
            let reporter = Reporter::new(READY).ails("n-4");
            with(joining(5), [Box::new(reporter)])
        },
        |cluster| {
            put_on(cluster, GATE, 5)?;
            closed(cluster, GATE, &["n-4"])
        },
    )
    .instances(2),
];
