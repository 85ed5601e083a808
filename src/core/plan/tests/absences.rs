//! What was there until a moment ago: nothing is changed on a node because it is gone, until that has lasted.

use serde_json::json;

use Decision::{Gate, GiveUp, Hold, NotHeld, Release};

use super::{gated_by, unmet};
use crate::plan::Decision;
use crate::testing::{
    Builder, DaemonSetBuilder, NodeBuilder, RuleBuilder, World, at, daemon_set, pod, rule, world,
};

const AGENT: &str = "daemonset.nodegate.dev/tools.agent";
const CRITICAL: &str = "node.gardener.cloud/CriticalComponentsReady";

fn agent() -> DaemonSetBuilder {
    let agent = daemon_set("tools/agent").selecting("app", "agent");
    agent.toleration("{operator: Exists}")
}

fn cni() -> DaemonSetBuilder {
    let cni = daemon_set("kube-system/cni").critical();
    cni.toleration("{operator: Exists}")
}

fn waits(kind: &str) -> RuleBuilder {
    rule("r").bootstrap_only().waits_for(kind)
}

fn held() -> NodeBuilder {
    gated_by(unmet(), "r")
}

/// A held node whose readiness TTL has passed.
fn late() -> NodeBuilder {
    let key = "nodegate.dev/ready-deadline-r-uid";
    held().annotation(key, &at(1800).to_string())
}

/// What the rule decides that governs the taint, and whether that completes the bootstrap.
fn decided(world: &World) -> Option<(Decision, bool)> {
    let plan = world.plan();
    let mut outcomes = plan.outcomes.iter();
    outcomes.find_map(|it| Some((it.governs()?, it.completes)))
}

fn decision(world: &World) -> (Decision, bool) {
    decided(world).expect("a rule governs")
}

#[test]
fn a_daemon_set_that_was_deleted_a_moment_ago_changes_nothing_by_that() {
    let with = |node: NodeBuilder, rule: &RuleBuilder| {
        let world = world(&node).naming("tools/agent");
        let world = world.daemon_set(&agent()).daemon_set(&cni());
        world.rule(rule)
    };
    let ready = pod("tools/a").label("app", "agent").ready();
    let own = pod("kube-system/c").of(&cni());
    let net = |node: NodeBuilder| node.condition("Net", "True");
    let either = waits(AGENT).waits_for("Net");
    let either = either.spec("{conditionPolicy: anyOf, enforcementMode: continuous}");
    let both = waits(AGENT).waits_for("Net");
    let class = waits(CRITICAL);
    let others = agent().node_selector("pool", "other");
    let elsewhere = world(&unmet()).naming("tools/agent").daemon_set(&others);
    let elsewhere = elsewhere.daemon_set(&cni()).rule(&waits(AGENT));
    // What is done within 15 s, and later.
    #[rustfmt::skip]
    let cases = [
        ("named, released by its orphan", with(unmet(), &waits(AGENT)).pod(&ready), (NotHeld, false), (Gate, false)),
        ("named, meant for others", elsewhere, (NotHeld, false), (Gate, false)),
        ("named, held", with(held(), &waits(AGENT)), (Hold, false), (Hold, false)),
        ("named, held, and its orphan is ready", with(held(), &waits(AGENT)).pod(&ready), (Hold, false), (Hold, false)),
        ("named, not held, and not ready", with(unmet(), &waits(AGENT)), (Gate, false), (Gate, false)),
        ("another condition is met, and suffices", with(net(held()), &either), (Release, false), (Release, false)),
        ("another condition is unmet, and is needed", with(unmet(), &both).pod(&ready), (Gate, false), (Gate, false)),
        ("of a class, held", with(held(), &class), (Hold, false), (Release, true)),
        ("of a class, held, and its pod is ready", with(held(), &class).pod(&own.clone().ready()), (Release, true), (Release, true)),
        ("of a class, not held", with(unmet(), &class), (NotHeld, false), (NotHeld, true)),
    ];
    for (name, world, soon, later) in cases {
        let keys = ["tools/agent", "kube-system/cni"].into_iter();
        let world = keys.fold(world, |world, key| world.deleted(key, at(3600)));
        assert_eq!(decision(&world.clone().now(at(3614))), soon, "{name}");
        assert_eq!(decision(&world.now(at(3615))), later, "{name}");
    }
}

#[test]
fn what_is_waited_out_is_said_and_until_when() {
    let world = world(&held()).daemon_set(&cni()).rule(&waits(CRITICAL));
    let world = world.deleted("kube-system/cni", at(3600)).now(at(3605));
    let plan = world.plan();
    let absence = plan.outcomes[0].absence.clone().unwrap();
    assert_eq!(absence.until, at(3615));
    assert_eq!(absence.gone, "DaemonSet kube-system/cni");
    let said = "DaemonSet kube-system/cni is gone, and may come back";
    assert_eq!(plan.outcomes[0].waits_out("n").unwrap().message, said);
    assert_eq!(plan.recheck, Some(at(3615)), "it is evaluated again then");
    assert_eq!(
        plan.outcomes[0].why(),
        "DaemonSet kube-system/cni has no pod on this node"
    );
    let late = world.now(at(3615));
    assert_eq!(late.plan().outcomes[0].absence, None);
}

