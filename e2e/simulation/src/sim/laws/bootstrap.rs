//! No rule adds its taint to a node whose completed bootstrap is on record, for this boot where the rule asks for that. The
//! record stays until the rule is deleted. Of a rule that goes by revisions or maintenance, the law about gatings knows when it
//! counts.

use std::sync::Arc;

use nodegate_core::api::RegateOn;
use nodegate_core::api::names::{BOOTSTRAP_COMPLETED_PREFIX, TAINT_ADDED_BY_PREFIX};
use serde_json::Value;

use super::rule::{Rule, TaintId};
use super::{NodeWrite, seconds};
use crate::sim::actors::ask::annotations;
use crate::sim::law::{Law, Moment};

pub(super) struct Bootstrap;

/// The UIDs of the rules that own a taint, by the node's annotations.
pub(super) fn owners<'a>(node: &'a Value, taint: &TaintId) -> Vec<&'a str> {
    let mut owners = Vec::new();
    for (uid, value) in annotations(node, TAINT_ADDED_BY_PREFIX) {
        let value: Value = serde_json::from_str(value).unwrap_or_default();
        if value["taint-key"] == *taint.key && value["taint-effect"] == *taint.effect {
            owners.push(uid);
        }
    }
    owners
}

/// The rule that a taint of the node was added for, as it was before this revision.
pub(super) fn owner(
    moment: &Moment<'_>,
    node: &Value,
    taint: &TaintId,
    before: u64,
) -> Option<Arc<Rule>> {
    let owners = owners(node, taint);
    let mut rules = moment.rules(before - 1).into_iter();
    rules.find(|rule| owners.contains(&rule.uid.as_str()))
}

/// Whether the rule never gates the node again.
fn is_done(rule: &Rule, node: &Value) -> bool {
    let comes_and_goes = |it: &RegateOn| matches!(it, RegateOn::Revision | RegateOn::Maintenance);
    rule.is_bootstrap()
        && !rule.ours.regate_on.iter().any(comes_and_goes)
        && rule.is_completed_on(node)
}

impl Law for Bootstrap {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.added() {
                for owner in owners(write.after, &taint) {
                    let mut rules = moment
                        .all_rules()
                        .filter(|rule| rule.uid == owner)
                        .peekable();
                    let is_completed =
                        rules.peek().is_some() && rules.all(|rule| is_done(rule, write.before));
                    if is_completed {
                        return Err(format!(
                            "instance {} put {taint} on node {} at {} for the rule {owner}, whose bootstrap is on record \
                             there: {}",
                            write.instance,
                            write.node(),
                            seconds(write.change.at),
                            write.before["metadata"]["annotations"],
                        ));
                    }
                }
            }
            for key in write.forgotten() {
                let Some(id) = key.strip_prefix(BOOTSTRAP_COMPLETED_PREFIX) else {
                    continue;
                };
                let is_its = |uid: &str, name: &str| uid == id || name == id;
                let mut rules = moment.all_rules();
                if !rules.any(|rule| rule.is_deleting && is_its(&rule.uid, &rule.name)) {
                    return Err(format!(
                        "instance {} took {key} off node {} at {}, and the rule was never deleted",
                        write.instance,
                        write.node(),
                        seconds(write.change.at),
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::laws::testing::{Story, node};

    #[test]
    fn a_completion_is_removed_only_with_its_rule() {
        for deleted in [true, false] {
            let mut story = Story::under(json!({ "enforcementMode": "bootstrap-only" }));
            let key = format!(
                "readiness.k8s.io/bootstrap-completed-{}",
                story.uid_of_rule("r")
            );
            let mut completed = node("n");
            completed["metadata"]["annotations"] = json!({ &key: r#"{"rule-name":"r"}"# });
            story.create(completed);
            if deleted {
                story.delete_rule("r");
            }
            story.patch_by_nodegate("n", json!({ "metadata": { "annotations": { key: null } } }));
            story.judged(&mut Bootstrap, deleted, "");
        }
    }
}
