//! A random world: rules, nodes, `DaemonSet`s, CSI drivers and reporters, and what happens to them, all drawn from the seed.
//! Its end has no expected state, but the laws apply.

use serde_json::{Value, json};

use super::objects::{
    AGENT, ALL_BOUND, ALL_DAEMON_SETS, COMPONENTS_READY, DRIVER, DRIVER_REGISTERED, GATE, GPU,
    HAS_GPU, OTHER_GATE, PROBLEM, READY, Rule, SECOND, csi_node, daemon_set, daemon_set_key, rule,
    rule_key, storage, version,
};
use super::taints::{PASSING, STAYING};
use crate::sim::actors::ask::items;
use crate::sim::actors::{Csi, Deed, Foreign, Kubelets, Machine, Operator, Order, Reporter};
use crate::sim::rng::Rng;
use crate::sim::scenario::{Scenario, Scene};
use crate::sim::settings::usual;
use crate::sim::time::{Time, ms, s};

/// A label with how many there are on a node.
const GPUS: &str = "gpus";
/// Also the names of rules.
const NODES: [&str; 4] = ["n-0", "n-1", "n-2", "n-3"];
const RULES: [&str; 5] = ["one", "two", "three", "four", "five"];
const DAEMON_SETS: [&str; 3] = ["agent", "plugin", "pool-agent"];
/// Rules that share a taint interfere with each other.
const TAINTS: [&str; 4] = [
    GATE,
    OTHER_GATE,
    "readiness.k8s.io/third",
    "readiness.k8s.io/fourth",
];
/// What rules wait for: every reporter's condition, and every kind of synthesized condition.
const CONDITIONS: [&str; 15] = [
    READY,
    SECOND,
    PROBLEM,
    "Ready",
    COMPONENTS_READY,
    DRIVER_REGISTERED,
    HAS_GPU,
    AGENT,
    "daemonset.nodegate.dev/kube-system.pool-agent",
    "daemonset.nodegate.dev/kube-system.nowhere",
    "csidriver.nodegate.dev/nobody.example.com",
    ALL_DAEMON_SETS,
    ALL_BOUND,
    "check.nodegate.dev/checks.nobody",
    "resourceslice.nodegate.dev/nobody.example.com",
];
const HAPPEN: (Time, Time) = (s(15), s(90));

/// A random world. It is not among the scenarios, as its end has no expected state.
pub const WORLD: Scenario = Scenario {
    title: "world: a world of chance",
    instances: 1,
    settings: usual,
    brake: None,
    lasts: s(100),
    // A heartbeat timeout of two minutes, a minute of grace, and a minute until the Event; or five minutes from when labels went.
    settles: s(320),
    build,
};

