//! What stands behind a rule's conditions.

use serde_json::json;

use super::{Around, Backing, Check, Finding, left_out_on};
use crate::condition::Component;
use crate::testing::{Builder, GATE, NodeBuilder, World, at, daemon_set, node, rule, world};

const AGENT: &str = "daemonset.nodegate.dev/tools.agent";
const DRIVER: &str = "csidriver.nodegate.dev/ebs.csi.aws.com";

fn backing(world: &World, registered: &[&str]) -> Backing {
    let spec = world.rules()[0].spec.as_ref().unwrap();
    let nodes = vec![&world.node];
    let drivers = registered.to_vec();
    let around = Around::watched("r-uid", spec, world.cluster(), Some(nodes), Some(drivers));
    Backing::of("r", spec, &around)
}

/// Which conditions are met on no node, as reason and message.
fn unmade(world: &World, registered: &[&str]) -> Vec<(&'static str, String)> {
    let made = |it: Finding| {
        let published = it.check.published.first();
        let (_, reason) = *published.filter(|it| it.0 == "ConditionsNotMade")?;
        Some((reason, it.message))
    };
    let findings = backing(world, registered).findings.into_iter();
    findings.filter_map(made).collect()
}

/// The passed-over `DaemonSet`s, with the check that says why.
fn passed_over(world: &World) -> Vec<(&'static str, String)> {
    let findings = backing(world, &[]).findings.into_iter();
    let found = findings.filter(|it| it.object.starts_with("daemonset/"));
    found.map(|it| (it.check.id, it.object)).collect()
}

#[test]
fn a_condition_that_is_met_on_no_node_is_named() {
    let here = || node("n");
    let elsewhere = || node("n").label("kubernetes.io/os", "windows");
    let reports = |kind: &str| here().condition(kind, "False");
    let of = |node: NodeBuilder, kind: &str, required: &str| {
        let asks = rule("r").spec(&format!(
            "conditions: [{{type: {kind}, requiredStatus: '{required}'}}]"
        ));
        let linux = asks.selects("kubernetes.io/os", "linux");
        world(&node).naming("tools/agent").rule(&linux)
    };
    #[rustfmt::skip]
    let cases = [
        (AGENT, "True", here(), &[][..], Some(("NoSuchDaemonSet", "no DaemonSet tools/agent today"))),
        (AGENT, "True", elsewhere(), &[], Some(("NoSuchDaemonSet", "no DaemonSet tools/agent today"))),
        (AGENT, "False", here(), &[], None),
        (DRIVER, "True", here(), &[], Some(("NoSuchCSIDriver", "driver ebs.csi.aws.com today"))),
        (DRIVER, "True", here(), &["ebs.csi.aws.com"], None),
        (DRIVER, "True", elsewhere(), &[], None),
        (
            "csidriver.nodegate.dev/",
            "True",
            here(),
            &[],
            Some((
                "CountedAsAbsent",
                "nothing makes conditions of type csidriver.nodegate.dev/,",
            )),
        ),
        (
            "resource.nodegate.dev/",
            "True",
            here(),
            &[],
            Some((
                "CountedAsAbsent",
                "nothing makes conditions of type resource.nodegate.dev/,",
            )),
        ),
        ("daemon-sets.nodegate.dev/x", "True", here(), &[], Some(("CountedAsAbsent", "no node reports daemon-sets.nodegate.dev/x,"))),
        ("daemon-sets.nodegate.dev/x", "True", reports("daemon-sets.nodegate.dev/x"), &[], None),
        ("daemon-sets.nodegate.dev/x", "True", elsewhere().condition("daemon-sets.nodegate.dev/x", "False"), &[], None),
        ("nodegate.dev/x", "True", elsewhere(), &[], Some(("CountedAsAbsent", "no node reports nodegate.dev/x,"))),
        ("mynodegate.dev/x", "True", here(), &[], None),
        ("example.com/Ready", "True", here(), &[], None),
        ("resource.nodegate.dev/nvidia.com/gpu", "True", here(), &[], None),
    ];
    for (kind, required, node, registered, expected) in cases {
        let found = unmade(&of(node, kind, required), registered);
        let is_expected = match (&found[..], expected) {
            ([(reason, message)], Some((why, words))) => *reason == why && message.contains(words),
            (found, expected) => found.is_empty() && expected.is_none(),
        };
        assert!(is_expected, "{kind} {required}: {found:?}");
    }
    let world = of(here(), AGENT, "True");
    let unseen = unmade(&world.clone().before_it_is_seen(), &[]);
    assert!(unseen.is_empty(), "it has not been seen yet");
    let there = world.daemon_set(&daemon_set("tools/agent"));
    assert!(unmade(&there, &[]).is_empty());
}

