//! Statuses and finalizers of rules.

use serde_json::{Value, json};

use super::{Bench, object};
use crate::error::RequestError;
use crate::io::{Input, Object, Request, Seen};
use crate::survey::{
    DAEMON_SETS_OUTSIDE, DAEMON_SETS_SHUT_OUT, LEADER, LONGEST_HELD, QUEUE_DEPTH, RULES,
    RULES_BY_KIND, SUSPENDED, SYNTHESIZED_CONDITIONS, WRITES_IN_FLIGHT,
};
use crate::testing::{Builder, GATE, RuleBuilder, daemon_set, node, rule};
use nodegate_core::condition::{ComponentGroup, Watch};

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

/// The counts in a status.
fn numbers(status: &Value) -> Value {
    let fields = [
        "matchedNodes",
        "heldNodes",
        "releasedNodes",
        "failedNodeCount",
    ];
    fields
        .iter()
        .map(|field| status["nodegate"][field].clone())
        .collect()
}

#[test]
fn a_deleted_rule_does_not_wait_until_nothing_else_is_done_on_any_node() {
    let other = rule("other").waits_for("Disk").selects("a", "b");
    let other = other.taint("readiness.k8s.io/other", "NoSchedule");
    let busy = node("busy").label("a", "b").condition("Net", "True");
    let mut bench = Bench::new(&[gate(), other], &[node("n"), busy]);
    assert_eq!(bench.taints("n"), [GATE]);
    bench.held_up = |request| matches!(request, Request::PatchNode(it, _) if **it == *"busy");
    let turns = |bench: &mut Bench, disk: &str| {
        let conditions =
            json!([{"type": "Net", "status": "True"}, {"type": "Disk", "status": disk}]);
        bench.change("busy", |node| node["status"]["conditions"] = conditions);
    };
    turns(&mut bench, "True");
    bench.sees_rule(&gate().deleting());
    assert_eq!(bench.taints("n"), [""; 0]);
    let is_there = |bench: &Bench| bench.rule("r")["metadata"]["finalizers"] != Value::Null;
    assert!(is_there(&bench), "the busy node has to be evaluated once");
    turns(&mut bench, "False");
    let (id, request) = bench.pending.remove(0);
    let answer = bench.answer(request);
    bench.take(vec![Input::Answered(id, answer)]);
    assert_eq!(bench.pending.len(), 1, "it is being written again");
    assert!(!is_there(&bench));
}

#[test]
fn a_deleted_rule_does_not_wait_for_nodes_that_it_does_not_concern() {
    let of = |name: &str| {
        let gate = rule(name).waits_for("Net").selects("pool", name);
        gate.taint(&format!("readiness.k8s.io/{name}"), "NoSchedule")
    };
    let nodes = [("n", "r"), ("busy", "s")].map(|(name, pool)| node(name).label("pool", pool));
    let mut bench = Bench::new(&[of("r"), of("s")], &nodes);
    bench.held_up = |request| matches!(request, Request::PatchNode(it, _) if **it == *"busy");
    bench.change("busy", |node| {
        node["status"]["conditions"] = json!([{"type": "Net", "status": "True"}]);
    });
    assert_eq!(bench.pending.len(), 1);
    bench.sees_rule(&of("r").deleting());
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(bench.rule("r")["metadata"]["finalizers"], Value::Null);
    assert_eq!(
        bench.pending.len(),
        1,
        "the other node is still being written"
    );
}

#[test]
fn a_rule_that_cannot_be_written_says_so_once() {
    let mut bench = Bench::refusing(&[gate().without_finalizer()], &[node("n")], |request| {
        let is_rule = matches!(request, Request::PatchRule(..));
        is_rule.then(|| RequestError::Failed("forbidden".into()))
    });
    bench.wait(60_000);
    assert_eq!(bench.told(), ["FinalizerError r: forbidden"]);
    bench.refusal = |request| {
        let is_status = matches!(request, Request::PatchRuleStatus(..));
        is_status.then(|| RequestError::Failed("forbidden".into()))
    };
    bench.wait(120_000);
    assert_eq!(
        bench.told(),
        [
            "TaintAdded n: Taint 'readiness.k8s.io/gate:NoSchedule' added by rule 'r'",
            "StatusUpdateError r: forbidden"
        ]
    );
}

#[test]
fn a_status_that_cannot_be_written_is_tried_again_no_more_than_once_a_second() {
    let mut bench = Bench::refusing(&[gate()], &[node("n")], |request| {
        matches!(request, Request::PatchRuleStatus(..)).then_some(RequestError::Conflict)
    });
    for (milliseconds, tries) in [(250, 1), (900, 1), (100, 2), (900, 2), (100, 3)] {
        bench.wait(milliseconds);
        assert_eq!(bench.refused, tries);
    }
    bench.refusal = |_| None;
    bench.wait(1000);
    assert_eq!(numbers(bench.status("r")), json!([1, 1, 0, 0]));
}

