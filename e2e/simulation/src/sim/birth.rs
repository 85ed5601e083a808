//! The admission policy of `config/birth` in the model's API server: nodes are created with the taints of their rules.

use nodegate_core::api::RegateOn;
use nodegate_core::api::names::TAINT_ADDED_BY_PREFIX;
use serde_json::{Value, json};

use super::actors::ask::items;
use super::laws::rule::Rule;
use crate::{Kind, Server};

pub(super) fn gate_at_birth(server: &mut Server) {
    server.admit_nodes_by(|server, node| {
        let rules = server.objects(Kind::NodeReadinessRule);
        let in_use = rules.map(|(_, object)| object).filter(|it| is_in_use(it));
        for rule in in_use.filter_map(|object| Rule::read(object)) {
            if rule.is_live() && rule.adds() && rule.has_finalizer && rule.selects(node) {
                gate(node, &rule);
            }
        }
    });
}

/// Whether the rule's status says neither that it is not accepted nor that all rules are suspended.
fn is_in_use(rule: &Value) -> bool {
    let mut conditions = items(&rule["status"]["conditions"]).iter();
    !conditions.any(|it| {
        (it["type"] == "Accepted" && it["status"] == "False") || it["reason"] == "AllRulesSuspended"
    })
}

fn gate(node: &mut Value, rule: &Rule) {
    let is_completed = rule.is_bootstrap()
        && !rule.ours.regate_on.contains(&RegateOn::Reboot)
        && rule.recorded_on(node).is_some();
    let taint = rule.taint();
    if is_completed || taint.is_on(node) {
        return;
    }
    let put_on = json!({"key": taint.key, "effect": taint.effect});
    match node["spec"]["taints"].as_array_mut() {
        Some(taints) => taints.push(put_on),
        None => node["spec"]["taints"] = json!([put_on]),
    }
    let mut owner = json!({
        "rule-name": rule.name,
        "taint-key": taint.key,
        "taint-effect": taint.effect,
    });
    if !rule.is_bootstrap() {
        owner["joining"] = json!(true);
    }
    let key = format!("{TAINT_ADDED_BY_PREFIX}{}", rule.uid);
    node["metadata"]["annotations"][key] = json!(owner.to_string());
}