#[test]
fn nobody_is_given_up_or_replaced_while_an_absence_has_not_lasted() {
    let gives_up = waits(CRITICAL).nodegate("repair: {readinessTTL: 15m, action: Release}");
    let world = world(&late()).daemon_set(&cni()).rule(&gives_up);
    let late = world.clone().now(at(3600));
    assert_eq!(late.plan().outcomes[0].governs(), Some(GiveUp));
    let deleted = late.deleted("kube-system/cni", at(3599));
    assert_eq!(decision(&deleted), (Hold, false));
    assert_eq!(deleted.plan().outcomes[0].verdict, None);
}

#[test]
fn labels_that_went_a_moment_ago_change_nothing_by_that() {
    let gpu = |node: NodeBuilder| node.label("gpu", "yes");
    let on_gpus = || agent().node_selector("gpu", "yes");
    let terms = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
        [{matchExpressions: [{key: paused, operator: DoesNotExist}]}]}}}";
    let unless_paused = agent().pod_spec(terms);
    let waits = || vec![waits(AGENT)];
    let of_gpus = |name: &str| {
        rule(name)
            .bootstrap_only()
            .waits_for("Net")
            .selects("gpu", "yes")
    };
    let another = rule("s").waits_for("Net").selects("gpu", "no");
    let count = "resource.nodegate.dev/nvidia.com/gpu";
    let count = format!(
        "conditions: [{{type: {count}, requiredStatus: 'True', nodegate: {{minimumFromLabel: gpus}}}}]"
    );
    let counting = || vec![rule("r").bootstrap_only().spec(&count)];
    let counted = |node: NodeBuilder| node.allocatable("nvidia.com/gpu", "8");
    let (stays, released) = (Some((Hold, false)), Some((Release, true)));
    let (not_held, completed) = (Some((NotHeld, false)), Some((NotHeld, true)));
    // What is done within five minutes, and later; `None` if no rule selects the node.
    #[rustfmt::skip]
    let cases = [
        ("its DaemonSet's, held", waits(), on_gpus(), gpu(held()), held(), stays, released),
        ("its DaemonSet's, not held", waits(), on_gpus(), gpu(unmet()), unmet(), not_held, completed),
        ("never there", waits(), on_gpus(), held(), held(), released, released),
        ("another's", waits(), on_gpus(), held().label("a", "b"), held(), released, released),
        ("another value", waits(), on_gpus(), gpu(held()), held().label("gpu", "paused"), stays, released),
        ("one that came", waits(), unless_paused, held(), held().label("paused", "yes"), stays, released),
        ("its rule's, held", vec![of_gpus("r")], agent(), gpu(held()), held(), stays, None),
        ("its rule's, held and met", vec![of_gpus("r")], agent(), gpu(held()), held().condition("Net", "True"), released, None),
        ("its rule's, not held", vec![of_gpus("r")], agent(), gpu(unmet()), unmet(), None, None),
        ("its rule's, and another rule has the taint there", vec![of_gpus("r"), another], agent(), gpu(held()), held().label("gpu", "no"), stays, stays),
        ("of a minimum, released", counting(), agent(), counted(unmet()).label("gpus", "8"), counted(unmet()), not_held, Some((Gate, false))),
    ];
    for (name, rules, daemon_set, before, after, soon, later) in cases {
        let world = world(&before).naming("tools/agent").daemon_set(&daemon_set);
        let world = world.with_rules(&rules).sees(&after, at(3600));
        assert_eq!(decided(&world.clone().now(at(3899))), soon, "{name}");
        assert_eq!(decided(&world.now(at(3900))), later, "{name}");
    }
}

#[test]
fn a_label_that_was_there_for_a_moment_is_waited_for_when_it_goes() {
    let world = world(&held()).naming("tools/agent");
    let world = world.daemon_set(&agent().node_selector("gpu", "yes"));
    let world = world
        .rule(&waits(AGENT))
        .sees(&held().label("gpu", "yes"), at(3600));
    let gone = world.sees(&held(), at(3660)).now(at(3900));
    assert_eq!(
        decision(&gone),
        (Hold, false),
        "it came 5 minutes ago, and went later"
    );
    let absence = gone.plan().outcomes[0].absence.clone().unwrap();
    assert_eq!((&*absence.gone, absence.until), ("label gpu", at(3960)));
    let back = gone.sees(&held().label("gpu", "yes"), at(3905));
    assert_eq!(back.plan().outcomes[0].absence, None);
    assert_eq!(decision(&back.clone().now(at(5000))), (Hold, false));
}

