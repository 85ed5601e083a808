//! The table of decisions, as it reaches a node.

use super::{NETWORK, assert_writes, gate, gated, gated_by, met, unmet, writes};
use crate::plan::{ChangeKind, Decision, PassedOver, Standing, WhyPassedOver};
use crate::testing::{Builder, GATE, NodeBuilder, World, at, daemon_set, pod, rule, world};

const OTHER: &str = "readiness.k8s.io/other";

#[test]
fn a_continuous_rule_gates_and_releases_a_node() {
    for (name, node, rule, expected) in [
        (
            "unmet, absent: gate",
            unmet(),
            gate("r"),
            &["+gate:NoSchedule", "+taint-added-by-r-uid"][..],
        ),
        (
            "unmet, present, owned: hold",
            gated_by(unmet(), "r"),
            gate("r"),
            &[],
        ),
        (
            "unmet, present, not owned: adopt",
            gated(unmet()),
            gate("r"),
            &["+taint-added-by-r-uid"],
        ),
        (
            "met, present, owned: release",
            gated_by(met(), "r"),
            gate("r"),
            &["-gate:NoSchedule", "-taint-added-by-r-uid"],
        ),
        (
            "met, present, not owned: release",
            gated(met()),
            gate("r"),
            &["-gate:NoSchedule"],
        ),
        ("met, absent: nothing", met(), gate("r"), &[]),
        (
            "met, absent, annotation left: drop it",
            met().owned_by("r", GATE, "NoSchedule"),
            gate("r"),
            &["-taint-added-by-r-uid"],
        ),
        (
            "unmet, taken away by hand: gate again",
            unmet().owned_by("r", GATE, "NoSchedule"),
            gate("r"),
            &["+gate:NoSchedule"],
        ),
        (
            "unmet, completed before: gate",
            unmet().completed("r-uid"),
            gate("r"),
            &["+gate:NoSchedule", "+taint-added-by-r-uid"],
        ),
    ] {
        assert_writes(name, &node, &[rule], expected);
    }
}

#[test]
fn a_bootstrap_only_rule_gates_a_node_once() {
    for (name, node, rule, expected) in [
        (
            "unmet, absent: gate",
            unmet(),
            gate("r").bootstrap_only(),
            &["+gate:NoSchedule", "+taint-added-by-r-uid"][..],
        ),
        (
            "met, present: release and complete",
            gated_by(met(), "r"),
            gate("r").bootstrap_only(),
            &[
                "-gate:NoSchedule",
                "-taint-added-by-r-uid",
                "+bootstrap-completed-r-uid",
            ],
        ),
        (
            "met, absent: complete",
            met(),
            gate("r").bootstrap_only(),
            &["+bootstrap-completed-r-uid"],
        ),
        (
            "met, absent, completed: nothing",
            met().completed("r-uid"),
            gate("r").bootstrap_only(),
            &[],
        ),
        (
            "unmet, completed: never gate again",
            unmet().completed("r-uid"),
            gate("r").bootstrap_only(),
            &[],
        ),
        (
            "unmet, completed under the name: never gate again",
            unmet().completed("r"),
            gate("r").bootstrap_only(),
            &[],
        ),
        (
            "unmet, completed by another rule of the name: gate",
            unmet().completed("older-uid"),
            gate("r").bootstrap_only(),
            &["+gate:NoSchedule", "+taint-added-by-r-uid"],
        ),
        (
            "unmet, completed, but the taint is there: hold",
            gated(unmet()).completed("r-uid"),
            gate("r").bootstrap_only(),
            &["+taint-added-by-r-uid"],
        ),
        (
            "met, completed, but the taint is there: release",
            gated(met()).completed("r-uid"),
            gate("r").bootstrap_only(),
            &["-gate:NoSchedule"],
        ),
        (
            "met, completed under the name, but the taint is there: release",
            gated(met()).completed("r"),
            gate("r").bootstrap_only(),
            &["-gate:NoSchedule"],
        ),
    ] {
        assert_writes(name, &node, &[rule], expected);
    }
}

