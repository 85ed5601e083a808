//! Faults of rules, and conflicts between them.

use super::finding::{Check, Finding, Severity};
use super::input::{CheckInput, rule_name};
use crate::api::{Duration, EnforcementMode, TaintEffect, TaintPolicy};
use crate::cli::snapshot::{Agent, Program, ResourceKind};
use crate::condition::{Source, is_meant_for, is_under_our_domain};
use crate::documentation;
use crate::object::{Node, ObjectKey, Taint};
use crate::plan::WhyUnmade;
use crate::rule::{CompiledSpec, Rejection, Rule};
use crate::webhook::{Advice, SHORTEST_HEARTBEAT};
use crate::wording::counted;

/// The default heartbeat period of Nodegate's reporter.
const REPORTERS_BEAT: Duration = Duration::from_secs(300);

pub(super) fn findings(input: &CheckInput<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in input.rules.rules() {
        found.extend(rejected(rule));
    }
    for (rule, spec) in input.usable() {
        found.extend(conflicts(input, rule));
        found.extend(conditions(input, rule, spec));
        found.extend(scheduler_waits(input, rule, spec));
        found.extend(evicts(rule, spec));
        found.extend(heartbeat(input, rule, spec));
    }
    found
}

fn rejected(rule: &Rule) -> Option<Finding> {
    let why: &Rejection = rule.spec.as_ref().err()?;
    let fix = "correct the input; until then the rule has no effect";
    Some(Finding::new(
        Check::REJECTED,
        rule_name(rule),
        why.to_string(),
        fix,
    ))
}

fn conflicts<'a>(input: &'a CheckInput<'_>, rule: &'a Rule) -> impl Iterator<Item = Finding> {
    let earlier = input
        .usable()
        .take_while(|(other, _)| other.name != rule.name);
    earlier
        .filter_map(|(other, _)| rule.conflict_with(other))
        .map(|conflict| {
            let fix =
                "give one of them another taint key, or node selectors that match no node in common";
            Finding::new(
                Check::CONFLICT,
                rule_name(rule),
                conflict.to_string(),
                fix,
            )
        })
}

