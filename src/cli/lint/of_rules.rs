//! Faults of rules, and conflicts between them.

use super::fault::{Fault, FaultKind};
use super::input::{LintInput, rule_name};
use crate::api::{Duration, EnforcementMode, TaintEffect, TaintPolicy};
use crate::cli::snapshot::{Agent, Program, ResourceKind};
use crate::condition::{Source, is_meant_for, is_under_our_domain};
use crate::documentation;
use crate::object::{Node, ObjectKey, Taint};
use crate::plan::WhyUnmade;
use crate::rule::{AfterUnknown, CompiledSpec, Rejection, Rule};
use crate::webhook::{Advice, SHORTEST_HEARTBEAT};
use crate::wording::counted;

/// The default heartbeat period of Nodegate's reporter.
const REPORTERS_BEAT: Duration = Duration::from_secs(300);

pub(super) fn faults(field: &LintInput<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for rule in field.rules.rules() {
        faults.extend(rejected(rule));
    }
    for (rule, spec) in field.usable() {
        faults.extend(conflicts(field, rule));
        faults.extend(conditions(field, rule, spec));
        faults.extend(scheduler_waits(field, rule, spec));
        faults.extend(after_unknown(field, rule, spec));
        faults.extend(evicts(rule, spec));
        faults.extend(heartbeat(field, rule, spec));
    }
    faults
}

fn rejected(rule: &Rule) -> Option<Fault> {
    let why: &Rejection = rule.spec.as_ref().err()?;
    let fix = "correct the field; until then the rule has no effect";
    Some(Fault::new(
        FaultKind::REJECTED,
        rule_name(rule),
        why.to_string(),
        fix,
    ))
}

fn conflicts<'a>(field: &'a LintInput<'_>, rule: &'a Rule) -> impl Iterator<Item = Fault> {
    let earlier = field
        .usable()
        .take_while(|(other, _)| other.name != rule.name);
    earlier
        .filter_map(|(other, _)| rule.conflict_with(other))
        .map(|conflict| {
            let fix =
                "give one of them another taint key, or node selectors that match no node in common";
            Fault::new(
                FaultKind::CONFLICT,
                rule_name(rule),
                conflict.to_string(),
                fix,
            )
        })
}

/// Conditions that cannot be met.
fn conditions(field: &LintInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Fault> {
    let mut faults = Vec::new();
    let inventory = field.inventory;
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
        let fault = advice.map(|advice| {
            let what = advice.to_string();
            Fault::new(FaultKind::NOBODY, rule_name(rule), what, fix)
        });
        // Nodes are not among files: something may report it.
        let is_open_question = inventory.is_of_files && condition.source == Source::Node;
        faults.extend(fault.map(|fault| {
            if is_open_question {
                fault.only_a_warning()
            } else {
                fault
            }
        }));
    }
    // What could not be read may be there.
    if !field.inventory.has_read(ResourceKind::DaemonSets) {
        return faults;
    }
    let is_missing = |key: &&ObjectKey| field.inventory.daemon_set(key).is_none();
    for daemon_set in spec.daemon_sets().filter(is_missing) {
        let what = Advice::Missing {
            daemon_set,
            more: 0,
        }
        .to_string();
        let fix = "kubectl get daemonsets --all-namespaces lists the existing ones";
        let fault = Fault::new(FaultKind::NO_SUCH_DAEMON_SET, rule_name(rule), what, fix);
        // The `DaemonSet` may exist outside these files.
        faults.push(if field.inventory.is_of_files {
            fault.only_a_warning()
        } else {
            fault
        });
    }
    faults.extend(on_no_node(field, rule, spec));
    // Without the configuration, the cluster may have other classes.
    if !field.inventory.has_read(ResourceKind::ConfigMaps) {
        return faults;
    }
    let classes = field.inventory.classes.iter().enumerate();
    for (_, class) in classes.filter(|(index, _)| spec.waits_for_class(*index)) {
        let mut agents = field.inventory.daemon_sets.iter();
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
            faults.push(Fault::new(
                FaultKind::EMPTY_CLASS,
                rule_name(rule),
                what,
                fix,
            ));
        }
    }
    faults
}

/// CSI drivers that the rule names, and without which the scheduler keeps pods with their volumes off a node anyway.
fn scheduler_waits(field: &LintInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Fault> {
    let named = spec.conditions.iter().filter_map(|it| match &it.source {
        Source::CsiDriver(driver) => Some(driver),
        _ => None,
    });
    let named = named.filter(|driver| field.inventory.scheduler_waits_for.contains(*driver));
    named
        .map(|driver| {
            let what = format!(
                "the scheduler itself keeps pods with volumes of {driver} off nodes without that driver (its CSIDriver has \
                 preventPodSchedulingIfMissing): what the rule adds is that all other pods wait, too"
            );
            let way_out = "leave the condition out where only pods with its volumes need the driver";
            Fault::new(FaultKind::SCHEDULER_WAITS, rule_name(rule), what, way_out)
        })
        .collect()
}

/// `DaemonSet`s that the rule names and that run on none of its nodes.
fn on_no_node(field: &LintInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Fault> {
    let nodes = field.inventory.nodes.iter();
    let selected: Vec<&Node> = nodes
        .filter(|node| spec.selector.matches(&node.labels))
        .collect();
    let named = spec
        .daemon_sets()
        .filter_map(|key| field.inventory.daemon_set(key));
    let runs_nowhere = |agent: &&Agent| {
        let mut nodes = selected.iter();
        !nodes.any(|node| {
            let staying: Vec<&Taint> = field.rules.staying(node);
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
            Fault::new(FaultKind::ON_NO_NODE, rule_name(rule), what, fix)
        })
        .collect()
}

/// Rules that it comes after and that are not there, or cannot be used.
fn after_unknown(field: &LintInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Option<Fault> {
    let unknown = AfterUnknown::of(spec, field.rules.rules())?;
    let fix = "kubectl get nodereadinessrules lists the existing ones";
    let fault = Fault::new(
        FaultKind::AFTER_UNKNOWN,
        rule_name(rule),
        unknown.to_string(),
        fix,
    );
    // The rule may exist outside these files.
    let is_elsewhere = field.inventory.is_of_files && unknown.rejected.is_empty();
    Some(if is_elsewhere {
        fault.only_a_warning()
    } else {
        fault
    })
}

fn evicts(rule: &Rule, spec: &CompiledSpec) -> Option<Fault> {
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
    Some(Fault::new(
        FaultKind::EVICTS,
        rule_name(rule),
        advice.to_string(),
        fix,
    ))
}

/// A rule whose heartbeat timeout is too short for its reporters.
fn heartbeat(field: &LintInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Fault> {
    let Some(timeout) = field.sent(rule).and_then(|sent| sent.heartbeat_timeout) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    let reported = spec
        .conditions
        .iter()
        .filter(|it| it.source == Source::Node);
    for condition in reported {
        let agents = field.inventory.daemon_sets.iter();
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
                faults.push(Fault::new(
                    FaultKind::SHORT_HEARTBEAT,
                    rule_name(rule),
                    what,
                    fix,
                ));
            }
            None if timeout.as_std() < SHORTEST_HEARTBEAT => {
                let what = Advice::ShortHeartbeat(timeout).to_string();
                let fix = "ignore this if the reporter's heartbeat period is shorter";
                faults.push(Fault::new(
                    FaultKind::SHORT_HEARTBEAT,
                    rule_name(rule),
                    what,
                    fix,
                ));
            }
            _ => {}
        }
    }
    faults
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
