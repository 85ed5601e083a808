//! The same scenario with and without a fault ends in the same objects, whatever the laws say of them. After Sieve (Sun et al.,
//! OSDI '22), whose differential oracle needs no statement of what is right.
//!
//! Compared are each node's taints of rules, the conditions that Nodegate publishes, and what each rule's status
//! says, without times. Left out are scenarios whose end depends on when things happen.

use std::collections::BTreeMap;

use nodegate_simulation::Kind;
use nodegate_simulation::sim::defect::quiet_panics;
use nodegate_simulation::sim::explore::faults::singles;
use nodegate_simulation::sim::run::{Outcome, run};
use nodegate_simulation::sim::scenarios;
use serde_json::Value;

/// How many faults of each scenario are tried, spread over all.
const FAULTS: usize = 12;
const SEED: u64 = 7;

/// The scenarios whose end depends on when things happen, and why.
#[rustfmt::skip]
const DEPEND_ON_TIME: [(&str, &str); 5] = [
    ("rule-re-created", "the rule is created again at a set time, in vain while the old one is still there"),
    ("rule-suspended", "a node stays held that is not released by the time at which the rule is suspended for good"),
    ("dry-run-again", "a bootstrap ends for good if its conditions are seen to be met before the dry run begins"),
    ("unlabelled", "nodes are gated and released by turns for ever"),
    ("replace-in-vain", "a process that ends before it has recorded a repair has one replacement more tried"),
];

/// What users see at the end, by object.
fn end(outcome: &Outcome) -> BTreeMap<String, Vec<String>> {
    let mut end = BTreeMap::new();
    for (key, node) in outcome.cluster.objects(Kind::Node) {
        let items = |path: &str| {
            let items = node.pointer(path).and_then(Value::as_array);
            items.cloned().unwrap_or_default()
        };
        let is_ours = |kind: &Value| kind.as_str().is_some_and(|it| it.contains("nodegate.dev/"));
        let taints = items("/spec/taints").into_iter();
        let taints = taints.map(|it| format!("{}:{}", it["key"], it["effect"]));
        let conditions = items("/status/conditions").into_iter();
        let conditions = conditions.filter(|it| is_ours(&it["type"]));
        let conditions =
            conditions.map(|it| format!("{} {} {}", it["type"], it["status"], it["reason"]));
        let mut all: Vec<String> = taints.chain(conditions).collect();
        all.sort();
        end.insert(key.to_string(), all);
    }
    for (key, rule) in outcome.cluster.objects(Kind::NodeReadinessRule) {
        let status = &rule["status"];
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut all: Vec<String> = conditions
            .map(|it| format!("{} {} {}", it["type"], it["status"], it["reason"]))
            .collect();
        all.sort();
        for count in ["matchedNodes", "heldNodes", "releasedNodes"] {
            all.push(format!("{count} {}", status["nodegate"][count]));
        }
        end.insert(key.to_string(), all);
    }
    end
}

#[test]
fn a_fault_does_not_change_the_final_state() {
    quiet_panics();
    let mut differences = Vec::new();
    for scenario in scenarios::all() {
        if DEPEND_ON_TIME
            .iter()
            .any(|(name, _)| *name == scenario.name())
        {
            continue;
        }
        let quiet = run(&scenario, SEED, &[], false);
        let expected = end(&quiet);
        let faults = singles(&scenario, &quiet);
        let step = (faults.len() / FAULTS).max(1);
        for fault in faults.iter().step_by(step) {
            let actual = end(&run(&scenario, SEED, std::slice::from_ref(fault), false));
            let mut objects = expected.keys().chain(actual.keys());
            if let Some(object) = objects.find(|it| expected.get(*it) != actual.get(*it)) {
                differences.push(format!(
                    "{}: {fault}: {object} ends as {:?}, and without the fault as {:?}",
                    scenario.name(),
                    actual.get(object),
                    expected.get(object)
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