/// Conditions that cannot be met.
fn conditions(input: &CheckInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Finding> {
    let mut found = Vec::new();
    let inventory = input.inventory;
    let selected = || {
        let nodes = inventory.nodes.iter();
        nodes.filter(|node| spec.selector.matches(&node.labels))
    };
    let has_read_nodes = inventory.has_read(ResourceKind::Nodes);
    for condition in &spec.conditions {
        let kind = &*condition.kind;
        let unmade = |why, name| Some(Advice::Unmade { why, name });
        let advice = match &condition.source {
            Source::Nobody => Some(Advice::Nobody {
                kind,
                counts_as: condition.status_if_missing().as_str(),
            }),
            Source::CsiDriver(driver) => {
                let drivers = inventory.csi_drivers.as_ref();
                let is_missing = drivers.is_some_and(|them| !them.contains(driver));
                unmade(WhyUnmade::NoCsiDriver, driver.as_str())
                    .filter(|_| is_missing && selected().next().is_some())
            }
            Source::Node if is_under_our_domain(kind) && has_read_nodes => {
                let is_reported = selected().any(|node| node.condition(kind).is_some());
                unmade(WhyUnmade::NoSuchPrefix, kind).filter(|_| !is_reported)
            }
            _ => None,
        };
        let page = documentation::page("conditions.md");
        let fix = format!("use one of the types listed in {page}");
        let finding = advice.map(|advice| {
            let what = advice.to_string();
            Finding::new(Check::NOBODY, rule_name(rule), what, fix)
        });
        // Nodes are not among files: something may report it.
        let is_open_question = inventory.is_of_files && condition.source == Source::Node;
        found.extend(finding.map(|finding| {
            if is_open_question {
                finding.but(Severity::Warning)
            } else {
                finding
            }
        }));
    }
    // What could not be read may be there.
    if !input.inventory.has_read(ResourceKind::DaemonSets) {
        return found;
    }
    let is_missing = |key: &&ObjectKey| input.inventory.daemon_set(key).is_none();
    for daemon_set in spec.daemon_sets().filter(is_missing) {
        let what = Advice::Missing {
            daemon_set,
            more: 0,
        }
        .to_string();
        let fix = "kubectl get daemonsets --all-namespaces lists the existing ones";
        let finding = Finding::new(Check::NO_SUCH_DAEMON_SET, rule_name(rule), what, fix);
        // The `DaemonSet` may exist outside these files.
        found.push(if input.inventory.is_of_files {
            finding.but(Severity::Warning)
        } else {
            finding
        });
    }
    found.extend(on_no_node(input, rule, spec));
    // Without the configuration, the cluster may have other classes.
    if !input.inventory.has_read(ResourceKind::ConfigMaps) {
        return found;
    }
    let classes = input.inventory.classes.iter().enumerate();
    for (_, class) in classes.filter(|(index, _)| spec.waits_for_class(*index)) {
        let mut agents = input.inventory.daemon_sets.iter();
        let has_some = agents
            .any(|agent| class.selector.matches(&agent.labels) && class.has(&agent.daemon_set));
        if !has_some {
            let what = format!(
                "it waits for class '{}', which has no DaemonSet: nodes open at once",
                class.name
            );
            let fix = format!(
                "label what nodes need ({}), on the DaemonSet and on its pod template, or wait for it by its name: \
                 daemonset.nodegate.dev/<namespace>.<name>",
                class.selector
            );
            found.push(Finding::new(Check::EMPTY_CLASS, rule_name(rule), what, fix));
        }
    }
    found
}

/// CSI drivers that the rule names, and without which the scheduler keeps pods with their volumes off a node anyway.
fn scheduler_waits(input: &CheckInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Finding> {
    let named = spec.conditions.iter().filter_map(|it| match &it.source {
        Source::CsiDriver(driver) => Some(driver),
        _ => None,
    });
    let named = named.filter(|driver| input.inventory.scheduler_waits_for.contains(*driver));
    named
        .map(|driver| {
            let what = format!(
                "the scheduler itself keeps pods with volumes of {driver} off nodes without that driver (its CSIDriver has \
                 preventPodSchedulingIfMissing): what the rule adds is that all other pods wait, too"
            );
            let way_out = "leave the condition out where only pods with its volumes need the driver";
            Finding::new(Check::SCHEDULER_WAITS, rule_name(rule), what, way_out)
        })
        .collect()
}

/// `DaemonSet`s that the rule names and that run on none of its nodes.
fn on_no_node(input: &CheckInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Finding> {
    let nodes = input.inventory.nodes.iter();
    let selected: Vec<&Node> = nodes
        .filter(|node| spec.selector.matches(&node.labels))
        .collect();
    let named = spec
        .daemon_sets()
        .filter_map(|key| input.inventory.daemon_set(key));
    let runs_nowhere = |agent: &&Agent| {
        let mut nodes = selected.iter();
        !nodes.any(|node| {
            let staying: Vec<&Taint> = input.rules.staying(node);
            let staying = staying.into_iter();
            let staying: Vec<&Taint> = staying
                .filter(|taint| !taint.is(&spec.taint.key, spec.effect))
                .collect();
            is_meant_for(&agent.daemon_set, node, &staying)
        })
    };
    let named = named.filter(|_| !selected.is_empty()).filter(runs_nowhere);
    named
        .map(|agent| {
            let what = format!(
                "DaemonSet {} runs on 0 of the {} that the rule selects, so that none of them waits for it",
                agent.daemon_set.key,
                counted(selected.len(), "node")
            );
            let fix = "check the DaemonSet's node selector, affinity and tolerations, or the rule's node selector";
            Finding::new(Check::ON_NO_NODE, rule_name(rule), what, fix)
        })
        .collect()
}

fn evicts(rule: &Rule, spec: &CompiledSpec) -> Option<Finding> {
    if spec.effect != TaintEffect::NoExecute || spec.taint_policy == TaintPolicy::RemoveOnly {
        return None;
    }
    let advice = match spec.mode {
        EnforcementMode::BootstrapOnly => Advice::EvictsOnce,
        EnforcementMode::Continuous => Advice::EvictsAgain {
            is_limited: spec.disruption.is_some(),
        },
    };
    let fix = "use effect NoSchedule, unless running pods have to be evicted";
    Some(Finding::new(
        Check::EVICTS,
        rule_name(rule),
        advice.to_string(),
        fix,
    ))
}

/// A rule whose heartbeat timeout is too short for its reporters.
fn heartbeat(input: &CheckInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Finding> {
    let Some(timeout) = input
        .sent(rule)
        .and_then(|sent| sent.nodegate.as_ref()?.heartbeat_timeout)
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let reported = spec
        .conditions
        .iter()
        .filter(|it| it.source == Source::Node);
    for condition in reported {
        let agents = input.inventory.daemon_sets.iter();
        let mut reporters = agents.flat_map(|agent| &agent.containers);
        let beat = reporters.find_map(|container| beat_of(container, &condition.kind));
        match beat {
            Some(beat) if timeout <= beat => {
                let what = format!(
                    "heartbeatTimeout {timeout} is not longer than the heartbeat period of the reporter of '{}', {beat}: the condition \
                 would count as Unknown in between",
                    condition.kind
                );
                let fix =
                    "shorten the reporter's HEARTBEAT_PERIOD, or lengthen the heartbeatTimeout";
                found.push(Finding::new(
                    Check::SHORT_HEARTBEAT,
                    rule_name(rule),
                    what,
                    fix,
                ));
            }
            None if timeout.as_std() < SHORTEST_HEARTBEAT => {
                let what = Advice::ShortHeartbeat(timeout).to_string();
                let fix = "ignore this if the reporter's heartbeat period is shorter";
                found.push(Finding::new(
                    Check::SHORT_HEARTBEAT,
                    rule_name(rule),
                    what,
                    fix,
                ));
            }
            _ => {}
        }
    }
    found
}

/// The heartbeat period of a container, if it is Nodegate's reporter of this condition.
fn beat_of(container: &Program, kind: &str) -> Option<Duration> {
    let said = |flag: &str, env: &str| {
        let mut args = container.args.iter();
        let with_value = args.find_map(|arg| arg.strip_prefix(flag)?.strip_prefix('='));
        let env = container.env.get(env).map(String::as_str);
        with_value.or(env)
    };
    let is_of_it = said("--condition-type", "CONDITION_TYPE") == Some(kind);
    let period = said("--heartbeat-period", "HEARTBEAT_PERIOD");
    is_of_it.then(|| {
        let period = period.and_then(|text| text.parse().ok());
        period.unwrap_or(REPORTERS_BEAT)
    })
}
