//! Names that are part of the contract with the Node Readiness Controller: none may change within an API version.

pub const GROUP: &str = "readiness.node.x-k8s.io";

pub const VERSION: &str = "v1alpha1";

/// Finalizer that keeps a deleted rule until its taints are gone.
pub const FINALIZER: &str = "readiness.node.x-k8s.io/cleanup-taints";

/// Prefix of every rule's taint key, except that of a rule that only removes a taint.
pub const TAINT_PREFIX: &str = "readiness.k8s.io/";

/// Annotation on a node, followed by a rule's UID (older controllers: its name): its bootstrap under that rule is complete.
pub const BOOTSTRAP_COMPLETED_PREFIX: &str = "readiness.k8s.io/bootstrap-completed-";

/// Annotation on a node, followed by the UID of the rule that owns a taint: JSON with the rule's name, the taint's key and effect.
pub const TAINT_ADDED_BY_PREFIX: &str = "nodegate.dev/taint-added-by-";

/// Label on the rules' definition: who runs a controller for them.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The label's value for Nodegate.
pub const MANAGED_BY_US: &str = "nodegate";
/// The label's values that only name the tool that installed the definition.
pub const MANAGED_BY_TOOLS: [&str; 2] = ["Helm", "kustomize"];

/// Annotation on a node, followed by a rule's UID: when the node's readiness TTL under that rule runs out, in RFC 3339.
pub const READY_DEADLINE_PREFIX: &str = "nodegate.dev/ready-deadline-";

/// Type of the condition of a node that is past its readiness TTL under a rule that holds it.
pub const NOT_READY_IN_TIME: &str = "nodegate.dev/NotReadyInTime";

/// Annotation on a Karpenter `NodePool`: the readiness TTL of its nodes, a duration.
pub const READINESS_TTL: &str = "nodegate.dev/readiness-ttl";

/// Annotation on a node or a Karpenter `NodePool` that forbids repair, unless its value is `false`.
pub const DO_NOT_REPAIR: &str = "nodegate.dev/do-not-repair";

/// Name of the Lease for leader election; the Node Readiness Controller's too, so that the two never write at the same time.
pub const LEASE: &str = "ba65f13e.readiness.node.x-k8s.io";

/// Annotation on the Lease: any value but `false` suspends all rules. In an emergency a misspelt `true` must do, too.
pub const SUSPEND_ALL: &str = "nodegate.dev/suspend-all";

/// Annotation on the Lease: the leader's configuration and limits, as JSON, for the command line.
pub const RUNS_WITH: &str = "nodegate.dev/runs-with";

/// The namespace that the manifests install the controller into.
pub const NAMESPACE: &str = "nrr-system";

/// The `ConfigMap` that the chart keeps the controller's configuration in, beside the controller, and its key there.
pub const CONFIG_MAP: (&str, &str) = ("nrr-controller-manager-config", "config.yaml");
