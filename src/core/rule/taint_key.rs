//! Which taint keys a rule may manage.

use crate::api::{TaintPolicy, names::TAINT_PREFIX};
use crate::selector::is_label_key;

/// Checks a rule's taint key, with the messages of the CRD: it is under `readiness.k8s.io/`, or for a remove-only rule another
/// project's, but none of Kubernetes' own.
pub(super) fn check(key: &str, policy: TaintPolicy) -> Result<(), &'static str> {
    let (prefix, _) = key.split_once('/').unwrap_or_default();
    if policy == TaintPolicy::AddAndRemove && is_foreign(key) {
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

/// Whether taints with this key belong to another project. A rule may only remove them, and never owns them.
pub fn is_foreign(key: &str) -> bool {
    !key.starts_with(TAINT_PREFIX)
}

/// Whether taints with this prefix belong to Kubernetes; the Cluster Autoscaler's startup taints are for their users to remove.
fn is_kubernetes_own(prefix: &str) -> bool {
    let is_startup_taint = matches!(
        prefix.strip_suffix(".cluster-autoscaler.kubernetes.io"),
        Some("startup-taint" | "ignore-taint")
    );
    (prefix == "kubernetes.io" || prefix.ends_with(".kubernetes.io")) && !is_startup_taint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_manages_only_keys_that_are_its_to_manage() {
        use TaintPolicy::{AddAndRemove as Add, RemoveOnly as Remove};
        #[rustfmt::skip]
        let cases = [
            ("readiness.k8s.io/x", Add, true),
            ("readiness.k8s.io/x", Remove, true),
            ("readiness.k8s.io/", Add, false),
            ("readiness.k8s.io/a/b", Add, false),
            ("node.cilium.io/agent-not-ready", Add, false),
            ("node.cilium.io/agent-not-ready", Remove, true),
            ("bare", Remove, true),
            ("node.kubernetes.io/not-ready", Remove, false),
            ("kubernetes.io/x", Remove, false),
            ("startup-taint.cluster-autoscaler.kubernetes.io/x", Remove, true),
            ("ignore-taint.cluster-autoscaler.kubernetes.io/x", Remove, true),
            ("cluster-autoscaler.kubernetes.io/x", Remove, false),
            ("node.cloudprovider.kubernetes.io/uninitialized", Remove, false),
        ];
        for (key, policy, allowed) in cases {
            assert_eq!(check(key, policy).is_ok(), allowed, "{key} {policy}");
        }
    }
}
