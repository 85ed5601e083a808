//! Faults of rules, and conflicts between them.

use k8s_openapi::api::core::v1::Container;

use crate::snapshot::{Snapshot, arguments};
use nodegate_cluster::ResourceKind;
use nodegate_core::api::{Duration, NodeReadinessRuleSpec, PauseReason};
use nodegate_core::condition::Source;
use nodegate_core::finding::{Around, Backing, Check, Finding, Severity, evicts, short_heartbeat};
use nodegate_core::rule::{CompiledSpec, RequiredCondition, Rule};
use nodegate_core::text::enumerated;
use nodegate_engine::{HELD_BACK, holding, says};

/// The default heartbeat period of Nodegate's reporter.
const REPORTERS_BEAT: Duration = Duration::from_secs(300);

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in snapshot.view.rules().rules() {
        found.extend(rejected(rule));
        found.extend(failing(snapshot, rule));
        found.extend(without_nodes(snapshot, rule));
    }
    for (rule, spec) in snapshot.usable() {
        found.extend(conflicts(snapshot, rule));
        found.extend(of_waits(snapshot, rule, spec));
        found.extend(scheduler_waits(snapshot, rule, spec));
        found.extend(heartbeat(snapshot, rule, spec));
    }
    found
}

fn rejected(rule: &Rule) -> Option<Finding> {
    // What no class makes is a finding of its own.
    let why = rule
        .trouble()
        .filter(|_| rule.pruned || rule.spec.is_err())?;
    let fix = if rule.pruned {
        "kubectl apply --server-side --force-conflicts -k config/crd, and apply the rule again"
    } else {
        "correct the field; until then the rule has no effect"
    };
    Some(Finding::of_rule(Check::REJECTED, &rule.name, why, fix))
}

/// What the controller says of the rule's nodes: a check reads no pods.
fn without_nodes(snapshot: &Snapshot, rule: &Rule) -> Option<Finding> {
    let status = &snapshot.view.cached_rules().get(&rule.name)?.object.status;
    let mut said = [Check::MET_BY_NO_NODE, Check::SELECTS_NO_NODE].into_iter();
    said.find_map(|check| {
        let message = &holding(status, check.published[0].0)?.message;
        Some(Finding::of_rule(check, &rule.name, message, ""))
    })
}

/// The rules that mean something else to the Node Readiness Controller. A dry run changes nothing there either.
pub(crate) fn upstream(snapshot: &Snapshot) -> Vec<Finding> {
    const FIX: &str = "set dryRun: true in the rule's file, or delete the rule, before the other controller starts";
    let rules = snapshot.view.cached_rules().values();
    let found = rules.filter_map(|cached| {
        let (rule, written) = (&cached.rule, cached.object.spec.as_ref().ok());
        if rule.deleting || written.is_some_and(|spec| spec.dry_run) {
            return None;
        }
        let has_ours = written.is_some_and(NodeReadinessRuleSpec::has_nodegate);
        let ours = has_ours.then(|| "its fields under nodegate".to_owned());
        let made = rule.spec.iter().flat_map(|spec| &spec.conditions);
        let made = made.filter(|it| it.source != Source::Node);
        let is_idle =
            rule.trouble().is_some() || says(&cached.object.status, HELD_BACK, rule.generation);
        let idle = is_idle.then(|| "why it changes nothing here".to_owned());
        let made = made.map(|it| it.kind.to_string());
        let unknown: Vec<String> = ours.into_iter().chain(made).chain(idle).collect();
        let message = format!(
            "the other controller does not know {}: it may gate nodes that are left alone here",
            enumerated(unknown.iter().cloned())
        );
        let found = || Finding::of_rule(Check::OTHER_MEANING, &rule.name, message, FIX);
        (!unknown.is_empty()).then(found)
    });
    found.collect()
}

fn failing(snapshot: &Snapshot, rule: &Rule) -> Option<Finding> {
    const FIX: &str = "let what refuses it admit the controller's writes of nodes";
    let status = &snapshot.view.cached_rules().get(&rule.name)?.object.status;
    let failed = status.failed_nodes.iter();
    let failed = failed.map(|it| (&it.node_name, it.message.as_deref(), FIX));
    let pauses = status.nodegate.iter().flat_map(|it| &it.pauses);
    let opposed = pauses.filter(|it| it.reason != PauseReason::AbsenceNotLasted);
    let pauses = opposed.map(|it| (&it.node_name, Some(&*it.message), ""));
    let (node, why, fix) = failed.chain(pauses).next()?;
    let why = why.unwrap_or_default();
    let what = format!("it cannot be applied to some nodes, such as node/{node}: {why}");
    Some(Finding::of_rule(Check::FAILING, &rule.name, what, fix))
}

