//! A deleted rule goes exactly when its nodes are clean: otherwise nobody could tell who owns its taints.

use nodegate::api::names::FINALIZER;

use super::bootstrap::owners;
use super::ledger::is_ours;
use super::rule::{TaintId, governing};
use super::{longest_age, seconds};
use crate::sim::actors::ask::{items, text};
use crate::sim::law::{Law, Moment};
use crate::{Key, Kind};

pub(super) struct Deletion;

impl Law for Deletion {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        let has_ours = |rule: &serde_json::Value| {
            let mut finalizers = items(&rule["metadata"]["finalizers"]).iter();
            finalizers.any(|finalizer| finalizer == FINALIZER)
        };
        for change in moment.new_changes() {
            if change.key.kind != Kind::NodeReadinessRule || !is_ours(change.who) {
                continue;
            }
            let Some(rule) = change.before.as_ref().filter(|rule| has_ours(rule)) else {
                continue;
            };
            if change.after.as_ref().is_some_and(|rule| has_ours(rule)) {
                continue;
            }
            let uid = text(&rule["metadata"]["uid"]);
            let taint = TaintId::of(&rule["spec"]["taint"]);
            let others = moment.rules(change.revision - 1);
            // Another rule that governs the taint may take it over later.
            let is_left = |node: &serde_json::Value| {
                taint.is_on(node)
                    && owners(node, &taint).contains(&uid)
                    && governing(&others, &taint, node).is_none()
            };
            let since = change.at.saturating_sub(longest_age(moment));
            let then = moment.cluster.at(since);
            let now = moment.cluster.as_of(change.revision - 1);
            let mut left = now.objects(Kind::Node).filter(|(_, node)| is_left(node));
            let was_left = |key| then.get(key).is_some_and(|node| is_left(node));
            // While two lead, the other one may put the taint back before it sees the deletion. It removes it then.
            let is_put_back = |key: &Key| {
                let recent = moment.cluster.changes().iter().rev();
                let mut recent = recent.take_while(|it| it.at >= since);
                let has = |node: &Option<_>| node.as_deref().is_some_and(|it| taint.is_on(it));
                recent.any(|it| {
                    it.key == *key
                        && is_ours(it.who)
                        && it.who != change.who
                        && !has(&it.before)
                        && has(&it.after)
                })
            };
            let stays = |key| was_left(key) && !is_put_back(key);
            if let Some((node, _)) = left.find(|(key, _)| stays(key)) {
                return Err(format!(
                    "{:?} let {} go at {}, and its taint {taint} is on {node}",
                    change.who,
                    change.key,
                    seconds(change.at),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::Who;
    use crate::sim::laws::testing::{Story, gate, node, taint};
    use crate::{Part, Patch, Request};

    #[test]
    fn a_rule_does_not_go_before_its_taints() {
        for (cleans, back_by, fine) in [
            (true, None, true),
            (false, None, false),
            (true, Some(0), false),
            (true, Some(1), true),
        ] {
            let mut story = Story::under(json!({}));
            story.create(node("n"));
            gate(&mut story, "n");
            story.at(100);
            story.delete_rule("r");
            if cleans {
                story.patch_by_nodegate("n", json!({ "spec": { "taints": null } }));
            }
            if let Some(instance) = back_by {
                let patch = Patch::Merge(json!({ "spec": { "taints": [taint()] } }));
                let (key, part) = (Key::cluster(Kind::Node, "n"), Part::Main);
                let request = Request::Patch { key, part, patch };
                story.request(Who::Nodegate(instance), &request);
            }
            story.patch_rule_by_nodegate("r", json!({ "metadata": { "finalizers": null } }));
            story.judged(&mut Deletion, fine, format_args!("{cleans} {back_by:?}"));
        }
    }
}