#[test]
fn a_remove_only_rule_never_gates_a_node() {
    for (name, node, rule, expected) in [
        (
            "unmet, absent: nothing",
            unmet(),
            gate("r").remove_only(),
            &[][..],
        ),
        (
            "unmet, present: hold",
            gated(unmet()),
            gate("r").remove_only(),
            &[],
        ),
        (
            "met, present: release",
            gated(met()),
            gate("r").remove_only(),
            &["-gate:NoSchedule"],
        ),
        (
            "remove-only bootstrap, met, present: release and complete",
            gated(met()),
            gate("r").bootstrap_only().remove_only(),
            &["-gate:NoSchedule", "+bootstrap-completed-r-uid"],
        ),
        (
            "remove-only bootstrap, met, absent: nothing",
            met(),
            gate("r").bootstrap_only().remove_only(),
            &[],
        ),
    ] {
        assert_writes(name, &node, &[rule], expected);
    }
}

#[test]
fn a_node_is_left_alone_by_a_rule_that_has_no_say() {
    for (name, node, rule) in [
        (
            "not selected",
            gated(met()),
            gate("r").selects("pool", "other"),
        ),
        ("no finalizer yet", unmet(), gate("r").without_finalizer()),
        ("rejected", unmet(), rule("r")),
        ("dry run, unmet, absent", unmet(), gate("r").dry_run()),
        ("dry run, met, present", gated(met()), gate("r").dry_run()),
        (
            "dry run, met, present, owned",
            gated_by(met(), "r"),
            gate("r").dry_run(),
        ),
        (
            "dry run, bootstrap, met",
            met(),
            gate("r").bootstrap_only().dry_run(),
        ),
        (
            "the node is being deleted, unmet",
            unmet().deleting(),
            gate("r"),
        ),
        (
            "the node is being deleted, met",
            gated_by(met(), "r").deleting(),
            gate("r"),
        ),
        (
            "the node and the rule are being deleted",
            gated_by(met(), "r").deleting(),
            gate("r").deleting(),
        ),
    ] {
        assert_writes(name, &node, &[rule], &[]);
    }
}