#[test]
fn the_rules_own_taint_does_not_count_where_a_dry_run_finds_it() {
    let tainted = node("n").taint(GATE, "NoSchedule");
    let asks = rule("r").waits_for(AGENT).dry_run();
    let world = world(&tainted).naming("tools/agent");
    let world = world.daemon_set(&daemon_set("tools/agent")).rule(&asks);
    assert_eq!(passed_over(&world).len(), 1);
}

#[test]
fn a_named_daemon_set_that_runs_on_no_node_of_the_rule_is_told_of() {
    let tolerant =
        daemon_set("tools/agent").toleration(&format!("{{key: {GATE}, operator: Exists}}"));
    let control_plane = node("n").taint("node-role.kubernetes.io/control-plane", "NoSchedule");
    let world = world(&control_plane).naming("tools/agent");
    let world = world.daemon_set(&tolerant);
    let found = backing(&world.rule(&rule("r").waits_for(AGENT)), &[]).findings;
    assert_eq!(
        found[0].message,
        "DaemonSet tools/agent runs on 0 of the 1 node that the rule selects, so that none of them waits for it"
    );
}

#[test]
fn a_daemon_set_that_a_rule_passes_over_is_named() {
    let cni = daemon_set("kube-system/cni").critical();
    let tolerant = daemon_set("kube-system/proxy")
        .critical()
        .toleration("{operator: Exists}");
    let windows = daemon_set("kube-system/windows")
        .critical()
        .node_selector("kubernetes.io/os", "windows");
    let tenant = daemon_set("tenant/agent").critical();
    let gate = rule("r").waits_for("node.gardener.cloud/CriticalPodsReady");
    let shut_out = ("NG002", "daemonset/kube-system/cni".to_owned());
    let outside = ("NG004", "daemonset/tenant/agent".to_owned());
    let both = vec![shut_out, outside.clone()];
    let tainted = |key: &str| node("n").taint(key, "NoSchedule");
    #[rustfmt::skip]
    let cases = [
        ("waits for the class", node("n"), gate.clone(), both.clone()),
        ("the taint is there", tainted(GATE), gate.clone(), both.clone()),
        ("another taint keeps it off", tainted("dedicated"), gate.clone(), vec![outside.clone()]),
        ("another taint that will go", tainted("node.kubernetes.io/not-ready"), gate.clone(), both),
        ("waits for something else", node("n"), rule("r").waits_for("example.com/Network"), vec![]),
        ("repels nobody", node("n"), gate.taint(GATE, "PreferNoSchedule"), vec![outside]),
    ];
    for (name, node, rule, expected) in cases {
        let world = world(&node)
            .daemon_set(&cni)
            .daemon_set(&tolerant)
            .daemon_set(&windows)
            .daemon_set(&tenant)
            .rule(&rule);
        assert_eq!(passed_over(&world), expected, "{name}");
    }
}

