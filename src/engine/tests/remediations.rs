//! Late nodes that other controllers are asked to remediate.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Bench, Input, Refusal};
use crate::engine::RequestError;
use crate::engine::io::Request;
use crate::engine::kind::Watch;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};

const DEADLINE: &str = "nodegate.dev/ready-deadline-r-uid";
const REMEDIATION: &str = "nodegate.dev/remediation-r-uid";
const MADE: &str = "make Reboot fencing/n";
const UNMADE: &str = "unmake Reboot fencing/n";

fn repairing(action: &str) -> RuleBuilder {
    rule("r").waits_for("Net").bootstrap_only().spec(&format!(
        "repair: {{readinessTTL: 1m, action: {action}, maxUnhealthy: 100%, remediationTemplate: {{apiVersion: \
         example.com/v1, kind: RebootTemplate, name: reboot, namespace: fencing}}}}"
    ))
}

/// An engine whose nodes have just been late.
fn late(rules: &[RuleBuilder], nodes: &[NodeBuilder], refusal: Refusal) -> Bench {
    let mut bench = Bench::new(rules, nodes);
    bench.wait(59_000);
    bench.asked();
    bench.told();
    bench.counted();
    bench.refusal = refusal;
    bench.wait(5000);
    bench
}

fn record(bench: &Bench) -> Value {
    let record = bench.node("n")["metadata"]["annotations"][REMEDIATION].as_str();
    record.map_or(Value::Null, |it| serde_json::from_str(it).unwrap())
}

fn becomes_ready(bench: &mut Bench) {
    bench.change("n", |node| {
        node["status"]["conditions"] = json!([{"type": "Net", "status": "True"}]);
    });
    bench.wait(3000);
}

/// The same node, seen by a new process.
fn taken_over(bench: &Bench, rules: &[RuleBuilder]) -> Bench {
    let node = bench.node("n").clone();
    let mut next = Bench::new(rules, &[]);
    next.asked();
    next.shows(Watch::Nodes, node);
    next.wait(70_000);
    next
}

fn remediations(bench: &mut Bench) -> Vec<String> {
    let mut asked = bench.asked();
    asked.retain(|it| it.contains("make ") || it.starts_with("annotate "));
    asked
}

