//! Faults of nodes and of what makes them: Karpenter's `NodePool`s and Cluster Autoscaler.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Taint;

use super::of_daemon_sets::needs_label;
use crate::snapshot::{PoolManifest, Snapshot, arguments, image};
use crate::status::{StrayTaint, stray_taints};
use nodegate_cluster::ResourceKind;
use nodegate_core::api::{EnforcementMode, TaintEffect};
use nodegate_core::finding::{Check, Finding, Severity};
use nodegate_core::object::ObjectKey;
use nodegate_core::object::karpenter::NODE_POOL_LABEL;
use nodegate_core::rule::{CompiledSpec, Rule};
use nodegate_core::selector::{Requirement, overlap};
use nodegate_core::text::counted;

/// The prefix of taint keys that Cluster Autoscaler knows without configuration.
const KNOWN_TO_AUTOSCALER: &str = "startup-taint.cluster-autoscaler.kubernetes.io/";
/// Parts of label keys that nodes have even if a `NodePool` does not list them.
const COMMON: [&str; 3] = ["kubernetes.io/", "k8s.io/", "karpenter"];

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let mut found = Vec::new();
    for (rule, spec) in snapshot.usable() {
        for pool in &snapshot.manifests.node_pools {
            found.extend(of_pool(pool, &rule.name, spec));
        }
        for deployment in &snapshot.manifests.deployments {
            found.extend(of_autoscaler(deployment, &rule.name, spec));
            found.extend(of_descheduler(deployment, &rule.name, spec));
        }
    }
    // A rule that could not be read may remove them.
    if !snapshot.has_read(ResourceKind::Rules) {
        return found;
    }
    found.extend(stray_taints(snapshot).iter().map(stray_taint));
    for pool in &snapshot.manifests.node_pools {
        found.extend(stray_of_pool(snapshot, pool));
    }
    found
}

fn stray_taint(stray: &StrayTaint) -> Finding {
    let (taint, example) = (&stray.taint, &stray.example);
    let others = match stray.nodes - 1 {
        0 => String::new(),
        more => format!(" (and {})", counted(more, "other node")),
    };
    let why = &stray.why;
    let what = format!("its taint {taint}{others} is removed by no rule: {why}");
    let fix = format!(
        "correct what gives nodes this taint (kubelet --register-with-taints), or the rule; \
         kubectl taint node {example} {taint}- removes it"
    );
    Finding::new(Check::STRAY_TAINT, format!("node/{example}"), what, fix)
}

fn stray_of_pool(snapshot: &Snapshot, pool: &PoolManifest) -> Vec<Finding> {
    let selects = |rule: &Rule| rule.spec.as_ref().is_ok_and(|it| makes_nodes_for(pool, it));
    let found = pool.startup_taints.iter().filter_map(|taint| {
        let (key, effect) = (&taint.key, &taint.effect);
        let rules = snapshot.view.rules();
        let why = rules.why_stray(key, effect.parse().ok()?, selects)?;
        let what = format!("its startup taint {key}:{effect} is removed by no rule: {why}");
        let fix = "use the key and effect of a rule's taint, or remove it";
        let object = format!("nodepool/{}", pool.name);
        let finding = Finding::new(Check::STRAY_TAINT, object, what, fix);
        // The rule may exist outside these files.
        Some(if snapshot.manifests.are_files {
            finding.but(Severity::Warning)
        } else {
            finding
        })
    });
    found.collect()
}