#[test]
fn what_a_rule_does_not_wait_for_on_a_node_is_named() {
    let other = |name: &str| daemon_set(&format!("tools/{name}"));
    let world = world(&node("n"))
        .waited_for(Component::AllDaemonSets)
        .daemon_set(&daemon_set("kube-system/cni").critical())
        .daemon_set(&daemon_set("tenant/agent").critical())
        .daemon_set(&other("intolerant"))
        .daemon_set(&other("tolerant").toleration("{operator: Exists}"))
        .daemon_set(&other("going").deleting())
        .daemon_set(&other("ignored").label("nodegate.dev/ignore", "true"))
        .daemon_set(&other("windows").node_selector("kubernetes.io/os", "windows"));
    #[rustfmt::skip]
    let cases = [
        ("node.gardener.cloud/CriticalPodsReady", &["kube-system/cni"][..]),
        ("daemonsets.nodegate.dev/all", &["kube-system/cni", "tenant/agent", "tools/intolerant"]),
        ("example.com/Network", &[]),
    ];
    for (kind, expected) in cases {
        let world = world.clone().rule(&rule("r").waits_for(kind));
        let spec = world.rules()[0].spec.as_ref().unwrap();
        let left_out = left_out_on(spec, world.cluster(), world.state()).into_iter();
        let left_out: Vec<_> = left_out.map(|it| it.object).collect();
        let expected = expected.iter().map(|it| format!("daemonset/{it}"));
        assert_eq!(left_out, expected.collect::<Vec<_>>(), "{kind}");
    }
}

#[test]
fn each_taint_that_keeps_a_named_daemon_set_off_is_told_with_its_own_count() {
    const SYSTEM: (&str, &str) = ("CriticalAddonsOnly", "NoExecute");
    const REGION: (&str, &str) = ("region", "NoSchedule");
    let tainted = |name: &str, taints: &[(&str, &str)]| {
        let taints = taints.iter();
        taints
            .fold(node(name), |node, (key, effect)| node.taint(key, effect))
            .build()
    };
    let nodes = [
        tainted("system", &[SYSTEM]),
        tainted("system-2", &[SYSTEM]),
        tainted("region", &[REGION]),
        tainted("both", &[REGION, SYSTEM]),
        tainted("user", &[]),
    ];
    let tolerant = format!("{{key: {GATE}, operator: Exists}}");
    let world = world(&node("n")).naming("tools/agent");
    let world = world.daemon_set(&daemon_set("tools/agent").toleration(&tolerant));
    let world = world.rule(&rule("r").waits_for(AGENT));
    let spec = world.rules()[0].spec.as_ref().unwrap();
    let nodes = Some(nodes.iter().collect());
    let around = Around::watched("", spec, world.cluster(), nodes, None);
    let found = Backing::of("r", spec, &around).findings.into_iter();
    let found = found.filter(|it| it.check.id == "NG002");
    let counts = found.map(|it| {
        let (_, of) = it
            .message
            .split_once("does not tolerate the taint ")
            .unwrap();
        let (taint, rest) = of.split_once(": ").unwrap();
        let (_, count) = rest.split_once('(').unwrap();
        format!("{taint} on {}", count.split_once(')').unwrap().0)
    });
    assert_eq!(
        counts.collect::<Vec<_>>(),
        [
            "CriticalAddonsOnly:NoExecute on 3 of the 5 selected",
            "region:NoSchedule on 2 of the 5 selected",
        ]
    );
}

#[test]
fn a_heartbeat_timeout_that_does_not_apply_is_named() {
    let timed = rule("r").waits_for("Net").nodegate("heartbeatTimeout: 10m");
    let untimed = rule("r").waits_for("Net");
    let written = |heartbeat| {
        let net = json!({
            "type": "Net", "status": "True", "lastTransitionTime": at(0), "lastHeartbeatTime": at(heartbeat),
        });
        node("n").condition_with(net)
    };
    #[rustfmt::skip]
    let cases = [
        ("written once", &timed, written(1), true),
        ("renewed", &timed, written(2), false),
        ("never written", &timed, node("n"), false),
        ("without a timeout", &untimed, written(1), false),
    ];
    for (name, rule, node, expected) in cases {
        let found = |world: World| {
            let findings = backing(&world, &[]).findings;
            findings.iter().any(|it| it.check == Check::NEVER_RENEWED)
        };
        let known = world(&node).rule(rule);
        assert!(!found(known.clone()), "{name}, and seen to be renewed");
        assert_eq!(found(known.never_renewed()), expected, "{name}");
    }
}
