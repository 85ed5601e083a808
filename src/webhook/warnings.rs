//! Warnings to the author of an accepted rule. Each says what to do, and fits the 256 characters that the API server passes on.

use std::collections::BTreeSet;
use std::time::Duration;

use super::closings::closings;
use super::surroundings::{NodeSample, Surroundings};
use crate::api::{
    self, ConditionStatus, EnforcementMode, NodeReadinessRuleSpec, TaintEffect, TaintPolicy,
};
use crate::condition::{
    CriticalComponentClass, Source, can_share_a_node, is_under_our_domain, tolerates,
};
use crate::object::{DaemonSet, Node, ObjectKey};
use crate::plan::WhyUnmade;
use crate::rule::{CompiledSpec, Minimum, RequiredCondition, Rule};
use crate::wording::cut;

/// The longest warning that the API server passes on untruncated, in bytes.
const LONGEST: usize = 256;
/// Kubelet heartbeats come every 5 minutes and may be a minute late.
pub(crate) const SHORTEST_HEARTBEAT: Duration = Duration::from_secs(6 * 60);

/// The texts that webhook warnings and `kubectl nodegate check` share. `more` counts further objects with the same problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Advice<'a> {
    #[error(
        "critical DaemonSet {daemon_set}{} does not tolerate the taint {key}:{effect}: it cannot start on a node that has \
         it, and is {}; add the toleration to its pod template", and(*.more),
         if *.is_named { "waited for in vain, as the rule names it" } else { "not waited for" }
    )]
    ShutOut {
        daemon_set: &'a ObjectKey,
        more: usize,
        is_named: bool,
        key: &'a str,
        effect: TaintEffect,
    },
    #[error("{}", WhyUnmade::NoDaemonSet.message(&format!("{daemon_set}{}", and(*.more))))]
    Missing {
        daemon_set: &'a ObjectKey,
        more: usize,
    },
    #[error(
        "DaemonSet {daemon_set}{} is labelled as critical, but its namespace is none of class '{class}': it is not waited \
         for; add the namespace to the class, or take the label off", and(*.more)
    )]
    OutsideNamespaces {
        daemon_set: &'a ObjectKey,
        more: usize,
        class: &'a str,
    },
    #[error(
        "NOTE: NoExecute will evict existing pods without tolerations. Ensure critical system pods have appropriate \
         tolerations. Nodes that are in use when the rule is created are closed too; NoSchedule only keeps new pods away"
    )]
    EvictsOnce,
    #[error(
        "CAUTION: NoExecute with continuous mode evicts pods when conditions fail, risking workload disruption. Consider \
         NoSchedule or bootstrap-only{}", if *.is_limited { "" } else { ", or set spec.nodegate.disruption to limit how fast" }
    )]
    EvictsAgain { is_limited: bool },
    #[error(
        "heartbeatTimeout {0} is shorter than kubelet and Node Problem Detector need, which write every 5m: their conditions would count \
         as Unknown in between; use at least 6m for them"
    )]
    ShortHeartbeat(api::Duration),
    /// Something else than a `DaemonSet` is missing.
    #[error("{}", .why.message(.name))]
    Unmade { why: WhyUnmade, name: &'a str },
    #[error(
        "nothing makes conditions of type '{kind}', though their prefix is Nodegate's: it counts as '{counts_as}' on every \
         node; check the spelling"
    )]
    Nobody {
        kind: &'a str,
        counts_as: &'static str,
    },
}

fn and(more: usize) -> String {
    match more {
        0 => String::new(),
        others => format!(" (+{others} more)"),
    }
}

