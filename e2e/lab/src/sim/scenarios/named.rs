//! `DaemonSet`s that rules wait for by name.

use serde_json::json;

use super::ends::{closed, gated, put_on, says};
use super::objects::{
    GATE, check_run, daemon_set, daemon_set_key, place, rule, rule_key, slice, version,
};
use super::{Base, booting, joining, kubernetes, with, workload};
use crate::sim::actors::{Deed, Kubelets, Operator};
use crate::sim::time::{ms, s};
use crate::{Key, Kind};

/// The condition that the `DaemonSet` `kube-system/agent` is ready.
const AGENT: &str = "daemonset.nodegate.dev/kube-system.agent";
/// The taint of a second rule.
const OTHER_GATE: &str = "readiness.k8s.io/other";
/// The condition that the newest run of the check `nccl` in `kube-system` has succeeded.
const CHECK: &str = "check.nodegate.dev/kube-system.nccl";
const PROXY: &str = "daemonset.nodegate.dev/kube-system.proxy";

pub(super) const ALL: &[Base] = &[
    Base::new(
        "named",
        "nodes wait for a DaemonSet by its name alone; on one it never gets ready, for one it is not meant",
        s(60),
        |cluster, _| {
            place(cluster, rule("agent").waits_for(AGENT, "True").object());
            let agent = daemon_set("agent").ready_after(s(5)).only_on("agent", "yes");
            place(cluster, agent.object());
            let mut machines = booting(4, s(5), s(1));
            let bare = machines.remove(3);
            let labelled = machines.into_iter().map(|it| it.label("agent", "yes"));
            let kubelets = Kubelets::new(labelled.chain([bare]).collect());
            let kubelets = kubelets.then(s(6), "n-1", Deed::Fail("agent", s(3600)));
            with(kubelets, workload(4))
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            closed(cluster, GATE, &["n-1"])
        },
    ),
    Base::new(
        "named-rolling-update",
        "a rolling update under a continuous rule that names the DaemonSet closes each node for a moment",
        s(80),
        |cluster, _| {
            let agent = rule("agent").continuous().waits_for(AGENT, "True");
            place(cluster, agent.object());
            place(cluster, daemon_set("agent").object());
            let operator = Operator::default().edits(s(30), daemon_set_key("agent"), version("2"));
            with(joining(4), [Box::new(operator)])
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            put_on(cluster, GATE, 8)?;
            says(cluster, AGENT, "True")?;
            closed(cluster, GATE, &[])
        },
    )
    .instances(2),
    Base::new(
        "named-revision",
        "a rolling update under a bootstrap-only rule that goes by revisions closes each node once more; another rule, which does not, closes none",
        s(80),
        |cluster, _| {
            let agent = rule("agent").waits_for(AGENT, "True");
            place(cluster, agent.with("regateOnRevision", json!(true)).object());
            let other = rule("other").waits_for(AGENT, "True");
            place(cluster, other.taint(OTHER_GATE, "NoSchedule").object());
            place(cluster, daemon_set("agent").object());
            let operator = Operator::default().edits(s(30), daemon_set_key("agent"), version("2"));
            with(joining(4), [Box::new(operator)])
        },
        |cluster| {
            put_on(cluster, GATE, 8)?;
            put_on(cluster, OTHER_GATE, 4)?;
            closed(cluster, GATE, &[])?;
            closed(cluster, OTHER_GATE, &[])
        },
    ),
    Base::new(
        "named-surging-update",
        "a rolling update with surge closes none",
        s(80),
        |cluster, _| {
            let agent = rule("agent").continuous().waits_for(AGENT, "True");
            place(cluster, agent.object());
            place(cluster, daemon_set("agent").surges().object());
            let operator = Operator::default().edits(s(30), daemon_set_key("agent"), version("2"));
            with(joining(3), [Box::new(operator)])
        },
        |cluster| {
            put_on(cluster, GATE, 3)?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "named-another-selector",
        "a DaemonSet is deleted and created again with another selector, which others' pods match too",
        s(80),
        |cluster, _| {
            let agent = rule("agent").continuous().waits_for(AGENT, "True");
            place(cluster, agent.object());
            place(cluster, daemon_set("agent").object());
            place(cluster, daemon_set("other").selects("shared").object());
            let again = daemon_set("agent").selects("shared").ready_after(s(3));
            let operator = Operator::default()
                .deletes(s(30), daemon_set_key("agent"))
                .creates(s(32), again.object());
            let kubelets = joining(3).then(s(50), "n-2", Deed::Fail("shared", s(3600)));
            with(kubelets, [Box::new(operator)])
        },
        |cluster| {
            put_on(cluster, GATE, 7)?;
            closed(cluster, GATE, &["n-2"])
        },
    ),
    Base::new(
        "named-replaced-at-once",
        "a DaemonSet is created again under its name as soon as it is gone, now and then with another selector",
        s(90),
        |cluster, _| {
            let agent = rule("agent").continuous().waits_for(AGENT, "True");
            place(cluster, agent.object());
            place(cluster, daemon_set("agent").object());
            let operator = Operator::default()
                .deletes(s(25), daemon_set_key("agent"))
                .creates(s(25), daemon_set("agent").selects("second").object())
                .deletes(s(40), daemon_set_key("agent"))
                .creates(s(40) + ms(5), daemon_set("agent").selects("second").object())
                .deletes(s(55), daemon_set_key("agent"))
                .creates(s(55) + ms(50), daemon_set("agent").object());
            with(joining(3), [Box::new(operator)])
        },
        |cluster| {
            says(cluster, AGENT, "True")?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "named-rule-re-created",
        "a rule that names a DaemonSet is deleted and created again, while another one goes on to name it",
        s(80),
        |cluster, _| {
            let first = || rule("first").continuous().waits_for(AGENT, "True");
            place(cluster, first().object());
            let second = rule("second").waits_for(AGENT, "True");
            let second = second.taint("readiness.k8s.io/second", "NoSchedule");
            place(cluster, second.object());
            place(cluster, daemon_set("agent").object());
            let operator = Operator::default()
                .deletes(s(25), rule_key("first"))
                .creates(s(30), first().object())
                .deletes(s(45), rule_key("second"))
                .deletes(s(46), rule_key("first"))
                .creates(s(50), first().object());
            let kubelets = joining(3).then(s(48), "n-1", Deed::Fail("agent", s(3600)));
            with(kubelets, [Box::new(operator)])
        },
        |cluster| {
            closed(cluster, GATE, &["n-1"])?;
            closed(cluster, "readiness.k8s.io/second", &[])
        },
    ),
    Base::new(
        "named-late",
        "a rule names two DaemonSets, of which one comes late, and another never",
        s(60),
        |cluster, _| {
            let late = rule("late").continuous();
            let late = late.with(
                "conditions",
                json!([
                    {"type": AGENT, "requiredStatus": "True"},
                    {"type": PROXY, "requiredStatus": "True"},
                ]),
            );
            place(cluster, late.object());
            let never = rule("never").taint("readiness.k8s.io/never", "NoSchedule");
            let never = never.waits_for("daemonset.nodegate.dev/kube-system.no-such.thing", "True");
            place(cluster, never.object());
            place(cluster, daemon_set("agent").object());
            let proxy = daemon_set("proxy").ready_after(s(2));
            let operator = Operator::default().creates(s(30), proxy.object());
            with(joining(3), [Box::new(operator)])
        },
        |cluster| {
            gated(cluster, GATE, 3)?;
            closed(cluster, GATE, &[])?;
            closed(cluster, "readiness.k8s.io/never", &["n-0", "n-1", "n-2"])
        },
    ),
    Base::new(
        "named-deleted",
        "a DaemonSet is deleted under a rule with a guard and a grace period, and comes back",
        s(150),
        |cluster, _| {
            let agent = rule("agent").continuous().waits_for(AGENT, "True");
            let agent = agent.with("gracePeriod", json!("5s"));
            place(cluster, agent.with("disruption", json!({})).object());
            place(cluster, daemon_set("agent").object());
            let operator = Operator::default()
                .deletes(s(40), daemon_set_key("agent"))
                .creates(s(100), daemon_set("agent").object());
            with(joining(6), [Box::new(operator)])
        },
        |cluster| {
            says(cluster, AGENT, "True")?;
            closed(cluster, GATE, &[])
        },
    ),
    Base::new(
        "named-regate",
        "a node that reboots waits for the pod of the DaemonSet again",
        s(100),
        |cluster, _| {
            let again = rule("agent").waits_for(AGENT, "True");
            place(cluster, again.with("regateOnReboot", json!(true)).object());
            place(cluster, daemon_set("agent").ready_after(s(6)).object());
            kubernetes(joining(3).then(s(30), "n-1", Deed::Reboot(s(10))))
        },
        |cluster| {
            put_on(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    )
    // Pods may be stale for a minute after the new boot was observed.
    .settles(s(120)),
    Base::new(
        "named-re-registration",
        "a node registers again under its name while the pod of the old one is still there",
        s(100),
        |cluster, _| {
            place(cluster, rule("agent").waits_for(AGENT, "True").object());
            place(cluster, daemon_set("agent").object());
            let machines = booting(3, s(5), s(1)).into_iter();
            let machines = machines.map(|machine| machine.pods_after(s(9))).collect();
            let kubelets = Kubelets::new(machines);
            kubernetes(kubelets.then(s(30), "n-1", Deed::Replace(s(1))))
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            closed(cluster, GATE, &[])
        },
    )
    .settles(s(120)),
    Base::new(
        "check",
        "nodes wait for a run of a check: one succeeds, one fails and is tried again, one fails for good, one never comes",
        s(60),
        |cluster, _| {
            place(cluster, rule("check").waits_for(CHECK, "True").object());
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
            with(joining(4), [Box::new(operator)])
        },
        |cluster| {
            gated(cluster, GATE, 4)?;
            closed(cluster, GATE, &["n-2", "n-3"])
        },
    ),
    Base::new(
        "all-daemon-sets",
        "nodes wait for every DaemonSet: one that comes late, one for other nodes, one that is to be ignored",
        s(70),
        |cluster, _| {
            let all = rule("all").continuous();
            place(cluster, all.waits_for("daemonsets.nodegate.dev/all", "True").object());
            place(cluster, daemon_set("agent").object());
            place(cluster, daemon_set("elsewhere").only_on("gpu", "yes").object());
            let (key, mut ignored) = daemon_set("ignored").ready_after(s(3600)).object();
            ignored["metadata"]["labels"]["nodegate.dev/ignore"] = json!("true");
            place(cluster, (key, ignored));
            let late = daemon_set("late").ready_after(s(4));
            let operator = Operator::default().creates(s(30), late.object());
            let kubelets = joining(3).then(s(50), "n-1", Deed::Fail("late", s(3600)));
            with(kubelets, [Box::new(operator)])
        },
        |cluster| closed(cluster, GATE, &["n-1"]),
    ),
    Base::new(
        "devices",
        "nodes wait for a driver's devices: all slices of a pool, of its newest generation, without a taint",
        s(70),
        |cluster, _| {
            let devices = rule("devices").continuous();
            let kind = "resourceslice.nodegate.dev/gpu.example.com";
            place(cluster, devices.waits_for(kind, "True").object());
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
            with(joining(4), [Box::new(operator)])
        },
        |cluster| closed(cluster, GATE, &["n-0", "n-2", "n-3"]),
    ),
];