#[test]
fn a_status_that_takes_the_api_server_long_is_written_less_often() {
    for (took, written) in [(10, 20), (300, 7), (3000, 2)] {
        let mut bench = Bench::new(&[gate()], &[node("n")]);
        bench.wait(3000);
        bench.held_up = |request| matches!(request, Request::PatchRuleStatus(..));
        let (mut since, mut begun) = (0, 0);
        for step in 0..2000 {
            if step % 10 == 0 {
                bench.sees(&node(&format!("n-{step}")));
            }
            bench.wait(10);
            since = if bench.pending.is_empty() {
                0
            } else {
                since + 10
            };
            if since == 10 {
                begun += 1;
            }
            if since >= took {
                bench.answers();
                since = 0;
            }
        }
        assert!((written..=written + 2).contains(&begun), "{took}: {begun}");
    }
}

/// As another Nodegate does.
fn overwrite(bench: &mut Bench) {
    let mut rule = bench.rule("r").clone();
    rule["status"]["nodegate"]["heldNodes"] = json!(7);
    bench.cluster.put(Watch::Rules, rule);
    bench.sees_rule(&gate());
}

#[test]
fn an_overwritten_status_is_written_again_at_a_limited_rate() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    bench.wait(3000);
    overwrite(&mut bench);
    bench.wait(150);
    assert_eq!(
        bench.status("r")["nodegate"]["heldNodes"],
        json!(7),
        "a moment later"
    );
    bench.wait(850);
    assert_eq!(bench.status("r")["nodegate"]["heldNodes"], json!(1));
    overwrite(&mut bench);
    bench.wait(8000);
    assert_eq!(bench.status("r")["nodegate"]["heldNodes"], json!(7));
    bench.wait(2000);
    assert_eq!(bench.status("r")["nodegate"]["heldNodes"], json!(1));
}

#[test]
fn an_instance_that_suspends_all_rules_leaves_the_status_to_one_that_works() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    bench.take(vec![Input::SuspendAll(true)]);
    bench.wait(3000);
    overwrite(&mut bench);
    bench.wait(3000);
    assert_eq!(bench.status("r")["nodegate"]["heldNodes"], json!(1));
    overwrite(&mut bench);
    bench.asked();
    bench.sees(&node("m"));
    bench.wait(500_000);
    assert_eq!(bench.asked(), [""; 0], "also for what it sees itself");
    bench.wait(200_000);
    assert_eq!(bench.asked(), ["status of r"]);
}

#[test]
fn a_status_that_an_older_crd_prunes_is_written_again_after_half_a_minute() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    bench.wait(3000);
    bench.asked();
    let mut pruned = bench.rule("r").clone();
    pruned["status"]["nodegate"].take();
    let shown = object(Watch::Rules, &pruned);
    bench.take(vec![Input::Seen(Seen::Apply(shown))]);
    bench.wait(29_000);
    assert_eq!(bench.asked(), [""; 0]);
    bench.wait(2000);
    assert_eq!(bench.asked(), ["status of r"]);
}

#[test]
fn a_daemon_set_that_a_rule_does_not_wait_for_is_told_of_once() {
    let components = rule("r").waits_for("node.gardener.cloud/CriticalComponentsReady");
    let mut bench = Bench::new(&[components], &[node("n")]);
    let show = |bench: &mut Bench, key: &str| {
        let labelled = daemon_set(key).critical().object();
        bench.take(vec![Input::Seen(Seen::Apply(Object::DaemonSet(
            ComponentGroup::Class(0),
            labelled,
        )))]);
        bench.wait(3000);
    };
    show(&mut bench, "kube-system/cni");
    assert_eq!(
        bench.told(),
        [
            "DaemonSetsShutOut r: DaemonSet kube-system/cni does not tolerate the taint \
             readiness.k8s.io/gate:NoSchedule: it cannot start on a node that has it, and is not waited for (add to its pod \
             template: tolerations: [{key: readiness.k8s.io/gate, operator: Exists}])"
        ]
    );
    let counted = |bench: &Bench| {
        let gauges = [&DAEMON_SETS_SHUT_OUT, &DAEMON_SETS_OUTSIDE];
        gauges.map(|it| bench.gauge(it, &["r"]))
    };
    assert_eq!(counted(&bench), [Some(1), Some(0)]);
    show(&mut bench, "kube-system/cni");
    assert_eq!(bench.told(), [""; 0]);
    show(&mut bench, "tenant/agent");
    assert_eq!(counted(&bench), [Some(1), Some(1)]);
    assert_eq!(
        bench.told(),
        [
            "DaemonSetsOutsideNamespaces r: DaemonSet tenant/agent is labelled as critical, but its namespace is none of class \
             'gardener': it is not waited for (add the namespace to the class in the configuration file, or take the label off)"
        ]
    );
}

#[test]
fn a_rule_that_cannot_be_used_is_told_of_once() {
    let broken = || gate().taint("node.kubernetes.io/gate", "NoSchedule");
    let mut bench = Bench::new(&[broken()], &[node("n")]);
    bench.sees_rule(&broken().label("a", "b"));
    bench.wait(5000);
    assert_eq!(
        bench.told(),
        [
            "RuleRejected r: spec.taint.key: Invalid value: \"node.kubernetes.io/gate\": taint key must start with \
             'readiness.k8s.io/'"
        ]
    );
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(bench.asked(), ["status of r"]);
    assert_eq!(numbers(bench.status("r")), json!([0, 0, 0, 0]));
}