#[test]
fn what_its_author_changes_counts_at_once() {
    let gpu = held().label("gpu", "yes");
    let of_gpus = rule("r")
        .bootstrap_only()
        .waits_for("Net")
        .selects("gpu", "yes");
    let world = world(&gpu).naming("tools/agent");
    let world = world.daemon_set(&agent().node_selector("gpu", "yes"));
    let gone = world.sees(&held(), at(3600)).now(at(3601));
    let elsewhere = agent().node_selector("gpu", "no");
    let edited = gone.clone().rule(&waits(AGENT)).daemon_set(&elsewhere);
    assert_eq!(decision(&edited), (Release, true), "the DaemonSet");
    assert_eq!(decision(&gone.clone().rule(&of_gpus)), (Hold, false));
    let other = of_gpus.clone().selects("gpu", "no");
    for (name, edited) in [
        ("its selector", other),
        ("deleted", of_gpus.clone().deleting()),
        ("dry run", of_gpus.dry_run()),
    ] {
        assert_eq!(decided(&gone.clone().rule(&edited)), None, "{name}");
        assert_eq!(
            gone.clone().rule(&edited).new_taints(),
            Some(vec![]),
            "{name}"
        );
    }
}

#[test]
fn a_node_that_is_held_by_labels_that_went_is_not_repaired() {
    let rule = rule("r")
        .bootstrap_only()
        .waits_for("Net")
        .selects("gpu", "yes");
    let rule = rule.nodegate("repair: {readinessTTL: 15m, action: Release}");
    let world = world(&late().label("gpu", "yes")).rule(&rule).now(at(3600));
    assert_eq!(decision(&world), (GiveUp, true));
    assert_eq!(decision(&world.sees(&late(), at(3599))), (Hold, false));
}

#[test]
fn a_process_that_has_just_begun_waits_for_what_an_earlier_one_did() {
    let gpu = || agent().node_selector("gpu", "yes");
    let says = |status: &str, reason: &str, message: &str| {
        let condition =
            json!({"type": AGENT, "status": status, "reason": reason, "message": message});
        move |node: NodeBuilder| node.condition_with(condition.clone())
    };
    let missing = says(
        "False",
        "DaemonSetPodMissing",
        "DaemonSet tools/agent has no pod on this node",
    );
    let met = says(
        "True",
        "DaemonSetReady",
        "DaemonSet tools/agent has a Ready pod on this node",
    );
    let forged = says(
        "False",
        "Forged",
        "DaemonSet tools/agent has no pod on this node",
    );
    let of_gpus = waits("Net").selects("gpu", "yes");
    let ready = || Some(pod("tools/a").of(&agent()).ready());
    // What is done at first, after 15 s, and after five minutes.
    #[rustfmt::skip]
    let cases = [
        ("it was waited for, and its label is gone", waits(AGENT), Some(gpu()), missing(held()), None, [Some((Hold, false)), Some((Hold, false)), Some((Release, true))]),
        ("nothing says so", waits(AGENT), Some(gpu()), held(), None, [Some((Release, true)); 3]),
        ("another's condition says so", waits(AGENT), Some(gpu()), forged(held()), None, [Some((Release, true)); 3]),
        ("its pod is ready", waits(AGENT), Some(gpu()), missing(held()), ready(), [Some((Release, true)); 3]),
        ("it was ready, and is gone", waits(AGENT), None, met(unmet()), None, [Some((NotHeld, false)), Some((Gate, false)), Some((Gate, false))]),
        ("not ready, and never was", waits(AGENT), None, missing(unmet()), None, [Some((Gate, false)); 3]),
        ("the rule owns the taint, and its label is gone", of_gpus, None, held(), None, [Some((Hold, false)), Some((Hold, false)), None]),
    ];
    for (name, rule, daemon_set, node, pod, expected) in cases {
        let world = world(&node).naming("tools/agent");
        let world = daemon_set.iter().fold(world, World::daemon_set);
        let world = pod.iter().fold(world, World::pod).rule(&rule);
        let world = world.restarted(&node, at(3600));
        let decided = [3600, 3615, 3900].map(|it| decided(&world.clone().now(at(it))));
        assert_eq!(decided, expected, "{name}");
    }
}

#[test]
fn what_a_rule_leaves_out_holds_no_node_because_an_earlier_process_waited_for_it() {
    let missing = json!({
        "type": CRITICAL, "status": "False", "reason": "DaemonSetPodMissing",
        "message": "DaemonSet kube-system/agent has no pod on this node",
    });
    let node = held().condition_with(missing);
    for (left_out, expected) in [
        ("kube-system/agent", (Release, true)),
        ("kube-system/other", (Hold, false)),
    ] {
        let ours = format!("{{except: [{left_out}]}}");
        let asked = format!("{{type: {CRITICAL}, requiredStatus: 'True', nodegate: {ours}}}");
        let rule = waits(CRITICAL).spec(&format!("conditions: [{asked}]"));
        let world = world(&node).daemon_set(&daemon_set("kube-system/agent").critical());
        let world = world.rule(&rule).restarted(&node, at(3600));
        assert_eq!(decision(&world.now(at(3600))), expected, "{left_out}");
    }
}
