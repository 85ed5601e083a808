//! Checks, and all `DaemonSet`s of the cluster. Devices have a table of their own.

use super::{assert_lack, worker};
use crate::condition::{CHECK_LABEL, Component};
use crate::object::ObjectKey;
use crate::testing::{
    Builder, DaemonSetBuilder, PodBuilder, World, at, daemon_set, node, pod, rule, world,
};

const CHECK: &str = "check.nodegate.dev/checks.nccl";
const ALL: &str = "daemonsets.nodegate.dev/all";
const BOUND: &str = "daemonsets.nodegate.dev/scheduled";

fn run(name: &str, created: i64, phase: &str) -> PodBuilder {
    pod(&format!("checks/{name}"))
        .label(CHECK_LABEL, "nccl")
        .created(at(created))
        .phase(phase)
}

#[test]
fn the_newest_run_of_a_check_on_this_node_decides() {
    const MISSING: &str =
        "no pod of check checks/nccl has run on this node since it was created or booted";
    #[rustfmt::skip]
    let cases = [
        ("none", vec![], Some(MISSING)),
        ("running", vec![run("a", 10, "Running")], Some("pod checks/a has not ended yet")),
        ("failed, and succeeded when it was tried again", vec![run("b", 20, "Succeeded"), run("a", 10, "Failed")], None),
        ("succeeded, and failed later", vec![run("a", 10, "Succeeded"), run("b", 20, "Failed")], Some("pod checks/b has failed")),
        ("in the second in which the node was created", vec![run("a", 0, "Succeeded")], None),
        ("on an earlier node of the same name", vec![run("a", -1, "Succeeded")], Some(MISSING)),
        ("on another node", vec![run("a", 10, "Succeeded").on("worker-2")], Some(MISSING)),
        ("another check", vec![run("a", 10, "Succeeded").label(CHECK_LABEL, "disk")], Some(MISSING)),
    ];
    for (name, runs, expected) in cases {
        let component = Component::Check(ObjectKey::new("checks", "nccl"));
        let world = world(&worker()).waited_for(component);
        let world = runs.iter().fold(world, World::pod);
        assert_lack(name, &world, CHECK, expected);
    }
}

#[test]
fn a_run_from_before_a_reboot_does_not_count_under_a_rule_that_gates_rebooted_nodes() {
    let component = Component::Check(ObjectKey::new("checks", "nccl"));
    let booted = |id: &str| node("worker-1").boot_id(id);
    for (created, missing) in [(10, true), (150, false)] {
        let asks = rule("r").nodegate("regateOn: [Reboot]").waits_for(CHECK);
        let world = world(&booted("a"))
            .waited_for(component.clone())
            .rule(&asks.dry_run())
            .sees(&booted("b"), at(100))
            .pod(&run("a", created, "Succeeded"));
        let plan = world.plan();
        assert_eq!(plan.outcomes[0].met, !missing, "{created}");
    }
}