fn of_pool(pool: &PoolManifest, rule: &str, spec: &CompiledSpec) -> Option<Finding> {
    let (key, effect) = (&spec.taint.key, spec.effect);
    let has = |taints: &[Taint]| {
        let mut taints = taints.iter();
        taints.any(|taint| taint.key == *key && taint.effect.parse() == Ok(effect))
    };
    if !makes_nodes_for(pool, spec) {
        return None;
    }
    let object = format!("nodepool/{}", pool.name);
    if has(&pool.startup_taints) {
        let what = format!(
            "its startup taint {key}:{effect} evicts what runs on a new node before it is up, \
             including DaemonSets without a toleration"
        );
        let fix = "use effect NoSchedule, in the rule and in the NodePool";
        let evicts = Finding::new(Check::EVICTS, object, what, fix);
        return (effect == TaintEffect::NoExecute).then_some(evicts);
    }
    if has(&pool.taints) {
        let what = format!(
            "the taint {key}:{effect} of rule '{rule}' is among its taints, which Karpenter takes to be permanent: it creates \
             no nodes for pods that do not tolerate it"
        );
        let fix = "move it to spec.template.spec.startupTaints";
        return Some(Finding::new(Check::NODE_POOL, object, what, fix));
    }
    let what = format!(
        "its nodes come without the taint {key}:{effect} of rule '{rule}': pods may be scheduled before it is added"
    );
    let fix = format!(
        "spec.template.spec.startupTaints: [{{key: {key}, value: pending, effect: {effect}}}]"
    );
    Some(Finding::new(Check::NODE_POOL, object, what, fix))
}

/// Whether a rule may match a pool's nodes, judged by the labels that the pool declares.
fn makes_nodes_for(pool: &PoolManifest, spec: &CompiledSpec) -> bool {
    let own = Requirement::of(NODE_POOL_LABEL, &pool.name);
    let labels = pool.labels.iter();
    let labels = labels.map(|(key, value)| Requirement::of(key, value));
    let required = pool.requirements.iter();
    let required = required
        .filter_map(|it| Requirement::parse(&it.key, &it.operator, it.values.as_deref()).ok());
    let of_pool: Vec<Requirement> = labels.chain([own]).chain(required).collect();
    let wanted = spec.selector.requirements();
    let is_known = |requirement: &Requirement| {
        let key = &requirement.key;
        let is_there = of_pool.iter().any(|it| it.key == *key);
        is_there || !needs_label(requirement) || COMMON.iter().any(|part| key.contains(part))
    };
    wanted.iter().all(is_known) && overlap(wanted, &of_pool)
}

fn of_descheduler(deployment: &Deployment, rule: &str, spec: &CompiledSpec) -> Option<Finding> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let mut images = pod.containers.iter().map(image);
    let is_it = images.any(|it| it.contains("descheduler"));
    let gates_again =
        spec.mode == EnforcementMode::Continuous && spec.effect == TaintEffect::NoSchedule;
    let key = &spec.taint.key;
    let what = format!(
        "where its policy has RemovePodsViolatingNodeTaints, it evicts what runs on a node that rule '{rule}' gates again and does \
         not tolerate {key}"
    );
    let fix = format!("let the plugin leave out the taint: excludedTaints: [{key}]");
    let object = format!("deployment/{}", ObjectKey::of(&deployment.metadata));
    (is_it && gates_again).then(|| Finding::new(Check::DESCHEDULER, object, what, fix))
}

fn of_autoscaler(deployment: &Deployment, rule: &str, spec: &CompiledSpec) -> Option<Finding> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let container = pod.containers.first()?;
    let arguments: Vec<&str> = arguments(container).collect();
    let mut words = arguments.iter().copied().chain([image(container)]);
    let is_it = words.any(|word| word.contains("cluster-autoscaler"));
    let key = spec.taint.key.as_str();
    if !is_it || arguments.is_empty() || key.starts_with(KNOWN_TO_AUTOSCALER) {
        return None;
    }
    let is_known = arguments.iter().any(|argument| {
        let flag = argument.trim_start_matches('-').split_once('=');
        match flag.unwrap_or_default() {
            ("startup-taint" | "ignore-taint" | "status-taint", taint) => taint == key,
            ("startup-taint-prefix" | "status-taint-prefix", prefix) => key.starts_with(prefix),
            _ => false,
        }
    });
    (!is_known).then(|| {
        let what = format!(
            "it does not treat the taint {key} of rule '{rule}' as a startup taint: it may add too many nodes, or none"
        );
        let fix = format!(
            "add --startup-taint={key} (1.29 and newer), or --startup-taint-prefix=readiness.k8s.io/ (1.36 and newer)"
        );
        Finding::new(Check::AUTOSCALER, format!("deployment/{}", ObjectKey::of(&deployment.metadata)), what, fix)
    })
}
