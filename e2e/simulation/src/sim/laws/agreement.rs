//! The command line agrees with the controller: at the end, `kubectl nodegate explain` reports for every node what the
//! controller has done, with the controller's reasons.
//!
//! It reads only the cluster's objects, like any user with read access. The controller is at rest, so an answer that would
//! still add or remove a taint disagrees with it. Reasons must match the rules' statuses, the conditions published on nodes, and
//! the Events that explain why nodes are held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubectl_nodegate::{
    ConditionOnNode, Lists, ResourceKind as Asked, RuleOnNode, Snapshot, State, rows_of,
    snapshot_of,
};
use nodegate_core::api::names::BOOTSTRAP_COMPLETED_PREFIX;
use nodegate_engine::notice::Notice;
use serde_json::Value;

use super::end::is_interfered_with;
use super::incidents;
use super::ledger::Glances;
use super::recall::may_wait;
use crate::sim::actors::ask::{items, text, uid};
use crate::sim::fault::{Fault, Incident};
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};
use crate::{Key, Kind};

/// How long until an Event explains why a node is held: one minute after the hold begins, which may come a heartbeat timeout
/// and a grace period after the last change.
const TOLD: Time = s(260);
/// All views are current again within this time after a fault: a watch is retried within a second and confirmed within three.
const REGAINED: Time = s(5);
/// A repair that a limit has blocked is judged again after this time at the latest.
const BLOCKED: Time = s(5 * 60);

/// The command line agrees with the controller.
pub(super) struct Agreement;

impl Law for Agreement {
    fn finally(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        // After a clock step or a stall, the controller measures other times than the command line.
        let is_of_clocks = |what| {
            matches!(
                what,
                Incident::ClockStep(..) | Incident::Suspend(_) | Incident::Freeze(_)
            )
        };
        if incidents(moment).any(|(what, ..)| is_of_clocks(what)) {
            return Ok(());
        }
        let snapshot = snapshot_of(
            lists(moment),
            moment.settings.classes.clone(),
            moment.settings.passing_taints.clone(),
        );
        let snapshot = snapshot.map_err(|error| error.to_string())?;
        for (key, node) in moment.cluster.objects(Kind::Node) {
            let now = moment.cluster.now();
            let glances = Glances::all(moment.cluster.revision());
            let waits = moment.ask(&key.name, glances, now, |it| may_wait(moment, it));
            if !is_interfered_with(moment, key, now) && waits != Some(true) {
                judge(moment, &snapshot, key, node)?;
            }
        }
        Ok(())
    }
}

/// Compares the answer for a node with what the controller has done and reported.
fn judge(
    moment: &Moment<'_>,
    snapshot: &Snapshot,
    key: &Key,
    node: &Arc<Value>,
) -> Result<(), String> {
    let rows = rows_of(snapshot, &key.name);
    for it in &rows.ok_or_else(|| format!("{key} cannot be explained"))? {
        if is_only_watched(moment, key, node, it) {
            continue;
        }
        // The command line itself says that it cannot know when late nodes are repaired.
        if repairs(moment, it) && (is_settling(moment) || may_be_blocked(moment, it)) {
            continue;
        }
        if may_have_missed_heartbeats(moment, it) {
            continue;
        }
        is_done(it).map_err(|what| format!("{key}, rule {}: {what}", it.rule))?;
        // A suspended rule keeps its old status.
        if it.state == State::Suspended {
            continue;
        }
        let told = is_in_status(moment, key, it)
            .and_then(|()| is_published(moment, key, node, it))
            .and_then(|()| is_told(moment, node, it));
        told.map_err(|what| format!("{key}, rule {}, {:?}: {what}", it.rule, it.state))?;
    }
    Ok(())
}

/// Whether a controller may not count a reporter's silence yet: it counts from the end of the last gap in its view, of which
/// the command line does not know.
fn may_have_missed_heartbeats(moment: &Moment<'_>, it: &RuleOnNode) -> bool {
    let mut unmet = it.conditions.iter().filter(|it| !it.met);
    it.state == State::Gating
        && !moment.faults.is_empty()
        && unmet.all(|it| it.reason == "HeartbeatMissed")
}

/// Whether the rule repairs late nodes.
fn repairs(moment: &Moment<'_>, it: &RuleOnNode) -> bool {
    let rule = Key::cluster(Kind::NodeReadinessRule, &it.rule);
    let rule = moment.cluster.get(&rule);
    rule.is_some_and(|rule| !rule["spec"]["nodegate"]["repair"].is_null())
}