#[test]
fn gauges_show_how_the_rules_do() {
    let nodes = [node("n"), node("m").condition("Net", "True")];
    let components = rule("c")
        .waits_for("node.gardener.cloud/CriticalPodsReady")
        .taint("readiness.k8s.io/c", "NoSchedule");
    let rules = [gate(), gate_of("dry").dry_run(), components];
    let mut bench = Bench::new(&rules, &nodes);
    bench.wait(5000);
    for (rule, nodes, longest_held) in [
        ("c", [Some(0), Some(2)], 0),
        ("dry", [None, None], 0),
        ("r", [Some(1), Some(1)], 5),
    ] {
        assert_eq!(bench.held_and_released(rule), nodes, "{rule}");
        let longest = bench.gauge(&LONGEST_HELD, &[rule]);
        assert_eq!(longest, Some(longest_held), "{rule}");
    }
    assert_eq!(bench.gauge(&RULES, &[]), Some(3));
    for (dry_run, rules) in [("true", 1), ("false", 2)] {
        let of_kind = bench.readings(&RULES_BY_KIND, &["continuous", dry_run]);
        assert_eq!(of_kind.iter().map(|it| it.1).sum::<usize>(), rules);
    }
    let synthesized = bench.readings(&SYNTHESIZED_CONDITIONS, &[]);
    let [(labels, 2)] = &synthesized[..] else {
        panic!("{synthesized:?}");
    };
    assert_eq!((&*labels[0], &*labels[2]), ("gardener", "True"));
    for (gauge, expected) in [(LEADER, 1), (QUEUE_DEPTH, 0), (WRITES_IN_FLIGHT, 0)] {
        assert_eq!(bench.gauge(&gauge, &[]), Some(expected), "{}", gauge.name);
    }
    assert_eq!(bench.taints("n"), [GATE]);
}

#[test]
fn a_rule_in_deletion_counts_the_nodes_that_it_has_released() {
    let refuses = |request: &Request| {
        let is_node = matches!(request, Request::PatchNode(..));
        is_node.then(|| RequestError::Failed("forbidden".into()))
    };
    let nodes = [
        node("n").taint(GATE, "NoSchedule"),
        node("m").condition("Net", "True"),
    ];
    let mut bench = Bench::refusing(&[gate()], &nodes, refuses);
    bench.sees_rule(&gate().deleting());
    bench.wait(2000);
    assert_eq!(bench.held_and_released("r"), [Some(1), Some(1)]);
}

fn gate_of(name: &str) -> RuleBuilder {
    rule(name)
        .waits_for("Net")
        .taint("readiness.k8s.io/dry", "NoSchedule")
}

#[test]
fn all_rules_can_be_suspended_at_once_and_go_on_as_they_say_themselves() {
    let rules = [
        rule("r").waits_for("Net"),
        rule("s")
            .waits_for("Net")
            .taint("readiness.k8s.io/s", "NoSchedule")
            .suspended(),
    ];
    let mut bench = Bench::new(&rules, &[node("a")]);
    bench.wait(3000);
    assert_eq!(bench.taints("a"), [GATE]);
    bench.told();
    bench.asked();
    bench.take(vec![Input::SuspendAll(true)]);
    bench.change("a", |node| {
        node["status"]["conditions"] = json!([{ "type": "Net", "status": "True" }]);
    });
    bench.sees(&node("b"));
    bench.wait(10_000);
    assert_eq!((bench.taints("a"), bench.taints("b")), (vec![GATE], vec![]));
    let mut asked = bench.asked();
    asked.sort();
    assert_eq!(asked, ["status of r", "status of s"], "they say so");
    let reason = |bench: &Bench, rule: &str| {
        let [status, reason] = condition(bench, rule, "Suspended")?;
        (status == "True").then_some(reason)
    };
    for name in ["r", "s"] {
        assert_eq!(reason(&bench, name).as_deref(), Some("AllRulesSuspended"));
    }
    let told = bench.told();
    let told: Vec<_> = told.iter().filter_map(|it| it.split(':').next()).collect();
    assert_eq!(told, ["RulesSuspended r", "RulesSuspended s"]);
    assert_eq!(bench.gauge(&SUSPENDED, &[]), Some(1));
    bench.take(vec![Input::SuspendAll(false)]);
    bench.wait(10_000);
    assert_eq!((bench.taints("a"), bench.taints("b")), (vec![], vec![GATE]));
    assert_eq!(bench.gauge(&SUSPENDED, &[]), Some(0));
    assert_eq!(reason(&bench, "r"), None);
    assert_eq!(reason(&bench, "s").as_deref(), Some("Suspended"));
}

/// The status condition of this type, as status and reason; `None` if there is none.
fn condition(bench: &Bench, rule: &str, kind: &str) -> Option<[String; 2]> {
    let conditions = bench.status(rule)["conditions"].as_array()?;
    let condition = conditions.iter().find(|it| it["type"] == kind)?;
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    Some([text("status"), text("reason")])
}