#[test]
fn all_daemon_sets_that_run_here_have_to_be_ready_or_bound_but_those_that_are_to_be_ignored() {
    const MISSING: Option<&str> = Some("DaemonSet tools/agent has no pod on this node");
    let agent = || daemon_set("tools/agent");
    let pod_of = |daemon_set: &DaemonSetBuilder| pod("tools/a").of(daemon_set);
    let own = || pod_of(&agent());
    let other = || pod_of(&daemon_set("tools/b"));
    let unready = Some("pod tools/a is not Ready");
    // What all lack, and what all lack that have to be bound alone.
    #[rustfmt::skip]
    let cases = [
        ("no pod", agent(), vec![], MISSING, MISSING),
        ("not Ready", agent(), vec![own()], unready, None),
        ("Ready", agent(), vec![own().ready()], None, None),
        ("terminating", agent(), vec![own().ready().deleting()], MISSING, MISSING),
        ("failed", agent(), vec![own().phase("Failed")], MISSING, MISSING),
        ("on another node", agent(), vec![own().ready().on("worker-2")], MISSING, MISSING),
        ("another's pod", agent(), vec![other()], MISSING, MISSING),
        ("another's pod is Ready", agent(), vec![other().ready()], MISSING, MISSING),
        (
            "a Ready pod in another namespace that claims it as its owner",
            agent(),
            vec![pod("tenant/a").of(&agent()).ready()],
            MISSING,
            MISSING,
        ),
        ("another pod is not Ready", agent(), vec![own().ready(), pod("tools/c")], None, None),
        ("to be ignored", agent().label("nodegate.dev/ignore", "true"), vec![], None, None),
        ("not to be ignored", agent().label("nodegate.dev/ignore", "false"), vec![], MISSING, MISSING),
        ("being deleted", agent().deleting(), vec![], None, None),
        ("for other nodes", agent().node_selector("gpu", "yes"), vec![], None, None),
    ];
    for (name, daemon_set, pods, all, bound) in cases {
        let world = world(&worker())
            .waited_for(Component::AllDaemonSets)
            .daemon_set(&daemon_set);
        let world = pods.iter().fold(world, World::pod);
        assert_lack(name, &world, ALL, all);
        assert_lack(name, &world, BOUND, bound);
    }
    let none = world(&worker()).waited_for(Component::AllDaemonSets);
    assert_lack("there are none", &none, ALL, None);
    assert_lack("there are none", &none, BOUND, None);
    let node = worker().taint("dedicated", "NoSchedule");
    let world = world(&node).waited_for(Component::AllDaemonSets);
    let answer = world.daemon_set(&agent()).condition(BOUND).unwrap();
    assert_eq!(answer.reason, "AllDaemonSetsScheduled");
    assert_eq!(
        answer.message,
        "every DaemonSet meant for this node has a pod on it; left out: DaemonSet tools/agent does not tolerate taint \
         dedicated"
    );
}

#[test]
fn a_daemon_set_that_the_rules_own_taint_keeps_off_is_left_out_of_all() {
    let gate = "readiness.k8s.io/all";
    let tolerating =
        |name: &str| daemon_set(name).toleration(&format!("{{key: {gate}, operator: Exists}}"));
    let asks = rule("r").taint(gate, "NoSchedule").waits_for(ALL);
    for (daemon_set, met) in [
        (daemon_set("tools/a"), true),
        (tolerating("tools/a"), false),
    ] {
        let world = world(&worker())
            .waited_for(Component::AllDaemonSets)
            .daemon_set(&daemon_set)
            .rule(&asks);
        assert_eq!(world.plan().outcomes[0].met, met);
    }
}

#[test]
fn daemon_sets_that_a_rule_leaves_out_by_name_do_not_count_for_it() {
    const CLASS: &str = "node.gardener.cloud/CriticalComponentsReady";
    let agent = daemon_set("kube-system/agent").critical();
    let cni = daemon_set("kube-system/cni").critical();
    let late = pod("kube-system/agent-1")
        .of(&agent)
        .waits_for_driver("a.csi");
    let there = pod("kube-system/cni-1").of(&cni).ready();
    for kind in [ALL, BOUND, CLASS] {
        let asks = |name: &str, except: &str| {
            let condition = format!(
                "{{type: {kind}, requiredStatus: 'True', nodegate: {{except: [{except}]}}}}"
            );
            let taint = format!("readiness.k8s.io/{name}");
            let conditions = format!("conditions: [{condition}]");
            rule(name)
                .taint(&taint, "NoSchedule")
                .spec(&conditions)
                .dry_run()
        };
        let with = |pods: &[&PodBuilder]| {
            let world = world(&worker()).waited_for(Component::AllDaemonSets);
            let world = world.daemon_set(&agent).daemon_set(&cni);
            let world = pods.iter().fold(world, |world, pod| world.pod(pod));
            let rules = [
                asks("all", ""),
                asks("but-agent", "kube-system/agent"),
                asks("but-cni", "kube-system/cni"),
            ];
            let world = world.with_rules(&rules);
            let plan = world.plan();
            ["all", "but-agent", "but-cni"]
                .map(|name| plan.outcome_of(&format!("{name}-uid")).unwrap().met)
        };
        assert_eq!(with(&[&there]), [false, true, false], "{kind}: no pod");
        let bound = kind == BOUND;
        assert_eq!(
            with(&[&there, &late]),
            [bound, true, bound],
            "{kind}: a pod that is not Ready"
        );
        let ready = late.clone().ready();
        let all = kind != CLASS;
        assert_eq!(
            with(&[&there, &ready]),
            [all, true, all],
            "{kind}: a driver that is not registered"
        );
    }
}
