//! Annotations alone remove nobody's taint: whoever may annotate a node gains nothing by it (`docs/security.md`). A taint goes
//! only for a rule that is or was about it. Without a rule, the taint itself must say when Nodegate added it. Another project's
//! taint goes only for a rule that selects the node.

use super::bootstrap::owners;
use super::rule::{OUR_TAINTS, TaintId};
use super::{NodeWrite, longest_age, seconds};
use crate::sim::law::{Law, Moment};

pub(super) struct Forgery;

impl Law for Forgery {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            let (at, revision) = (write.change.at, write.change.revision);
            let from = at.saturating_sub(longest_age(moment));
            for taint in write.removed() {
                let is_for_a_rule = moment.was_ever(write.node(), (from, at), revision, |facts| {
                    let mut rules = facts.rules.iter();
                    rules.any(|rule| rule.is_about(&taint) && rule.selects(facts.node))
                });
                if is_for_a_rule {
                    continue;
                }
                let of_this = TaintId::all(write.before).find(|(it, _)| *it == taint);
                let says_when = of_this.is_some_and(|(_, taint)| taint.get("timeAdded").is_some());
                let owners = owners(write.before, &taint);
                let is_of_a_rule = moment
                    .all_rules()
                    .any(|rule| rule.is_about(&taint) && owners.contains(&rule.uid.as_str()));
                let is_ours = taint.key.starts_with(OUR_TAINTS);
                if !is_ours || owners.is_empty() || !(is_of_a_rule || says_when) {
                    return Err(format!(
                        "instance {} removed {taint} from node {} at {}, which no rule there was about, on the word of {}",
                        write.instance,
                        write.node(),
                        seconds(at),
                        write.before["metadata"]["annotations"],
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
    use crate::sim::laws::testing::{Story, TAINT, node, taint};

    #[test]
    fn an_annotation_alone_justifies_no_removal() {
        let forged = |uid: &str, key: &str| {
            let value = json!({ "rule-name": "r", "taint-key": key, "taint-effect": "NoSchedule" });
            json!({ format!("nodegate.dev/taint-added-by-{uid}"): value.to_string() })
        };
        let dated =
            json!({ "key": TAINT, "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z" });
        let gpu = json!({ "key": "example.com/gpu", "effect": "NoSchedule" });
        for (name, pool, uid, taint, fine) in [
            ("selected", "a", "", taint(), true),
            ("not selected", "b", "", taint(), false),
            ("not selected, annotated", "b", "rule", taint(), true),
            ("annotated for nobody", "b", "gone", taint(), false),
            ("annotated for nobody, dated", "b", "gone", dated, true),
            ("another project's", "a", "rule", gpu, false),
        ] {
            let mut story = Story::under(json!({}));
            let uid = if uid == "rule" {
                story.uid_of_rule("r")
            } else {
                uid.to_owned()
            };
            let mut node = node("n");
            node["metadata"]["labels"]["pool"] = json!(pool);
            if !uid.is_empty() {
                node["metadata"]["annotations"] = forged(&uid, taint["key"].as_str().unwrap());
            }
            node["spec"]["taints"] = json!([taint]);
            story.create(node);
            story.patch_by_nodegate("n", json!({ "spec": { "taints": null } }));
            story.judged(&mut Forgery, fine, name);
        }
    }
}