/// Whether a controller may still extend the deadlines of late nodes by the time in which it could not observe them. Its views are
/// current again within [`REGAINED`] after a fault.
fn is_settling(moment: &Moment<'_>) -> bool {
    let mut ends = moment.faults.iter().filter_map(Fault::ends);
    ends.any(|end| moment.cluster.now() <= (end + REGAINED) * 2)
}

/// Whether a limit may have blocked the node's repair while there was a fault, of which the command line does not know.
fn may_be_blocked(moment: &Moment<'_>, it: &RuleOnNode) -> bool {
    let mut ends = moment.faults.iter().filter_map(Fault::ends);
    let promises = it.state == State::Releasing || is_overdue(it);
    promises && ends.any(|end| moment.cluster.now() <= end + REGAINED + BLOCKED)
}

/// Whether only a watcher can know what the rule concludes from a reboot: one before the bootstrap was completed, of which
/// there is no record, or one after which drivers have registered again.
fn is_only_watched(moment: &Moment<'_>, key: &Key, node: &Value, it: &RuleOnNode) -> bool {
    let rule = Key::cluster(Kind::NodeReadinessRule, &it.rule);
    let Some(rule) = moment.cluster.get(&rule) else {
        return false;
    };
    let record = format!("{BOOTSTRAP_COMPLETED_PREFIX}{}", uid(rule));
    let is_completed = node["metadata"]["annotations"].get(record).is_some();
    let is_asked = rule["spec"]["nodegate"]["regateOn"]
        .to_string()
        .contains("Reboot")
        && has_rebooted(moment, key, node);
    is_asked && (!is_completed || it.conditions.iter().any(is_of_drivers))
}

fn has_rebooted(moment: &Moment<'_>, key: &Key, node: &Value) -> bool {
    let states = moment.cluster.history(key).iter();
    let states = states.filter_map(|state| state.object.as_ref());
    let boots = states.filter(|state| uid(state) == uid(node));
    let boots: BTreeSet<_> = boots
        .map(|state| text(&state["status"]["nodeInfo"]["bootID"]))
        .collect();
    boots.len() > 1
}

/// Whether it depends on registered CSI drivers.
fn is_of_drivers(it: &ConditionOnNode) -> bool {
    matches!(it.source, "csiNode" | "criticalComponents")
}

/// Whether the answer is that the controller has not done what it should have: that is a promise, too.
fn is_overdue(it: &RuleOnNode) -> bool {
    it.why.starts_with("the controller has known this since")
}

/// Checks that the controller has done what the answer says.
fn is_done(it: &RuleOnNode) -> Result<(), String> {
    let is_right = match it.state {
        _ if is_overdue(it) => false,
        State::Held => it.tainted,
        State::NotHeld | State::Waiting => !it.tainted,
        State::Gating | State::Releasing => false,
        State::WouldHold
        | State::WouldNotHold
        | State::Abandoned
        | State::Conflicted
        | State::Suspended => true,
    };
    if is_right {
        return Ok(());
    }
    let has = if it.tainted { "has" } else { "has not" };
    Err(format!(
        "{:?} to the command line, and it {has} the taint at the end: {}",
        it.state, it.why
    ))
}

/// Checks that the rule's status agrees about the node.
fn is_in_status(moment: &Moment<'_>, key: &Key, it: &RuleOnNode) -> Result<(), String> {
    let rule = Key::cluster(Kind::NodeReadinessRule, &it.rule);
    let status = moment.cluster.get(&rule).map(|rule| &rule["status"]);
    let listed = status.map_or(&[][..], |it| items(&it["nodeEvaluations"]));
    let Some(told) = listed.iter().find(|it| it["nodeName"] == key.name) else {
        let is_short = listed.len() >= moment.settings.status_node_limit;
        let listed = || Err("its status says nothing of the node".into());
        return if is_short { Ok(()) } else { listed() };
    };
    let taint = if it.tainted { "Present" } else { "Absent" };
    if told["taintStatus"] != taint {
        return Err(format!("its status says otherwise of the taint: {told}"));
    }
    for condition in &it.conditions {
        let results = items(&told["conditionResults"]);
        let result = results.iter().find(|it| it["type"] == *condition.kind);
        let result = result.ok_or_else(|| format!("its status knows no {}", condition.kind))?;
        let (found, default) = (&result["currentStatus"], &result["defaultStatus"]);
        let status = condition.status.as_str();
        if *found != status && (*found != "Unknown" || *default != status) {
            let kind = &condition.kind;
            return Err(format!("{kind} is {status}, and in its status {result}"));
        }
    }
    Ok(())
}

