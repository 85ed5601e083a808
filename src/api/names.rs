//! Names that other systems rely on. They are part of the contract with the Node Readiness Controller, so none changes
//! within an API version.

/// API group of the rule.
pub const GROUP: &str = "readiness.node.x-k8s.io";

/// API version of the rule.
pub const VERSION: &str = "v1alpha1";

/// Kind of the rule.
pub const KIND: &str = "NodeReadinessRule";

/// Plural of the rule, as in URLs and RBAC.
pub const PLURAL: &str = "nodereadinessrules";

/// Finalizer that keeps a deleted rule around until its taints are gone.
pub const FINALIZER: &str = "readiness.node.x-k8s.io/cleanup-taints";

/// What the taint key of every rule starts with, save of one that only removes a taint.
pub const TAINT_PREFIX: &str = "readiness.k8s.io/";

/// Annotation on a node, followed by a rule's UID (or, from older controllers, its name): this node has completed its
/// bootstrap under that rule.
pub const BOOTSTRAP_COMPLETED_PREFIX: &str = "readiness.k8s.io/bootstrap-completed-";

/// Annotation on a node, followed by a rule's UID: that rule owns the taint, having added or adopted it. Its value is a JSON
/// object with the rule's name and the taint's key and effect.
pub const TAINT_ADDED_BY_PREFIX: &str = "nodegate.dev/taint-added-by-";

/// Label on the definition of rules: who runs a controller for them.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// What it says where that is Nodegate.
pub const MANAGED_BY_US: &str = "nodegate";
/// What it says where somebody names the tool that has installed it.
pub const MANAGED_BY_TOOLS: [&str; 2] = ["Helm", "kustomize"];

/// Annotation on a node, followed by a rule's UID: when the node's readiness TTL under that rule runs out, in RFC 3339.
pub const READY_DEADLINE_PREFIX: &str = "nodegate.dev/ready-deadline-";

/// Annotation on a node, followed by a rule's UID: how the node started under that rule, written when it was first opened. Its
/// value is a JSON object with times.
pub const STARTUP_PREFIX: &str = "nodegate.dev/startup-";

/// Annotation on a Karpenter `NodePool`: the readiness TTL of its nodes, a duration.
pub const READINESS_TTL: &str = "nodegate.dev/readiness-ttl";

/// Name of the Lease by which one instance of the controller leads. The Node Readiness Controller uses it too, so that the two
/// never write at the same time.
pub const LEASE: &str = "ba65f13e.readiness.node.x-k8s.io";

/// Annotation on the Lease; while its value is `true`, all rules are suspended.
pub const SUSPEND_ALL: &str = "nodegate.dev/suspend-all";

/// The namespace that the manifests install the controller into.
pub const NAMESPACE: &str = "nrr-system";

/// The `ConfigMap` that the chart keeps the controller's configuration in, beside the controller, and its key there.
pub const CONFIG_MAP: (&str, &str) = ("nrr-controller-manager-config", "config.yaml");