fn conflicts<'a>(snapshot: &'a Snapshot, rule: &'a Rule) -> impl Iterator<Item = Finding> {
    const FIX: &str =
        "give one of them another taint key, or node selectors that match no node in common";
    let earlier = snapshot.usable();
    let earlier = earlier.take_while(|(other, _)| other.name != rule.name);
    let conflicts = earlier.filter_map(|(other, _)| rule.conflict_with(other));
    conflicts.map(|it| Finding::of_rule(Check::CONFLICT, &rule.name, it.to_string(), FIX))
}

/// What is wrong with the spec, and with what stands behind its conditions.
fn of_waits(snapshot: &Snapshot, rule: &Rule, spec: &CompiledSpec) -> Vec<Finding> {
    let view = &snapshot.view;
    let nodes = (snapshot.has_read(ResourceKind::Nodes)).then(|| view.nodes().collect());
    let drivers = (snapshot.has_read(ResourceKind::CsiNodes)).then(|| view.csi_drivers().collect());
    let mut around = Around::watched(&rule.uid, spec, view.cluster(), nodes, drivers);
    around.with_future_nodes = true;
    around.standing = Some(&snapshot.standing);
    if !snapshot.has_read(ResourceKind::DaemonSets) {
        around.named.clear();
        around.labelled.clear();
    }
    let mut found = Backing::of(&rule.name, spec, &around).findings;
    snapshot.remedy(rule, &mut found);
    // Without the configuration, the cluster may have other classes.
    if !snapshot.has_read(ResourceKind::ConfigMaps) {
        found.retain(|it| it.check != Check::EMPTY_CLASS);
    }
    found.extend(evicts(&rule.name, spec, true));
    // What is not among files may be elsewhere.
    let is_made = |it: &RequiredCondition| it.source != Source::Nobody;
    if snapshot.manifests.are_files && spec.conditions.iter().all(is_made) {
        // A rule alone says nothing of what there is.
        if snapshot.manifests.daemon_sets.is_empty() {
            found.retain(|it| it.check != Check::NO_SUCH_DAEMON_SET);
        }
        let elsewhere = [Check::NO_SUCH_DAEMON_SET.id, Check::NOBODY.id];
        let found = found.iter_mut();
        for finding in found.filter(|it| elsewhere.contains(&it.check.id)) {
            finding.check.severity = Severity::Warning;
        }
    }
    found
}

/// CSI drivers that the rule names, and without which the scheduler keeps pods with their volumes off a node anyway.
fn scheduler_waits(snapshot: &Snapshot, rule: &Rule, spec: &CompiledSpec) -> Vec<Finding> {
    const FIX: &str = "leave the condition out where only pods with its volumes need the driver";
    let found = spec.conditions.iter().filter_map(|it| match &it.source {
        Source::CsiDriver(driver) if snapshot.manifests.csi_drivers.get(driver) == Some(&true) => {
            let what = format!(
                "the scheduler itself keeps pods with volumes of {driver} off nodes without that driver (its CSIDriver has \
                 preventPodSchedulingIfMissing): what the rule adds is that all other pods wait, too"
            );
            Some(Finding::of_rule(Check::SCHEDULER_WAITS, &rule.name, what, FIX))
        }
        _ => None,
    });
    found.collect()
}

fn heartbeat(snapshot: &Snapshot, rule: &Rule, spec: &CompiledSpec) -> Vec<Finding> {
    const FIX: &str = "shorten the reporter's HEARTBEAT_PERIOD, or lengthen the heartbeatTimeout";
    let Some(timeout) = spec.ours.heartbeat_timeout else {
        return Vec::new();
    };
    let conditions = spec.conditions.iter();
    let reported = conditions.filter(|it| it.source == Source::Node);
    let found = reported.filter_map(|condition| {
        let kind = &condition.kind;
        let agents = snapshot.manifests.daemon_sets.iter();
        let mut reporters = agents.flat_map(|agent| &agent.containers);
        let Some(beat) = reporters.find_map(|container| beat_of(container, kind)) else {
            return short_heartbeat(&rule.name, timeout);
        };
        let what = format!(
            "heartbeatTimeout {timeout} is not longer than the heartbeat period of the reporter of '{kind}', {beat}: the \
             condition would count as Unknown in between"
        );
        (timeout <= beat).then(|| Finding::of_rule(Check::SHORT_HEARTBEAT, &rule.name, what, FIX))
    });
    found.collect()
}

/// The heartbeat period of a container, if it is Nodegate's reporter of this condition.
fn beat_of(container: &Container, kind: &str) -> Option<Duration> {
    let said = |flag: &str, env: &str| {
        let with_value =
            arguments(container).find_map(|arg| arg.strip_prefix(flag)?.strip_prefix('='));
        let mut variables = container.env.iter().flatten();
        let env = variables.find(|it| it.name == env);
        with_value.or(env.and_then(|it| it.value.as_deref()))
    };
    let is_of_it = said("--condition-type", "CONDITION_TYPE") == Some(kind);
    let period = said("--heartbeat-period", "HEARTBEAT_PERIOD").and_then(|it| it.parse().ok());
    is_of_it.then(|| period.unwrap_or(REPORTERS_BEAT))
}