/// Checks that the node carries the condition that the controller concludes, in the same words.
fn is_published(
    moment: &Moment<'_>,
    key: &Key,
    node: &Value,
    it: &RuleOnNode,
) -> Result<(), String> {
    let is_in_force = !matches!(
        it.state,
        State::WouldHold | State::WouldNotHold | State::Abandoned
    );
    if !moment.settings.publish_conditions || !is_in_force {
        return Ok(());
    }
    // Several rules may wait for a driver; the published words may be those of one that asks for more after a reboot.
    let has_rebooted = has_rebooted(moment, key, node);
    let rule = Key::cluster(Kind::NodeReadinessRule, &it.rule);
    let asked = moment
        .cluster
        .get(&rule)
        .map(|rule| &rule["spec"]["conditions"]);
    // The published condition is the same for every rule, whatever each asks of it.
    let is_judged = |it: &ConditionOnNode| {
        let mut asked = asked.into_iter().flat_map(items);
        asked.any(|asked| asked["type"] == *it.kind && !asked["nodegate"].is_null())
    };
    let is_made = |it: &&ConditionOnNode| {
        it.source != "reporter" && !it.reason.is_empty() && !(has_rebooted && is_of_drivers(it))
    };
    let made = it.conditions.iter().filter(is_made);
    for condition in made.filter(|it| !is_judged(it)) {
        let kind = &condition.kind;
        let conditions = items(&node["status"]["conditions"]);
        let published = conditions.iter().find(|it| it["type"] == **kind);
        let published = published.ok_or_else(|| format!("{kind} is not published"))?;
        let is_same = published["status"] == condition.status.as_str()
            && published["reason"] == condition.reason
            && condition.message.ends_with(text(&published["message"]));
        if !is_same {
            let ConditionOnNode {
                status,
                reason,
                message,
                ..
            } = condition;
            return Err(format!(
                "{kind} is {status:?}: {reason}: {message}, and published as {published}"
            ));
        }
    }
    Ok(())
}

/// Checks that an Event on the node says why it is held, in the same words.
fn is_told(moment: &Moment<'_>, node: &Value, it: &RuleOnNode) -> Result<(), String> {
    let is_of_class = |it: &ConditionOnNode| it.source == "criticalComponents";
    let settled = moment.calm_since + TOLD;
    if it.state != State::Held
        || it.conditions.iter().any(is_of_class)
        || it.why.is_empty()
        || !moment.faults.is_empty()
        || moment.cluster.now() < settled
    {
        return Ok(());
    }
    let is_of_this = |notice: &&Notice| {
        let rule = notice.related.as_ref();
        notice.topic.reason == "NodeHeld"
            && notice.about.uid.as_deref() == Some(uid(node))
            && rule.is_some_and(|rule| rule.name == it.rule)
    };
    let told = moment.cluster.notices().iter().rev().find(is_of_this);
    let told = told.ok_or_else(|| format!("nobody was told why: {}", it.why))?;
    if without_numbers(&told.note).ends_with(&without_numbers(&it.why)) {
        Ok(())
    } else {
        Err(format!(
            "because {:?}, and was told: {:?}",
            it.why, told.note
        ))
    }
}

/// Removes the pods' suffixes: a replaced pod causes no new Event.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|it| !it.is_ascii_digit()).collect()
}

/// The cluster's objects, as listed.
fn lists(moment: &Moment<'_>) -> Lists {
    let kinds = [
        (Kind::NodeReadinessRule, Asked::Rules),
        (Kind::Node, Asked::Nodes),
        (Kind::CsiNode, Asked::CsiNodes),
        (Kind::DaemonSet, Asked::DaemonSets),
        (Kind::Pod, Asked::Pods),
        (Kind::ResourceSlice, Asked::ResourceSlices),
        (Kind::NodeClaim, Asked::NodeClaims),
        (Kind::NodePool, Asked::NodePools),
    ];
    let objects = kinds.into_iter().map(|(kind, asked)| {
        let objects = moment.cluster.objects(kind);
        (
            asked,
            objects.map(|(_, object)| decided_on(object)).collect(),
        )
    });
    let objects = objects.collect::<BTreeMap<_, _>>();
    Lists::of(moment.cluster.wall(), objects)
}

/// An object as JSON. A rule's failures are left out: what it has decided counts, whether or not it could be carried out.
fn decided_on(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("failedNodes");
    }
    object.to_string()
}