#[test]
fn a_remediation_is_made_once_and_deleted_when_the_node_opens() {
    let rules = [repairing("Remediate")];
    let mut bench = late(&rules, &[node("n")], |_| None);
    assert_eq!(bench.asked(), ["node n", "read n", MADE, "node n"]);
    let told = bench.told();
    assert_eq!(
        told,
        [
            "NodeRemediationCreated n: Reboot fencing/n created by rule 'r'. The node should have been ready by 2026-01-01T00:02:40Z: \
             Net is not reported (counts as Unknown, must be True)"
        ]
    );
    assert_eq!(
        bench.counted(),
        [r#"Repaired { rule: "r", action: "Remediate" }"#]
    );
    assert_eq!(record(&bench)["done"], true);
    // Whoever leads, and whatever somebody does to the remediation.
    bench.wait(600_000);
    assert_eq!(remediations(&mut bench), [""; 0]);
    let mut next = taken_over(&bench, &rules);
    assert_eq!(remediations(&mut next), [""; 0]);

    for bench in [&mut bench, &mut next] {
        becomes_ready(bench);
        assert_eq!(bench.taints("n"), [""; 0]);
        assert_eq!(remediations(bench), [UNMADE]);
        assert_eq!(record(bench), Value::Null);
        assert_eq!(
            bench.told().last().unwrap(),
            "NodeRemediationDeleted n: Reboot fencing/n deleted"
        );
        bench.wait(600_000);
        assert_eq!(remediations(bench), [""; 0]);
    }
}

#[test]
fn a_remediation_that_a_process_has_only_announced_is_made_or_withdrawn_by_the_next() {
    let rules = [repairing("Remediate")];
    for ready in [false, true] {
        let mut bench = late(&rules, &[node("n")], |request| {
            let makes = matches!(request, Request::MakeRemediation { .. });
            makes.then(|| RequestError::Unreachable("nothing listens".into()))
        });
        let pending = record(&bench);
        assert_eq!(pending["object"]["kind"], "Reboot");
        assert!(pending.get("done").is_none());
        if ready {
            bench.cluster.put(Watch::Nodes, {
                let mut node = bench.node("n").clone();
                node["status"]["conditions"] = json!([{"type": "Net", "status": "True"}]);
                node
            });
        }
        let mut next = taken_over(&bench, &rules);
        let expected = if ready { UNMADE } else { MADE };
        assert_eq!(remediations(&mut next), [expected]);
        assert_eq!(record(&next).is_null(), ready);
    }
}

#[test]
fn what_is_on_record_stays_unless_a_live_read_shows_that_its_rule_is_gone() {
    let done = json!({
        "deadline": at(110).to_string(),
        "object": {"api-version": "example.com/v1", "kind": "Reboot", "namespace": "fencing"},
        "done": true,
    });
    for (name, record, is_there, expected) in [
        ("late", None, true, &[MADE][..]),
        ("remediated", Some(&done), true, &[]),
        (
            "remediated under a rule that is gone",
            Some(&done),
            false,
            &[UNMADE],
        ),
    ] {
        let mut bench = Bench::new(&[], &[]);
        let mut rule = repairing("Remediate");
        if is_there {
            bench.cluster.put(Watch::Rules, rule.json().clone());
        }
        // The watch shows the node before its rule.
        let mut node = node("n").taint(GATE, "NoSchedule");
        node = node.annotation(DEADLINE, &at(110).to_string());
        if let Some(record) = record {
            node = node.annotation(REMEDIATION, &record.to_string());
        }
        bench.sees(&node);
        bench.wait(20_000);
        assert_eq!(remediations(&mut bench), expected, "{name}");
        let annotations = &bench.node("n")["metadata"]["annotations"];
        assert_eq!(annotations[DEADLINE].is_string(), is_there, "{name}");
        assert_eq!(annotations[REMEDIATION].is_string(), is_there, "{name}");
    }
}

#[test]
fn a_new_deadline_is_a_new_remediation() {
    let mut bench = late(&[repairing("Remediate")], &[node("n")], |_| None);
    assert_eq!(remediations(&mut bench), [MADE]);
    bench.change("n", |node| {
        let annotations = node["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove(DEADLINE);
    });
    bench.wait(58_000);
    assert_eq!(remediations(&mut bench), [""; 0]);
    bench.wait(5000);
    assert_eq!(remediations(&mut bench), [MADE]);
}

#[test]
fn a_rule_that_goes_or_asks_for_something_else_withdraws_its_remediation() {
    type Change = fn(&mut Bench);
    let deleted: Change = |bench| {
        let mut rule = bench.rule("r").clone();
        rule["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:10:00Z");
        bench.shows(Watch::Rules, rule);
    };
    let another_action: Change = |bench| {
        let mut rule = bench.rule("r").clone();
        rule["spec"]["repair"]["action"] = json!("None");
        bench.shows(Watch::Rules, rule);
    };
    let no_repair: Change = |bench| {
        let mut rule = bench.rule("r").clone();
        rule["spec"].as_object_mut().unwrap().remove("repair");
        bench.shows(Watch::Rules, rule);
    };
    let leaves: Change = |bench| {
        bench.change("n", |node| node["metadata"]["labels"] = json!({}));
    };
    for (name, change, forbidden) in [
        ("deleted", deleted, false),
        ("deleted, and the remediation may not be", deleted, true),
        ("another action", another_action, false),
        ("no repair", no_repair, false),
        ("not selected", leaves, false),
    ] {
        let mut bench = late(&[repairing("Remediate")], &[node("n")], |_| None);
        assert_eq!(remediations(&mut bench), [MADE], "{name}");
        if forbidden {
            bench.refusal = |request| {
                let deletes = matches!(request, Request::DeleteRemediation { .. });
                deletes.then(|| RequestError::Failed("forbidden".into()))
            };
        }
        change(&mut bench);
        bench.wait(10_000);
        assert_eq!(record(&bench), Value::Null, "{name}");
        if forbidden {
            let told = bench.told();
            assert!(
                told.iter()
                    .any(|it| it.starts_with("NodeRemediationLeft n"))
            );
        } else {
            assert_eq!(remediations(&mut bench), [UNMADE], "{name}");
        }
        if name.starts_with("deleted") {
            let finalizers = &bench.rule("r")["metadata"]["finalizers"];
            assert_eq!(*finalizers, Value::Null, "{name}");
        }
    }
}

#[test]
fn a_node_is_left_where_its_rule_is_suspended_before_the_last_read_is_answered() {
    let mut bench = Bench::new(&[repairing("Remediate")], &[node("n")]);
    bench.wait(59_000);
    bench.held_up = |request| matches!(request, Request::ReadNode { .. });
    bench.wait(2000);
    assert_eq!(bench.pending.len(), 1, "it was about to be asked for");
    bench.held_up = |_| false;
    bench.take(vec![Input::SuspendAll(true)]);
    bench.answers();
    bench.wait(60_000);
    assert_eq!(remediations(&mut bench), [""; 0]);
    bench.take(vec![Input::SuspendAll(false)]);
    bench.wait(60_000);
    assert_eq!(remediations(&mut bench), [MADE]);
}

#[test]
fn a_remediation_that_the_api_server_fails_to_delete_is_deleted_when_it_can() {
    let mut bench = late(&[repairing("Remediate")], &[node("n")], |_| None);
    assert_eq!(remediations(&mut bench), [MADE]);
    bench.refusal = |request| {
        let deletes = matches!(request, Request::DeleteRemediation { .. });
        deletes.then(|| RequestError::TimedOut(Duration::from_secs(10)))
    };
    becomes_ready(&mut bench);
    assert_eq!(record(&bench)["done"], true, "it is not lost sight of");
    bench.refusal = |_| None;
    bench.wait(60_000);
    assert_eq!(remediations(&mut bench), [UNMADE]);
    assert_eq!(record(&bench), Value::Null);
}

#[test]
fn a_refused_remediation_is_told_by_the_rule_until_it_succeeds() {
    let unavailable = |bench: &Bench| {
        let conditions = bench.status("r")["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|it| it["type"] == "RepairUnavailable");
        found.map(|it| it["message"].as_str().unwrap().to_owned())
    };
    let mut bench = late(&[repairing("Remediate")], &[node("n")], |request| {
        let makes = matches!(request, Request::MakeRemediation { .. });
        makes.then(|| RequestError::Failed("Reboot is not installed".into()))
    });
    bench.wait(60_000);
    let message = "no node can be repaired: Reboot is not installed";
    assert_eq!(unavailable(&bench).as_deref(), Some(message));
    assert_eq!(
        bench.told(),
        ["NodeRepairImpossible n: Rule 'r' cannot repair this node: Reboot is not installed"]
    );
    assert!(
        bench
            .counted()
            .contains(&r#"RepairFailed { rule: "r" }"#.to_owned())
    );
    assert_eq!(bench.taints("n"), [GATE]);
    bench.refusal = |_| None;
    bench.wait(60_000);
    assert_eq!(remediations(&mut bench), [MADE]);
    assert_eq!(unavailable(&bench), None);
}

#[test]
fn the_machine_of_a_node_is_annotated_once() {
    let of_machine = node("n")
        .annotation("cluster.x-k8s.io/machine", "m")
        .annotation("cluster.x-k8s.io/cluster-namespace", "capi");
    let rules = [repairing("AnnotateMachine")];
    let mut bench = late(&rules, &[of_machine], |_| None);
    let annotated = "annotate capi/m of n";
    assert_eq!(bench.asked(), ["node n", "read n", annotated, "node n"]);
    let told = bench.told();
    assert!(told[0].starts_with("MachineAnnotated n: Machine capi/m annotated by rule 'r'. "));
    bench.wait(600_000);
    let mut next = taken_over(&bench, &rules);
    for bench in [&mut bench, &mut next] {
        becomes_ready(bench);
        assert_eq!(remediations(bench), [""; 0]);
        assert_eq!(record(bench), Value::Null);
    }
}

#[test]
fn a_node_without_a_machine_cannot_be_repaired_through_it() {
    let mut bench = late(&[repairing("AnnotateMachine")], &[node("n")], |_| None);
    assert_eq!(remediations(&mut bench), [""; 0]);
    assert_eq!(
        bench.told(),
        [
            "NodeRepairImpossible n: Rule 'r' cannot repair this node: the node's annotations name no Cluster API Machine"
        ]
    );
}
