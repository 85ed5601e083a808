//! A deleted rule goes exactly when its nodes are clean: otherwise nobody could tell who owns its taints.

use nodegate_core::api::names::FINALIZER;

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
        for change in moment.new_changes {
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