/// All warnings. `sent` is the spec as sent, `spec` its compiled form. `begins`: this request makes the rule act.
pub(super) fn warnings(
    sent: Option<&NodeReadinessRuleSpec>,
    (rule, spec): (&Rule, &CompiledSpec),
    begins: bool,
    classes: &[CriticalComponentClass],
    surroundings: &Surroundings,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let nodes = surroundings.nodes.as_ref().filter(|_| begins);
    warnings.extend(nodes.and_then(|nodes| fleet(rule, spec, nodes)));
    warnings.extend(eviction(sent, spec));
    warnings.extend(sent.and_then(heartbeat));
    warnings.extend(shut_out(spec, classes, surroundings));
    warnings.extend(outside_namespaces(spec, classes, surroundings));
    warnings.extend(missing(surroundings));
    warnings.extend(spec.conditions.iter().filter_map(|condition| {
        let counts_as = condition.status_if_missing().as_str();
        match &condition.source {
            Source::Nobody => {
                let kind = &condition.kind;
                Some(Advice::Nobody { kind, counts_as }.to_string())
            }
            Source::Node if is_under_our_domain(&condition.kind) => {
                let nodes = surroundings.nodes.as_ref();
                let is_reported =
                    nodes.is_some_and(|nodes| nodes.condition_types.contains(&*condition.kind));
                let (why, name) = (WhyUnmade::NoSuchPrefix, &*condition.kind);
                (!is_reported).then(|| Advice::Unmade { why, name }.to_string())
            }
            Source::CsiDriver(driver) => {
                let has_nodes = surroundings.nodes.as_ref().is_some_and(|it| it.selected);
                let drivers = surroundings.csi_drivers.as_ref().filter(|_| has_nodes)?;
                let (why, name) = (WhyUnmade::NoCsiDriver, driver.as_str());
                (!drivers.contains(name)).then(|| Advice::Unmade { why, name }.to_string())
            }
            Source::Node => surroundings
                .nodes
                .as_ref()
                .and_then(|nodes| unheard_of(nodes, &condition.kind, counts_as)),
            Source::Resource(_) => surroundings
                .nodes
                .as_ref()
                .and_then(|nodes| too_few(nodes, condition)),
            Source::Class { .. } | Source::Component(_) => None,
        }
    }));
    warnings.into_iter().map(shortened).collect()
}

/// Nodes in use that the rule would taint.
fn fleet(rule: &Rule, spec: &CompiledSpec, nodes: &NodeSample) -> Option<String> {
    let mut closings = closings(rule, spec, &nodes.nodes)?;
    closings.more = nodes.more;
    let instead = match spec.mode {
        EnforcementMode::BootstrapOnly => "nodegate.existingNodes: Leave leaves such nodes alone",
        EnforcementMode::Continuous => "a dry run tells more",
    };
    Some(format!("{closings}; {instead}"))
}

/// `NoExecute` evicts running pods. Both texts begin as the upstream project's warnings do.
fn eviction(sent: Option<&NodeReadinessRuleSpec>, spec: &CompiledSpec) -> Option<String> {
    if spec.effect != TaintEffect::NoExecute || spec.taint_policy == TaintPolicy::RemoveOnly {
        return None;
    }
    let advice = match spec.mode {
        EnforcementMode::BootstrapOnly => Advice::EvictsOnce,
        EnforcementMode::Continuous => {
            let is_limited = sent
                .and_then(|sent| sent.nodegate.as_ref())
                .is_some_and(|ours| ours.disruption.is_some());
            Advice::EvictsAgain { is_limited }
        }
    };
    Some(advice.to_string())
}

fn heartbeat(sent: &NodeReadinessRuleSpec) -> Option<String> {
    let ours = sent.nodegate.as_ref()?;
    let timeout = ours
        .heartbeat_timeout
        .filter(|timeout| timeout.as_std() < SHORTEST_HEARTBEAT)?;
    Some(Advice::ShortHeartbeat(timeout).to_string())
}

/// Critical `DaemonSet`s that cannot start on a node that the rule holds.
fn shut_out(
    spec: &CompiledSpec,
    classes: &[CriticalComponentClass],
    surroundings: &Surroundings,
) -> Option<String> {
    let is_shut_out = |daemon_set: &&DaemonSet| {
        !tolerates(daemon_set, &spec.taint) && can_share_a_node(daemon_set, &spec.selector)
    };
    let of_classes = classes.iter().zip(&*surroundings.daemon_sets);
    let of_classes =
        of_classes.flat_map(|(class, daemon_sets)| daemon_sets.values().filter(|it| class.has(it)));
    let named = surroundings.named.iter().flat_map(|(_, there)| there);
    let shut_out: [BTreeSet<&ObjectKey>; 2] = [
        named.filter(is_shut_out).map(|it| &it.key).collect(),
        of_classes.filter(is_shut_out).map(|it| &it.key).collect(),
    ];
    let all = shut_out[0].union(&shut_out[1]).count();
    let daemon_set = shut_out.iter().find_map(BTreeSet::first)?;
    let advice = Advice::ShutOut {
        daemon_set,
        more: all - 1,
        is_named: shut_out[0].contains(daemon_set),
        key: &spec.taint.key,
        effect: spec.effect,
    };
    Some(advice.to_string())
}

