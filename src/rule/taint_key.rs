//! Which taint keys a rule may manage.

use crate::api::TaintPolicy;
use crate::api::names::TAINT_PREFIX;
use crate::selector::is_label_key;

/// Checks a rule's taint key, in the words of the CRD.
///
/// A rule that adds its taint manages keys under `readiness.k8s.io/`. A rule that only lifts it may name another
/// project's startup taint too, but none of Kubernetes' own.
///
/// # Errors
/// Says what is wrong with the key.
pub(super) fn check(key: &str, policy: TaintPolicy) -> Result<(), &'static str> {
    let (prefix, _) = key.split_once('/').unwrap_or_default();
    if policy == TaintPolicy::AddAndRemove && !key.starts_with(TAINT_PREFIX) {
        return Err("taint key must start with 'readiness.k8s.io/'");
    }
    if !is_label_key(key) {
        return Err("taint key must be a valid label key (prefix/name format)");
    }
    if policy == TaintPolicy::RemoveOnly && is_kubernetes_own(prefix) {
        return Err(
            "taint key must not be one of Kubernetes' own (kubernetes.io, node.kubernetes.io)",
        );
    }
    Ok(())
}

/// Whether a component of Kubernetes may use the prefix. The cluster autoscaler's prefixes are there for anybody's
/// startup taints.
fn is_kubernetes_own(prefix: &str) -> bool {
    let is_for_anybody = matches!(
        prefix,
        "startup-taint.cluster-autoscaler.kubernetes.io"
            | "ignore-taint.cluster-autoscaler.kubernetes.io"
    );
    !is_for_anybody && (prefix == "kubernetes.io" || prefix.ends_with(".kubernetes.io"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_manages_only_keys_that_are_its_to_manage() {
        use TaintPolicy::{AddAndRemove as Add, RemoveOnly as Lift};
        for (key, policy, allowed) in [
            ("readiness.k8s.io/x", Add, true),
            ("readiness.k8s.io/x", Lift, true),
            ("readiness.k8s.io/", Add, false),
            ("readiness.k8s.io/a/b", Add, false),
            ("node.cilium.io/agent-not-ready", Add, false),
            ("node.cilium.io/agent-not-ready", Lift, true),
            ("bare", Lift, true),
            ("node.kubernetes.io/not-ready", Lift, false),
            ("kubernetes.io/x", Lift, false),
            (
                "startup-taint.cluster-autoscaler.kubernetes.io/gpu",
                Lift,
                true,
            ),
            (
                "startup-taint.cluster-autoscaler.kubernetes.io/gpu",
                Add,
                false,
            ),
            (
                "node.cloudprovider.kubernetes.io/uninitialized",
                Lift,
                false,
            ),
        ] {
            assert_eq!(check(key, policy).is_ok(), allowed, "{key} {policy}");
        }
    }
}