fn build(mut scene: Scene<'_>) -> Scene<'_> {
    let rng = &mut scene.rng.clone();
    let mut operator = Operator::default();
    let nodes = &NODES[..=rng.below(NODES.len())];
    for name in &RULES[..=rng.below(RULES.len())] {
        let rule = any_rule(name, rng);
        operator = change_rule(operator, (name, &rule), rng);
        if rng.chance(20) {
            operator = operator.creates(sometime(rng), rule);
        } else {
            scene = scene.has(rule);
        }
    }
    for name in &DAEMON_SETS[..=rng.below(DAEMON_SETS.len())] {
        let mut set = daemon_set(name).ready_after(rng.between(s(1), s(8)));
        if rng.chance(80) {
            set = set.critical();
        }
        if rng.chance(15) {
            set = set.available_after(*rng.pick(&[2, 10]));
        }
        if *name == "plugin" {
            set = set.waits_for_driver(DRIVER);
        }
        if *name == "pool-agent" {
            set = set.only_on("pool", "a");
        }
        if rng.chance(50) {
            set = set.tolerates(&TAINTS[..=rng.below(TAINTS.len())]);
        }
        scene = scene.has(set);
        if rng.chance(15) {
            operator = operator.edits(sometime(rng), daemon_set_key(name), version("2"));
        }
        if rng.chance(10) {
            operator = operator.deletes(sometime(rng), daemon_set_key(name));
        }
    }
    for name in nodes {
        operator = change_node(operator, name, rng);
        if rng.chance(40) {
            scene = scene.acts(foreign_taint(name, rng));
        }
    }
    let kubelets = kubelets(nodes, rng);
    let csi = csi(nodes, rng);
    scene = scene.nodes(kubelets).acts(operator).acts(csi);
    for made in [
        Reporter::new(READY),
        Reporter::new(SECOND),
        Reporter::of_problem(PROBLEM),
    ] {
        if rng.chance(50) {
            scene = scene.acts(reporter(made, nodes, rng));
        }
    }
    scene.acts(storage_failures(nodes, rng))
}

/// What the driver reports of its storage on some nodes.
fn storage_failures(nodes: &[&'static str], rng: &mut Rng) -> Operator {
    let mut operator = Operator::default();
    for name in nodes {
        if !rng.chance(15) {
            continue;
        }
        let at = sometime(rng);
        let status = word(rng, &["StorageUnreachable", "StorageDegraded"]);
        operator = operator.edits(at, csi_node(name), storage(DRIVER, &[status]));
        if rng.chance(50) {
            let recovers = at + rng.between(s(3), s(20));
            operator = operator.edits(recovers, csi_node(name), storage(DRIVER, &[]));
        }
    }
    operator
}

/// Somebody's taint, which comes to this node and mostly goes again.
fn foreign_taint(node: &str, rng: &mut Rng) -> Foreign {
    let (key, effect) = if rng.chance(70) {
        *rng.pick(&PASSING)
    } else {
        (word(rng, &STAYING), "NoSchedule")
    };
    let at = rng.between(s(3), HAPPEN.1);
    let foreign = Foreign::of(key, effect).adds(at, node);
    if rng.chance(80) {
        foreign.removes(at + rng.between(s(1), s(30)), node)
    } else {
        foreign
    }
}

/// A valid random rule.
fn any_rule(name: &'static str, rng: &mut Rng) -> Rule {
    let is_continuous = rng.chance(55);
    let mut conditions: Vec<Value> = Vec::new();
    for _ in 0..=rng.below(3) {
        let kind = word(rng, &CONDITIONS);
        if conditions.iter().any(|it| it["type"] == kind) {
            continue;
        }
        let is_problem = kind == PROBLEM;
        let status = if is_problem { "False" } else { "True" };
        let mut condition = json!({"type": kind, "requiredStatus": status});
        if is_continuous && is_problem {
            condition["defaultStatus"] = json!("False");
        }
        match rng.below(4) {
            0 if kind.ends_with(GPU) => condition["nodegate"]["minimum"] = json!(4),
            1 if kind.ends_with(GPU) => condition["nodegate"]["minimumFromLabel"] = json!(GPUS),
            0 if [READY, SECOND].contains(&kind) => {
                condition["nodegate"]["reasons"] = json!(["Is"]);
            }
            0 if [COMPONENTS_READY, ALL_DAEMON_SETS, ALL_BOUND].contains(&kind) => {
                let left_out = format!("kube-system/{}", word(rng, &DAEMON_SETS));
                condition["nodegate"]["except"] = json!([left_out]);
            }
            _ => {}
        }
        conditions.push(condition);
    }
    let effect = *rng.pick(&["NoSchedule", "NoSchedule", "NoExecute"]);
    let mut it = rule(name)
        .with("conditions", json!(conditions))
        .taint(word(rng, &TAINTS), effect);
    let pool = |name: &str| json!({"matchLabels": {"pool": name}});
    let repair = |action: &str, most: &str| json!({"readinessTTL": "1m", "action": action, "maxUnhealthy": most});
    // What is set with this probability in percent, to one of these values.
    let mut perhaps = vec![
        (40, "nodeSelector", json!([pool("a"), pool("b")])),
        (15, "nodegate.taintPolicy", json!(["remove-only"])),
        (10, "dryRun", json!([true])),
        (8, "nodegate.suspend", json!([true])),
        (15, "nodegate.settlePeriod", json!(["10s", "1m"])),
    ];
    // Kubelets send heartbeats less often than the timeout.
    if !conditions.iter().any(|it| it["type"] == "Ready") {
        perhaps.push((35, "nodegate.heartbeatTimeout", json!(["1m", "2m"])));
    }
    if is_continuous {
        it = it.continuous();
        perhaps.extend([
            (30, "conditionPolicy", json!(["anyOf"])),
            (30, "nodegate.gracePeriod", json!(["10s", "1m"])),
            (15, "nodegate.disruption", json!([{}])),
            (15, "nodegate.disruption", json!([{"maxFirstGated": "10%"}])),
        ]);
    } else {
        let repairs = json!([repair("Release", "100%"), repair("None", "20%")]);
        perhaps.extend([
            (50, "nodegate.regateOn", json!([["Reboot"]])),
            (15, "nodegate.existingNodes", json!(["Leave"])),
            (15, "nodegate.repair", repairs),
        ]);
    }
    for (percent, field, values) in perhaps {
        let value = rng.pick(items(&values)).clone();
        if rng.chance(percent) {
            it = match field.strip_prefix("nodegate.") {
                Some(field) => it.nodegate(field, value),
                None => it.with(field, value),
            };
        }
    }
    it
}

fn change_rule(operator: Operator, (name, rule): (&str, &Rule), rng: &mut Rng) -> Operator {
    let key = rule_key(name);
    let at = sometime(rng);
    let successor = rule.clone().named(word(rng, &["six", "seven"]));
    match rng.below(14) {
        0 => operator.deletes(at, key),
        1 => operator.edits(at, key, json!({"spec": {"nodegate": { "suspend": true }}})),
        2 => operator.edits(at, key, json!({"spec": {"nodegate": { "suspend": false }}})),
        3 => operator.edits(at, key, json!({"spec": {"dryRun": false}})),
        4 => operator.deletes(at, key).creates(at, successor),
        5 => {
            let gone = at + rng.between(s(1), s(40));
            operator.creates(at, successor).deletes(gone, key)
        }
        _ => operator,
    }
}

fn change_node(operator: Operator, name: &'static str, rng: &mut Rng) -> Operator {
    let at = sometime(rng);
    match rng.below(8) {
        0 => operator.labels(at, name, &json!({"pool": word(rng, &["a", "b"])})),
        1 => {
            // Before the rules can act on it.
            operator.taints(s(14), name, &[word(rng, &TAINTS)])
        }
        _ => operator,
    }
}

fn kubelets(nodes: &[&'static str], rng: &mut Rng) -> Kubelets {
    let machines = nodes.iter().map(|name| {
        let machine = Machine::new(name)
            .label("pool", word(rng, &["a", "b"]))
            .label(GPUS, word(rng, &["2", "4", "none"]))
            .zone(word(rng, &["a", "b"]))
            .boots(rng.between(s(1), s(40)))
            .pods_after(*rng.pick(&[ms(0), s(6)]));
        if rng.chance(25) {
            machine.taint(word(rng, &TAINTS), "NoSchedule")
        } else {
            machine
        }
    });
    let mut kubelets = Kubelets::new(machines.collect());
    for name in nodes {
        for _ in 0..rng.below(3) {
            let deed = match rng.below(9) {
                0..=2 => Deed::Reboot(rng.between(s(2), s(15))),
                3 => Deed::Replace(rng.between(ms(100), s(10))),
                4 => Deed::Leave,
                5 => Deed::Die,
                6 => Deed::Offer(GPU, word(rng, &["0", "2", "4"])),
                _ => Deed::Fail(word(rng, &DAEMON_SETS), *rng.pick(&[s(5), s(20), s(3600)])),
            };
            kubelets = kubelets.then(sometime(rng), name, deed);
        }
    }
    kubelets
}

fn csi(nodes: &[&'static str], rng: &mut Rng) -> Csi {
    let mut csi = Csi::of(DRIVER, s(2), s(9));
    for name in nodes {
        if !rng.chance(15) {
            continue;
        }
        let after = rng.between(s(3), s(20));
        let returns = rng.chance(50).then_some(after);
        csi = csi.vanishes(sometime(rng), name, DRIVER, returns);
    }
    csi
}

fn reporter(reporter: Reporter, nodes: &[&'static str], rng: &mut Rng) -> Reporter {
    let mut reporter = reporter.beat(s(45));
    for name in nodes {
        if rng.chance(20) {
            reporter = reporter.ails(name);
        }
        for _ in 0..rng.below(3) {
            let order = *rng.pick(&[
                Order::Die,
                Order::Die,
                Order::Revive,
                Order::Say("False"),
                Order::Say("True"),
                Order::Say("Unknown"),
                Order::SayGood,
            ]);
            reporter = reporter.then(sometime(rng), *name, order);
        }
    }
    reporter
}

fn word(rng: &mut Rng, of: &[&'static str]) -> &'static str {
    of[rng.below(of.len())]
}

fn sometime(rng: &mut Rng) -> Time {
    rng.between(HAPPEN.0, HAPPEN.1)
}