/// `DaemonSet`s that the rule names but that do not exist.
fn missing(surroundings: &Surroundings) -> Option<String> {
    let named = surroundings.named.iter();
    let mut missing = named.filter(|(_, there)| there.is_none());
    let (daemon_set, _) = missing.next()?;
    let more = missing.count();
    Some(Advice::Missing { daemon_set, more }.to_string())
}

/// Labelled `DaemonSet`s in namespaces that the rule's class does not cover.
fn outside_namespaces(
    spec: &CompiledSpec,
    classes: &[CriticalComponentClass],
    surroundings: &Surroundings,
) -> Option<String> {
    let classes = classes.iter().zip(&*surroundings.daemon_sets).enumerate();
    let outside: BTreeSet<(&ObjectKey, &str)> = classes
        .filter(|(index, _)| spec.waits_for_class(*index))
        .flat_map(|(_, (class, daemon_sets))| {
            daemon_sets
                .values()
                .filter(|daemon_set| class.labels(daemon_set) && !class.has(daemon_set))
                .filter(|daemon_set| can_share_a_node(daemon_set, &spec.selector))
                .map(|daemon_set| (&daemon_set.key, class.name.as_str()))
        })
        .collect();
    let (daemon_set, class) = outside.first()?;
    let advice = Advice::OutsideNamespaces {
        daemon_set,
        more: outside.len() - 1,
        class,
    };
    Some(advice.to_string())
}

/// A condition that no node has.
fn unheard_of(nodes: &NodeSample, kind: &str, counts_as: &str) -> Option<String> {
    if nodes.count == 0 || nodes.condition_types.contains(kind) {
        return None;
    }
    Some(format!(
        "{} has a condition of type '{kind}' today: it counts as '{counts_as}' until something reports it",
        none_of(nodes)
    ))
}

/// A minimum that no selected node reaches.
fn too_few(nodes: &NodeSample, condition: &RequiredCondition) -> Option<String> {
    let minimum = condition.minimum.as_ref()?;
    let resource = condition.counted_resource()?;
    let units = |node: &Node| node.resources.units(resource);
    let known = || {
        let nodes = nodes.nodes.iter();
        nodes.filter_map(|node| Some((node, minimum.on(node).ok()?)))
    };
    let is_reached = known().any(|(node, minimum)| units(node) >= minimum.get());
    if is_reached || nodes.nodes.is_empty() || condition.required != ConditionStatus::True {
        return None;
    }
    let none = none_of(nodes);
    Some(match minimum {
        Minimum::Number(number) => {
            let most = nodes.nodes.iter().map(units).max().unwrap_or_default();
            format!("{none} has {number} {resource} to allocate today, and the most is {most}")
        }
        Minimum::FromLabel(label) if known().next().is_none() => {
            format!("{none} has a label {label} with a number today: none meets the minimum")
        }
        Minimum::FromLabel(label) => {
            format!("{none} has as many {resource} to allocate today as its label {label} says")
        }
    })
}

/// That it is true of none of these nodes.
fn none_of(nodes: &NodeSample) -> &'static str {
    match (nodes.more, nodes.selected) {
        (false, true) => "no node that the rule selects",
        (false, false) => "no node",
        (true, true) => "none of the first 500 nodes that the rule selects",
        (true, false) => "none of the first 500 nodes",
    }
}

/// A warning of at most [`LONGEST`] bytes.
pub(super) fn shortened(warning: String) -> String {
    cut(warning, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::{daemon_set, rule};

    #[test]
    fn a_labelled_daemon_set_that_its_class_does_not_cover_is_warned_of() {
        let classes = Config::default().classes().unwrap();
        let labelled = |key: &str| {
            let labelled = daemon_set(key).critical().toleration("{operator: Exists}");
            let labelled = labelled.build();
            (labelled.key.clone(), labelled)
        };
        let surroundings = Surroundings {
            daemon_sets: [["tenant/agent", "kube-system/cni"].map(labelled).into()].into(),
            ..Surroundings::default()
        };
        for (condition, expected) in [
            (
                "node.gardener.cloud/CriticalPodsReady",
                vec![
                    "DaemonSet tenant/agent is labelled as critical, but its namespace is none of class 'gardener': it is \
                     not waited for; add the namespace to the class, or take the label off",
                ],
            ),
            ("csidriver.nodegate.dev/a.csi", vec![]),
        ] {
            let rule = rule("r").waits_for(condition).build(&classes);
            let spec = rule.spec.as_ref().unwrap();
            assert_eq!(
                warnings(None, (&rule, spec), true, &classes, &surroundings),
                expected
            );
        }
    }
}