#[test]
fn annotations_say_what_upstream_and_a_later_run_can_read() {
    let released = world(&gated_by(met(), "r")).rule(&gate("r").bootstrap_only());
    let completed = "readiness.k8s.io/bootstrap-completed-r-uid";
    assert_eq!(
        released.plan().annotations[completed].as_deref(),
        Some(r#"{"rule-name":"r"}"#)
    );
    let added = world(&unmet()).rule(&gate("r"));
    assert_eq!(
        added.plan().annotations["nodegate.dev/taint-added-by-r-uid"].as_deref(),
        Some(
            r#"{"rule-name":"r","taint-key":"readiness.k8s.io/gate","taint-effect":"NoSchedule"}"#
        )
    );
    let joining = world(&unmet()).rule(&gate("r")).joined(at(0));
    assert_eq!(
        joining.plan().annotations["nodegate.dev/taint-added-by-r-uid"].as_deref(),
        Some(
            r#"{"rule-name":"r","taint-key":"readiness.k8s.io/gate","taint-effect":"NoSchedule","joining":true}"#
        )
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_rule_that_is_being_deleted_cleans_up_after_itself() {
    let deleted = || gate("r").deleting();
    let lifted = &["-gate:NoSchedule", "-taint-added-by-r-uid"][..];
    for (name, node, rules, expected) in [
        (
            "unmet, owned: lift",
            gated_by(unmet(), "r"),
            vec![deleted()],
            lifted,
        ),
        (
            "unmet, not owned: lift",
            gated(unmet()),
            vec![deleted()],
            &["-gate:NoSchedule"][..],
        ),
        ("absent: nothing", unmet(), vec![deleted()], &[]),
        (
            "annotation left: drop it",
            unmet().owned_by("r", GATE, "NoSchedule"),
            vec![deleted()],
            &["-taint-added-by-r-uid"],
        ),
        (
            "both completion annotations go",
            unmet().completed("r-uid").completed("r").completed("other"),
            vec![deleted().bootstrap_only()],
            &["-bootstrap-completed-r", "-bootstrap-completed-r-uid"],
        ),
        (
            "completion annotations go from nodes that it does not select",
            unmet().completed("r-uid"),
            vec![deleted().bootstrap_only().selects("pool", "other")],
            &["-bootstrap-completed-r-uid"],
        ),
        (
            "another deletion's completion stays",
            unmet().completed("other-uid"),
            vec![deleted()],
            &[],
        ),
        (
            "dry run: leave the taint",
            gated(unmet()),
            vec![deleted().dry_run()],
            &[],
        ),
        (
            "dry run that added the taint before it became one: nobody else would ever lift it",
            gated_by(unmet(), "r"),
            vec![deleted().dry_run()],
            lifted,
        ),
        (
            "remove-only: leave the taint",
            gated(unmet()).completed("r-uid"),
            vec![deleted().remove_only()],
            &["-bootstrap-completed-r-uid"],
        ),
        (
            "remove-only that took over a taint of ours: nobody else would ever lift it",
            gated_by(unmet(), "r"),
            vec![deleted().remove_only()],
            lifted,
        ),
        (
            "conflicted: leave the taint to the rule that governs",
            gated_by(unmet(), "first"),
            vec![gate("first"), deleted().created(at(1))],
            &[],
        ),
        (
            "governed by a newer rule: hand over",
            gated_by(unmet(), "r"),
            vec![deleted(), gate("second").created(at(1))],
            &["-taint-added-by-r-uid", "+taint-added-by-second-uid"],
        ),
        (
            "governed by a newer rule whose conditions are met: that rule's decision",
            gated_by(met(), "r").completed("r-uid"),
            vec![deleted(), gate("second").created(at(1)).bootstrap_only()],
            &[
                "-gate:NoSchedule",
                "-taint-added-by-r-uid",
                "-bootstrap-completed-r-uid",
                "+bootstrap-completed-second-uid",
            ],
        ),
        (
            "governed by a newer rule, taint not owned: that rule adopts it",
            gated(unmet()),
            vec![deleted(), gate("second").created(at(1))],
            &["+taint-added-by-second-uid"],
        ),
        (
            "a newer dry run does not take over",
            gated_by(unmet(), "r"),
            vec![deleted(), gate("second").created(at(1)).dry_run()],
            lifted,
        ),
        (
            "a newer rule about other nodes does not take over",
            gated_by(unmet(), "r"),
            vec![
                deleted(),
                gate("second").created(at(1)).selects("pool", "other"),
            ],
            lifted,
        ),
        (
            "two deleted: one lift",
            gated_by(unmet(), "r"),
            vec![deleted(), gate("second").created(at(1)).deleting()],
            lifted,
        ),
        (
            "unreadable: lift what it owns",
            gated_by(unmet(), "r"),
            vec![rule("r").deleting()],
            lifted,
        ),
        (
            "an annotation that cannot be read goes too",
            gated(unmet()).annotation("nodegate.dev/taint-added-by-r-uid", "r"),
            vec![deleted()],
            lifted,
        ),
    ] {
        assert_writes(name, &node, &rules, expected);
    }
}

#[test]
fn the_oldest_rule_governs_a_taint() {
    let second = || gate("a").created(at(1));
    let first = || rule("b").waits_for("Other");
    let standings = |world: &World| -> Vec<String> {
        let plan = world.plan();
        plan.outcomes
            .iter()
            .map(|outcome| match outcome.standing {
                Standing::Governs(decision) => format!("{}: {decision:?}", outcome.rule.name),
                Standing::DryRun(decision) => format!("{}: dry {decision:?}", outcome.rule.name),
                Standing::Conflicted { with } => {
                    format!("{}: conflicts with {}", outcome.rule.name, with.name)
                }
            })
            .collect()
    };
    for (name, rules, expected, written) in [
        (
            "by creation time",
            [first(), second()],
            ["b: Gate", "a: conflicts with b"],
            &["+gate:NoSchedule", "+taint-added-by-b-uid"][..],
        ),
        (
            "by name at the same time",
            [first(), gate("a")],
            [
                "a: Open { completes_bootstrap: false }",
                "b: conflicts with a",
            ],
            &[],
        ),
        (
            "a dry run governs nothing",
            [first().dry_run(), second()],
            ["b: dry Gate", "a: Open { completes_bootstrap: false }"],
            &[],
        ),
    ] {
        let world = world(&met()).with_rules(&rules);
        assert_eq!(standings(&world), expected, "{name}");
        assert_eq!(writes(&world), written, "{name}");
    }
    let conflicted = world(&gated_by(met(), "b")).with_rules(&[first(), second()]);
    assert_eq!(
        writes(&conflicted),
        [""; 0],
        "a conflicted rule lifts nothing"
    );
    let apart = world(&met()).with_rules(&[first(), second().taint(GATE, "NoExecute")]);
    assert_eq!(
        standings(&apart),
        ["b: Gate", "a: Open { completes_bootstrap: false }"],
        "another effect is another taint"
    );
    let alone = world(&met()).with_rules(&[first().deleting(), second()]);
    assert_eq!(
        standings(&alone),
        ["a: Open { completes_bootstrap: false }"],
        "a deleted rule has no outcome"
    );
}

#[test]
fn an_older_rule_that_comes_to_govern_takes_the_taint_over() {
    let first = gate("first");
    let second = gate("second").created(at(1));
    assert_writes(
        "unmet",
        &gated_by(unmet(), "second"),
        &[first, second],
        &["+taint-added-by-first-uid", "-taint-added-by-second-uid"],
    );
}

#[test]
fn a_dry_run_counts_what_it_would_do() {
    for (name, node, expected) in [
        ("unmet, absent", unmet(), Decision::Gate),
        ("unmet, present", gated(unmet()), Decision::Hold),
        (
            "met, present",
            gated(met()),
            Decision::Release {
                completes_bootstrap: false,
            },
        ),
        (
            "met, absent",
            met(),
            Decision::Open {
                completes_bootstrap: false,
            },
        ),
    ] {
        let world = world(&node).rule(&gate("r").dry_run());
        let plan = world.plan();
        assert_eq!(
            plan.outcomes[0].standing,
            Standing::DryRun(expected),
            "{name}"
        );
        assert!(plan.changes.is_empty(), "{name}");
    }
}

#[test]
fn a_held_taint_that_nobody_here_added_is_adopted() {
    for (name, node, rule, expected) in [
        ("held, nobody's", gated(unmet()), gate("r"), true),
        ("held, ours", gated_by(unmet(), "r"), gate("r"), false),
        (
            "held, of a rule that is gone",
            gated_by(unmet(), "gone"),
            gate("r"),
            false,
        ),
        ("added now", unmet(), gate("r"), false),
        ("released", gated(met()), gate("r"), false),
        ("a dry run", gated(unmet()), gate("r").dry_run(), false),
    ] {
        let world = world(&node).rule(&rule);
        assert_eq!(world.plan().outcomes[0].adopts, expected, "{name}");
    }
}

#[test]
fn all_rules_of_a_node_are_one_plan() {
    let node = met()
        .taint("example.com/first", "NoSchedule")
        .taint_with(OTHER, "x", "NoExecute")
        .taint_with("example.com/last", "y", "PreferNoSchedule")
        .owned_by("other", OTHER, "NoExecute");
    let world = world(&node).with_rules(&[
        rule("r").waits_for("Missing"),
        gate("other").taint(OTHER, "NoExecute").bootstrap_only(),
        gate("third").taint("readiness.k8s.io/third", "NoSchedule"),
    ]);
    let plan = world.plan();
    let taints: Vec<_> = plan
        .taints
        .as_ref()
        .unwrap()
        .iter()
        .map(|taint| taint.key.as_str())
        .collect();
    assert_eq!(taints, ["example.com/first", "example.com/last", GATE]);
    assert_eq!(plan.taints.as_ref().unwrap()[1].value, "y");
    assert_eq!(
        writes(&world),
        [
            "+gate:NoSchedule",
            "-other:NoExecute",
            "-taint-added-by-other-uid",
            "+taint-added-by-r-uid",
            "+bootstrap-completed-other-uid",
        ]
    );
    let completes_bootstrap = |rule: &str| {
        plan.outcomes.iter().any(|outcome| {
            let governs =
                |decision: Decision| *outcome.rule.name == *rule && decision.completes_bootstrap();
            matches!(outcome.standing, Standing::Governs(decision) if governs(decision))
        })
    };
    let changes: Vec<_> = plan
        .changes
        .iter()
        .map(|change| {
            let rule = change.rule_name.as_str();
            (change.kind, rule, completes_bootstrap(rule))
        })
        .collect();
    assert_eq!(
        changes,
        [
            (ChangeKind::Added, "r", false),
            (ChangeKind::Removed, "other", true)
        ]
    );
}

#[test]
fn a_taint_counts_by_key_and_effect_whatever_its_value() {
    let rule =
        gate("r").spec("taint: {key: readiness.k8s.io/gate, value: mine, effect: NoSchedule}");
    let theirs = |node: NodeBuilder| node.taint_with(GATE, "theirs", "NoSchedule");
    let rules = std::slice::from_ref(&rule);
    let adopted = &["+taint-added-by-r-uid"];
    assert_writes("held as it is", &theirs(unmet()), rules, adopted);
    assert_writes("lifted", &theirs(met()), rules, &["-gate:NoSchedule"]);
    let added = world(&unmet()).rule(&rule);
    assert_eq!(added.plan().taints.unwrap()[0].value, "mine");
    let other_effect = unmet().taint(GATE, "NoExecute");
    assert_writes(
        "another effect is another taint",
        &other_effect,
        rules,
        &["+gate:NoSchedule", "+taint-added-by-r-uid"],
    );
}

#[test]
fn a_held_node_says_what_its_critical_components_lack() {
    let components = "node.gardener.cloud/CriticalComponentsReady";
    let cni = daemon_set("kube-system/cni")
        .critical()
        .toleration("{operator: Exists}");
    let cni_pod = || pod("kube-system/cni-1").of(&cni);
    let waits = || rule("r").waits_for(NETWORK).waits_for(components);
    let base = || world(&met()).daemon_set(&cni);
    let waiting = |reason: &str, message: &str| Some(format!("{reason}: {message}"));
    let no_pod = || {
        waiting(
            "UnscheduledNodeCriticalDaemonSets",
            "DaemonSet kube-system/cni has no pod on this node",
        )
    };
    for (name, world, expected) in [
        ("no pod", base().rule(&waits()), no_pod()),
        (
            "not Ready",
            base().pod(&cni_pod()).rule(&waits()),
            waiting(
                "UnreadyNodeCriticalPods",
                "pod kube-system/cni-1 is not Ready",
            ),
        ),
        (
            "no driver",
            base()
                .pod(&cni_pod().ready().waits_for_driver("a.csi"))
                .rule(&waits()),
            waiting(
                "UnreadyRequiredCSIDrivers",
                "CSI driver a.csi is not registered on this node",
            ),
        ),
        ("ready", base().pod(&cni_pod().ready()).rule(&waits()), None),
        ("no rule asks", base().rule(&gate("r")), None),
        (
            "a rule that waits for something else",
            base().rule(&rule("r").waits_for("Other")),
            None,
        ),
        ("a dry run", base().rule(&waits().dry_run()), None),
        (
            "remove-only, absent",
            base().rule(&waits().remove_only()),
            None,
        ),
        (
            "remove-only, present",
            world(&gated(met()))
                .daemon_set(&cni)
                .rule(&waits().remove_only()),
            no_pod(),
        ),
    ] {
        let plan = world.plan();
        let waiting = plan
            .waiting
            .map(|it| format!("{}: {}", it.for_what.reason(), it.detail));
        assert_eq!(waiting, expected, "{name}");
    }
    let released = world(&gated(met())).rule(&waits());
    assert!(released.plan().changes[0].components_ready);
    let other = world(&gated(met())).rule(&gate("r"));
    assert!(!other.plan().changes[0].components_ready);
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
    let passed = |why, daemon_set: &str| (why, daemon_set.to_owned(), "gardener");
    let shut_out = passed(WhyPassedOver::ShutOut, "kube-system/cni");
    let outside = passed(WhyPassedOver::OutsideNamespaces, "tenant/agent");
    let both = vec![shut_out, outside.clone()];
    let tainted = |key: &str| unmet().taint(key, "NoSchedule");
    for (name, node, rule, expected) in [
        ("waits for the class", unmet(), gate.clone(), both.clone()),
        (
            "the taint is there",
            tainted(GATE),
            gate.clone(),
            both.clone(),
        ),
        (
            "another taint keeps it off",
            tainted("dedicated"),
            gate.clone(),
            vec![],
        ),
        (
            "another taint that will go",
            tainted("node.kubernetes.io/not-ready"),
            gate.clone(),
            both,
        ),
        (
            "waits for something else",
            unmet(),
            rule("r").waits_for(NETWORK),
            vec![],
        ),
        (
            "repels nobody",
            unmet(),
            gate.taint(GATE, "PreferNoSchedule"),
            vec![outside],
        ),
    ] {
        let world = world(&node)
            .daemon_set(&cni)
            .daemon_set(&tolerant)
            .daemon_set(&windows)
            .daemon_set(&tenant)
            .rule(&rule);
        let spec = world.rules()[0].spec.as_ref().unwrap();
        let nodes = || std::iter::once(&world.node);
        let passed_over = PassedOver::by_rule(spec, world.cluster(), nodes);
        let names: Vec<_> = passed_over
            .iter()
            .map(|it| (it.why, it.daemon_set.to_string(), &*it.class))
            .collect();
        assert_eq!(names, expected, "{name}");
    }
}
