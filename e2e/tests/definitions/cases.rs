//! What the API server accepts and refuses, by the validation in the `CustomResourceDefinition` alone.

/// The base rule of most cases. Specs of cases are JSON merge patches of its spec, in YAML.
pub(crate) const CONTINUOUS: &str = "
conditions:
- {type: example.com/NetworkReady, requiredStatus: 'True'}
- {type: example.com/StorageReady, requiredStatus: 'False'}
enforcementMode: continuous
taint: {key: readiness.k8s.io/example, value: pending, effect: NoSchedule}
nodeSelector: {matchLabels: {kubernetes.io/os: linux}}
";

/// The same rule in bootstrap-only mode, which some fields need.
pub(crate) const BOOTSTRAP: &str = "
conditions:
- {type: example.com/NetworkReady, requiredStatus: 'True'}
enforcementMode: bootstrap-only
taint: {key: readiness.k8s.io/example, effect: NoSchedule}
nodeSelector: {matchLabels: {kubernetes.io/os: linux}}
";

/// A rule that is created, or created and then changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// What it shows.
    pub name: &'static str,
    /// [`CONTINUOUS`] or [`BOOTSTRAP`].
    pub base: &'static str,
    /// For a change: the patch of `base` that is created first and accepted.
    pub before: Option<&'static str>,
    /// The tested patch of `base`: created, or replacing `before`.
    pub after: &'static str,
    /// Accepted, or refused with a message that contains this.
    pub expect: Result<(), &'static str>,
}

const fn create(name: &'static str, base: &'static str, spec: &'static str) -> Case {
    Case {
        name,
        base,
        before: None,
        after: spec,
        expect: Ok(()),
    }
}

const fn update(
    name: &'static str,
    base: &'static str,
    before: &'static str,
    after: &'static str,
) -> Case {
    Case {
        name,
        base,
        before: Some(before),
        after,
        expect: Ok(()),
    }
}

impl Case {
    const fn fails(self, message: &'static str) -> Self {
        Self {
            expect: Err(message),
            ..self
        }
    }
}

/// The error for a condition that cannot name a `DaemonSet`.
const DAEMON_SET: &str = "for example daemonset.nodegate.dev/kube-system.cilium";

/// Messages that clients of the Node Readiness Controller match on.
const KEY_PREFIX: &str = "taint key must start with 'readiness.k8s.io/'";
const KEY_SEPARATOR: &str = "taint key must have exactly one '/' separator (prefix/name format)";
const KEY_NAME_LENGTH: &str = "taint key name part must be 1-63 characters";
const KEY_NAME_CHARACTERS: &str = "taint key name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const KEY_LENGTH: &str = "taint key length must be at most 253 characters";
const VALUE_LENGTH: &str = "taint value length must be at most 63 characters";
const EFFECT: &str = "taint effect must be one of 'NoSchedule', 'PreferNoSchedule', 'NoExecute'";
const CONDITIONS_IMMUTABLE: &str = "conditions is immutable";
const MODE_IMMUTABLE: &str = "enforcementMode is immutable";
const POLICY_IMMUTABLE: &str = "conditionPolicy is immutable";
const SELECTOR_IMMUTABLE: &str = "nodeSelector is immutable";
const KEY_IMMUTABLE: &str = "taint key is immutable";
const EFFECT_IMMUTABLE: &str = "taint effect is immutable";
const VALUE_IMMUTABLE: &str = "taint value is immutable";

/// Messages of our own.
const KUBERNETES_KEY: &str = "taint key must not be under 'kubernetes.io' or a domain below it, whose taints belong to components of Kubernetes: use the key of another startup taint, or one that starts with 'readiness.k8s.io/'";
const VALUE_CHARACTERS: &str = "taint value must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const KEY_DOMAIN: &str =
    "taint key prefix must be a DNS name in lower case, for example 'readiness.k8s.io'";
const SELECTOR_EMPTY: &str = "nodeSelector must not be empty: select nodes by a label or an expression, for example matchLabels {kubernetes.io/os: linux}";
const SELECTOR_VALUES: &str =
    "values must be given with operator In and NotIn, and left out with Exists and DoesNotExist";
const BOOTSTRAP_ANY_OF: &str = "conditionPolicy anyOf cannot be used with enforcementMode bootstrap-only: use allOf, or enforcementMode continuous";
const BOOTSTRAP_DEFAULT: &str = "defaultStatus cannot be used with enforcementMode bootstrap-only: leave it out, or use enforcementMode continuous";
const BOOTSTRAP_GRACE: &str = "gracePeriod cannot be used with enforcementMode bootstrap-only, which gates a node only while it starts: leave it out, or use enforcementMode continuous";
const MAX_FIRST_GATED: &str = "maxFirstGated must be a number of nodes that is not negative, or a percentage from 0% to 100%, for example 10%";
const BOOTSTRAP_DISRUPTION: &str = "disruption cannot be used with enforcementMode bootstrap-only, except for maxFirstGated alone: leave the rest out, or use enforcementMode continuous";
const CONTINUOUS_REPAIR: &str = "repair cannot be used with enforcementMode continuous: leave it out, or use enforcementMode bootstrap-only";
const CONTINUOUS_LEAVE: &str = "existingNodes Leave cannot be used with enforcementMode continuous, which gates any node whose conditions are unmet: use Gate or leave it out, or use enforcementMode bootstrap-only";
const CONTINUOUS_REGATE: &str = "regateOn cannot be used with enforcementMode continuous, which gates a node at any time: leave it out, or use enforcementMode bootstrap-only";
const REVISION_OF_OTHERS: &str = "regateOn Revision can be used only where every condition names a DaemonSet: leave it out, or wait for daemonset.nodegate.dev/<namespace>.<name> alone";
const HEARTBEAT: &str = "heartbeatTimeout must be at least 1m; write for example 10m";
const GRACE: &str =
    "gracePeriod must be above zero, for example 2m; leave it out to gate a node at once";
const TTL: &str =
    "readinessTTL must be at least 1m: a node needs time to start, write for example 15m";
const MAX_UNHEALTHY: &str = "maxUnhealthy must be a number of nodes that is not negative, or a percentage from 0% to 100%, for example 20%";
const EVICTION_RATE: &str = "evictionRate must be above 0 nodes a second, for example 0.1; to add no taint at all set taintPolicy: remove-only";
const SECONDARY_RATE: &str = "secondaryEvictionRate must not be negative: write nodes a second, for example 0.01, or 0 to stop tainting in a partially disrupted zone";
const ZONE_THRESHOLD: &str =
    "unhealthyZoneThreshold must be above 0 and at most 1, for example 0.55";
const LARGE_CLUSTER: &str =
    "largeClusterSizeThreshold must not be negative: write a number of nodes, for example 50";

const SETTLE: &str =
    "settlePeriod must be above zero, for example 30s; leave it out to release a node at once";
const EXCEPT_TYPE: &str = "except can only be used with daemonsets.nodegate.dev/all, daemonsets.nodegate.dev/scheduled and conditions of a class: leave it out, or use one of these types";
const LABEL_NAME: &str = "a condition that waits for a label names it as label.nodegate.dev/<key>, for example label.nodegate.dev/nvidia.com/mig.config.state";
const VALUES_TYPE: &str =
    "values can only be used with label.nodegate.dev/<key>: leave them out, or use that type";
const MINIMUM_TWICE: &str =
    "minimum and minimumFromLabel cannot be used together: leave one of them out";
const MINIMUM_TYPE: &str = "minimum and minimumFromLabel can only be used with types that count something, resource.nodegate.dev/<resource> and resourceslice.nodegate.dev/<driver>: leave them out, or use one of these types";
const MINIMUM_LABEL: &str =
    "minimumFromLabel must be the key of a label, for example nvidia.com/gpu.count";
const UNKNOWN_TERMS: &str =
    "minimum, minimumFromLabel and reasons cannot be used with requiredStatus Unknown";

/// The schema's own error.
const BAD_DURATION: &str = "should match";

/// Every case. Each is independent: the rule is deleted after it.
#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    // What every user of the Node Readiness Controller has.
    create("a continuous rule", CONTINUOUS, "{}"),
    create("a bootstrap-only rule", BOOTSTRAP, "{}"),
    create("a rule with everything of the Node Readiness Controller", CONTINUOUS, "{conditionPolicy: anyOf, dryRun: true, conditions: [{type: Ready, requiredStatus: 'True', defaultStatus: 'False'}], nodeSelector: {matchExpressions: [{key: gpu, operator: Exists}, {key: pool, operator: NotIn, values: [edge]}]}}"),
    create("a taint with timeAdded", CONTINUOUS, "{taint: {timeAdded: '2026-01-01T00:00:00Z'}}"),
    create("every effect: NoExecute", CONTINUOUS, "{taint: {effect: NoExecute}}"),
    create("every effect: PreferNoSchedule", CONTINUOUS, "{taint: {effect: PreferNoSchedule}}"),

    // Required fields.
    create("no conditions", CONTINUOUS, "{conditions: []}").fails("spec.conditions in body should have at least 1 items"),
    create("a condition twice", CONTINUOUS, "{conditions: [{type: A, requiredStatus: 'True'}, {type: A, requiredStatus: 'False'}]}").fails("Duplicate value"),
    create("a condition without a type", CONTINUOUS, "{conditions: [{type: '', requiredStatus: 'True'}]}").fails("should be at least 1 chars long"),
    create("a condition status that does not exist", CONTINUOUS, "{conditions: [{type: A, requiredStatus: Maybe}]}").fails("supported values: \"True\", \"False\", \"Unknown\""),
    create("no mode", CONTINUOUS, "{enforcementMode: null}").fails("spec.enforcementMode: Required value"),
    create("a mode that does not exist", CONTINUOUS, "{enforcementMode: sometimes}").fails("supported values: \"bootstrap-only\", \"continuous\""),
    create("no taint", CONTINUOUS, "{taint: null}").fails("spec.taint: Required value"),
    create("no selector", CONTINUOUS, "{nodeSelector: null}").fails("spec.nodeSelector: Required value"),

    // Selectors.
    create("an empty selector", CONTINUOUS, "{nodeSelector: {matchLabels: null}}").fails(SELECTOR_EMPTY),
    create("a selector of empty lists", CONTINUOUS, "{nodeSelector: {matchLabels: {kubernetes.io/os: null}, matchExpressions: []}}").fails(SELECTOR_EMPTY),
    create("an operator that does not exist", CONTINUOUS, "{nodeSelector: {matchExpressions: [{key: a, operator: Equals, values: [b]}]}}").fails("supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\""),
    create("In without values", CONTINUOUS, "{nodeSelector: {matchExpressions: [{key: a, operator: In}]}}").fails(SELECTOR_VALUES),
    create("Exists with values", CONTINUOUS, "{nodeSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}").fails(SELECTOR_VALUES),

    // Taints.
    create("a foreign key", CONTINUOUS, "{taint: {key: example.com/startup}}").fails(KEY_PREFIX),
    create("a key of Kubernetes", CONTINUOUS, "{taint: {key: node.kubernetes.io/not-ready}}").fails(KEY_PREFIX),
    create("a key without a prefix", CONTINUOUS, "{taint: {key: startup}}").fails(KEY_PREFIX),
    create("a key without a separator", CONTINUOUS, "{taint: {key: readiness.k8s.io}}").fails(KEY_SEPARATOR),
    create("a key with two separators", CONTINUOUS, "{taint: {key: readiness.k8s.io/a/b}}").fails(KEY_SEPARATOR),
    create("a key without a name", CONTINUOUS, "{taint: {key: readiness.k8s.io/}}").fails(KEY_NAME_LENGTH),
    create("a key with a name of 63", CONTINUOUS, "{taint: {key: readiness.k8s.io/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}"),
    create("a key with a name of 64", CONTINUOUS, "{taint: {key: readiness.k8s.io/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}").fails(KEY_NAME_LENGTH),
    create("a key with a name that ends in a dash", CONTINUOUS, "{taint: {key: readiness.k8s.io/a-}}").fails(KEY_NAME_CHARACTERS),
    create("a key with a space in its name", CONTINUOUS, "{taint: {key: 'readiness.k8s.io/a b'}}").fails(KEY_NAME_CHARACTERS),
    create("a key of more than 253", CONTINUOUS, "{taint: {key: readiness.k8s.io/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}").fails(KEY_LENGTH),
    create("a value of 64", CONTINUOUS, "{taint: {value: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}").fails(VALUE_LENGTH),
    create("a value with a space", CONTINUOUS, "{taint: {value: not yet}}").fails(VALUE_CHARACTERS),
    create("an empty value", CONTINUOUS, "{taint: {value: ''}}"),
    create("an effect that does not exist", CONTINUOUS, "{taint: {effect: NoEntry}}").fails(EFFECT),
    create("no effect", CONTINUOUS, "{taint: {effect: null}}").fails("spec.taint.effect: Required value"),

    // Others' taints that a rule may remove.
    create("remove-only with Gardener's taint", BOOTSTRAP, "{nodegate: {taintPolicy: remove-only}, taint: {key: node.gardener.cloud/critical-components-not-ready}}"),
    create("remove-only with Cilium's taint", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: node.cilium.io/agent-not-ready}}"),
    create("remove-only with a key without a prefix", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: starting}}"),
    create("remove-only with a key of ours", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}}"),
    create("remove-only with a startup taint of the cluster autoscaler", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: startup-taint.cluster-autoscaler.kubernetes.io/gpu}}"),
    create("remove-only with kubernetes.io", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: kubernetes.io/starting}}").fails(KUBERNETES_KEY),
    create("remove-only with node.kubernetes.io", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: node.kubernetes.io/not-ready}}").fails(KUBERNETES_KEY),
    create("remove-only with a cloud provider's taint", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: node.cloudprovider.kubernetes.io/uninitialized}}").fails(KUBERNETES_KEY),
    create("remove-only with a domain that only looks like Kubernetes'", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: notkubernetes.io/starting}}"),
    create("remove-only with two separators", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: example.com/a/b}}").fails(KEY_SEPARATOR),
    create("remove-only with a bad prefix", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: Example_.com/a}}").fails(KEY_DOMAIN),
    create("remove-only without a prefix before the separator", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: /a}}").fails(KEY_DOMAIN),
    create("remove-only with an empty key", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: ''}}").fails(KEY_NAME_LENGTH),
    create("add-and-remove with a foreign key", CONTINUOUS, "{nodegate: {taintPolicy: add-and-remove}, taint: {key: example.com/startup}}").fails(KEY_PREFIX),
    create("a taint policy that does not exist", CONTINUOUS, "{nodegate: {taintPolicy: add-only}}").fails("supported values: \"add-and-remove\", \"remove-only\""),

    // Fields of one mode only.
    create("anyOf while starting", BOOTSTRAP, "{conditionPolicy: anyOf}").fails(BOOTSTRAP_ANY_OF),
    create("allOf while starting", BOOTSTRAP, "{conditionPolicy: allOf}"),
    create("a default status while starting", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'True'}]}").fails(BOOTSTRAP_DEFAULT),
    create("a grace period while starting", BOOTSTRAP, "{nodegate: {gracePeriod: 2m}}").fails(BOOTSTRAP_GRACE),
    create("disruption while starting", BOOTSTRAP, "{nodegate: {disruption: {}}}").fails(BOOTSTRAP_DISRUPTION),
    create("rates while starting", BOOTSTRAP, "{nodegate: {disruption: {maxFirstGated: 3, evictionRate: 1}}}").fails(BOOTSTRAP_DISRUPTION),
    create("a first share while starting", BOOTSTRAP, "{nodegate: {disruption: {maxFirstGated: 10%}}}"),
    create("a first number", CONTINUOUS, "{nodegate: {disruption: {maxFirstGated: 0}}}"),
    create("a first share above all", CONTINUOUS, "{nodegate: {disruption: {maxFirstGated: 101%}}}").fails(MAX_FIRST_GATED),
    create("a negative first number", CONTINUOUS, "{nodegate: {disruption: {maxFirstGated: -1}}}").fails(MAX_FIRST_GATED),
    create("repair at any time", CONTINUOUS, "{nodegate: {repair: {readinessTTL: 15m}}}").fails(CONTINUOUS_REPAIR),
    create("gating after a reboot at any time", CONTINUOUS, "{nodegate: {regateOn: [Reboot]}}").fails(CONTINUOUS_REGATE),
    create("no gating after a reboot at any time", CONTINUOUS, "{nodegate: {regateOn: []}}"),
    create("gating after a reboot", BOOTSTRAP, "{nodegate: {regateOn: [Reboot]}}"),
    create("gating after both", BOOTSTRAP, "{nodegate: {regateOn: [Reboot, Maintenance]}}"),
    create("gating after something else", BOOTSTRAP, "{nodegate: {regateOn: [Monday]}}").fails("Unsupported value: \"Monday\""),
    create("gating twice", BOOTSTRAP, "{nodegate: {regateOn: [Reboot, Reboot]}}").fails("Duplicate value"),
    create("gating with a revision", BOOTSTRAP, "{nodegate: {regateOn: [Revision]}, conditions: [{type: daemonset.nodegate.dev/kube-system.cilium, requiredStatus: 'True'}]}"),
    create("gating with a revision of what has none", BOOTSTRAP, "{nodegate: {regateOn: [Revision]}}").fails(REVISION_OF_OTHERS),
    create("gating with a revision among others", BOOTSTRAP, "{nodegate: {regateOn: [Revision]}, conditions: [{type: daemonset.nodegate.dev/kube-system.cilium, requiredStatus: 'True'}, {type: Ready, requiredStatus: 'True'}]}").fails(REVISION_OF_OTHERS),

    // Durations.
    create("a heartbeat timeout", CONTINUOUS, "{nodegate: {heartbeatTimeout: 6m}}"),
    create("the least heartbeat timeout", BOOTSTRAP, "{nodegate: {heartbeatTimeout: 60s}}"),
    create("a duration in hours and minutes", CONTINUOUS, "{nodegate: {heartbeatTimeout: 1h30m}}"),
    create("a heartbeat timeout below a minute", CONTINUOUS, "{nodegate: {heartbeatTimeout: 59s}}").fails(HEARTBEAT),
    create("a heartbeat timeout of zero", CONTINUOUS, "{nodegate: {heartbeatTimeout: 0s}}").fails(HEARTBEAT),
    create("a negative heartbeat timeout", CONTINUOUS, "{nodegate: {heartbeatTimeout: -5m}}").fails(BAD_DURATION),
    create("a heartbeat timeout without a unit", CONTINUOUS, "{nodegate: {heartbeatTimeout: '300'}}").fails(BAD_DURATION),
    create("a heartbeat timeout in days", CONTINUOUS, "{nodegate: {heartbeatTimeout: 1d}}").fails(BAD_DURATION),
    create("a heartbeat timeout that is a number", CONTINUOUS, "{nodegate: {heartbeatTimeout: 300}}").fails("must be of type string"),
    create("a heartbeat timeout of more than 292 years", CONTINUOUS, "{nodegate: {heartbeatTimeout: 9999999999h}}").fails(HEARTBEAT),
    create("a grace period", CONTINUOUS, "{nodegate: {gracePeriod: 1s}}"),
    create("a grace period of zero", CONTINUOUS, "{nodegate: {gracePeriod: 0m}}").fails(GRACE),
    create("a settle period", BOOTSTRAP, "{nodegate: {settlePeriod: 30s}}"),
    create("a settle period of zero", CONTINUOUS, "{nodegate: {settlePeriod: 0s}}").fails(SETTLE),
    create("a negative grace period", CONTINUOUS, "{nodegate: {gracePeriod: -1m}}").fails(BAD_DURATION),

    // Disruption.
    create("disruption with the controller's values", CONTINUOUS, "{nodegate: {disruption: {}}}"),
    create("disruption with all values", CONTINUOUS, "{nodegate: {disruption: {evictionRate: 0.1, secondaryEvictionRate: 0, unhealthyZoneThreshold: 1, largeClusterSizeThreshold: 0}}}"),
    create("a rate of a whole number", CONTINUOUS, "{nodegate: {disruption: {evictionRate: 2, secondaryEvictionRate: 1, unhealthyZoneThreshold: 0.55}}}"),
    create("a rate of zero", CONTINUOUS, "{nodegate: {disruption: {evictionRate: 0}}}").fails(EVICTION_RATE),
    create("a negative rate", CONTINUOUS, "{nodegate: {disruption: {evictionRate: -0.1}}}").fails(EVICTION_RATE),
    create("a negative secondary rate", CONTINUOUS, "{nodegate: {disruption: {secondaryEvictionRate: -1}}}").fails(SECONDARY_RATE),
    create("a threshold of zero", CONTINUOUS, "{nodegate: {disruption: {unhealthyZoneThreshold: 0}}}").fails(ZONE_THRESHOLD),
    create("a threshold above one", CONTINUOUS, "{nodegate: {disruption: {unhealthyZoneThreshold: 1.01}}}").fails(ZONE_THRESHOLD),
    create("a negative cluster size", CONTINUOUS, "{nodegate: {disruption: {largeClusterSizeThreshold: -1}}}").fails(LARGE_CLUSTER),

    // Repair.
    create("repair that only reports", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 15m}}}"),
    create("repair with a percentage", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 15m, action: DeleteNodeClaim, maxUnhealthy: 20%}}}"),
    create("repair with a number", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 1m, action: Release, maxUnhealthy: 5}}}"),
    create("repair with 100%", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 1m, action: None, maxUnhealthy: 100%}}}"),
    create("repair that is paused", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 1m, maxUnhealthy: 0}}}"),
    create("repair without a time, which is 15 minutes then", BOOTSTRAP, "{nodegate: {repair: {action: Release}}}"),
    create("repair within less than a minute", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 30s}}}").fails(TTL),
    create("an action that does not exist", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 15m, action: Reboot}}}").fails("supported values: \"DeleteNodeClaim\", \"Release\", \"None\""),
    create("a limit above 100%", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 15m, maxUnhealthy: 101%}}}").fails(MAX_UNHEALTHY),
    create("a limit without a percent sign", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 15m, maxUnhealthy: '20'}}}").fails(MAX_UNHEALTHY),
    create("a negative limit", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 15m, maxUnhealthy: -1}}}").fails(MAX_UNHEALTHY),

    // A condition about a DaemonSet must name one.
    create("a DaemonSet", CONTINUOUS, "{conditions: [{type: daemonset.nodegate.dev/kube-system.cilium, requiredStatus: 'True'}]}"),
    create("a DaemonSet with dots in its name", CONTINUOUS, "{conditions: [{type: daemonset.nodegate.dev/a.b.c-1.d, requiredStatus: 'True'}]}"),
    create("no namespace", CONTINUOUS, "{conditions: [{type: daemonset.nodegate.dev/cilium, requiredStatus: 'True'}]}").fails(DAEMON_SET),
    create("no name", CONTINUOUS, "{conditions: [{type: daemonset.nodegate.dev/kube-system., requiredStatus: 'True'}]}").fails(DAEMON_SET),
    create("upper case", CONTINUOUS, "{conditions: [{type: daemonset.nodegate.dev/kube-system.Cilium, requiredStatus: 'True'}]}").fails(DAEMON_SET),
    create("a slash", CONTINUOUS, "{conditions: [{type: daemonset.nodegate.dev/kube-system/cilium, requiredStatus: 'True'}]}").fails(DAEMON_SET),
    create("two dots", CONTINUOUS, "{conditions: [{type: daemonset.nodegate.dev/kube-system..cilium, requiredStatus: 'True'}]}").fails(DAEMON_SET),

    // How many, and with which reasons.
    create("a minimum of a resource", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/nvidia.com/gpu, requiredStatus: 'True', nodegate: {minimum: 8}}]}"),
    create("a minimum of devices", BOOTSTRAP, "{conditions: [{type: resourceslice.nodegate.dev/gpu.nvidia.com, requiredStatus: 'True', nodegate: {minimum: 8}}]}"),
    create("a minimum in bytes", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/hugepages-1Gi, requiredStatus: 'True', nodegate: {minimum: 68719476736}}]}"),
    create("a minimum from a label", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/nvidia.com/gpu, requiredStatus: 'True', nodegate: {minimumFromLabel: nvidia.com/gpu.count}}]}"),
    create("a minimum from a label without a prefix", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/nvidia.com/gpu, requiredStatus: 'True', nodegate: {minimumFromLabel: GPUs}}]}"),
    create("a minimum of zero", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimum: 0}}]}").fails("should be greater than or equal to 1"),
    create("a minimum that is a quantity", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimum: 8k}}]}").fails("must be of type integer"),
    create("two minimums", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimum: 1, minimumFromLabel: b}}]}").fails(MINIMUM_TWICE),
    create("a minimum of what is not counted", BOOTSTRAP, "{conditions: [{type: csidriver.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimum: 1}}]}").fails(MINIMUM_TYPE),
    create("a minimum from a label of what is not counted", BOOTSTRAP, "{conditions: [{type: Ready, requiredStatus: 'True', nodegate: {minimumFromLabel: a}}]}").fails(MINIMUM_TYPE),
    create("a minimum from what is no label", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimumFromLabel: a/b/c}}]}").fails(MINIMUM_LABEL),
    create("a minimum from a label in upper case", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimumFromLabel: Example.com/a}}]}").fails(MINIMUM_LABEL),
    create("a minimum with Unknown", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/a, requiredStatus: Unknown, nodegate: {minimum: 1}}]}").fails(UNKNOWN_TERMS),
    create("reasons", BOOTSTRAP, "{conditions: [{type: Ready, requiredStatus: 'True', nodegate: {reasons: [KubeletReady, 'Other:Reason_1']}}]}"),
    create("16 reasons", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', nodegate: {reasons: [A, B, C, D, E, F, G, H, I, J, K, L, M, 'N', O, P]}}]}"),
    create("17 reasons", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', nodegate: {reasons: [A, B, C, D, E, F, G, H, I, J, K, L, M, 'N', O, P, Q]}}]}").fails("must have at most 16 items"),
    create("no reasons", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', nodegate: {reasons: []}}]}").fails("should have at least 1 items"),
    create("a reason twice", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', nodegate: {reasons: [A, A]}}]}").fails("Duplicate value"),
    create("a reason that is a sentence", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', nodegate: {reasons: [it is done]}}]}").fails("should match"),
    create("reasons with Unknown", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: Unknown, nodegate: {reasons: [A]}}]}").fails(UNKNOWN_TERMS),
    create("a label", BOOTSTRAP, "{conditions: [{type: label.nodegate.dev/nvidia.com/mig.config.state, requiredStatus: 'True'}]}"),
    create("a label's values", BOOTSTRAP, "{conditions: [{type: label.nodegate.dev/a, requiredStatus: 'True', nodegate: {values: [success, '']}}]}"),
    create("no label", BOOTSTRAP, "{conditions: [{type: label.nodegate.dev/, requiredStatus: 'True'}]}").fails(LABEL_NAME),
    create("what is no label", BOOTSTRAP, "{conditions: [{type: label.nodegate.dev/a/b/c, requiredStatus: 'True'}]}").fails(LABEL_NAME),
    create("values of what is no label", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', nodegate: {values: [a]}}]}").fails(VALUES_TYPE),
    create("what is left out of all", BOOTSTRAP, "{conditions: [{type: daemonsets.nodegate.dev/all, requiredStatus: 'True', nodegate: {except: [kube-system/a, b/c.d]}}]}"),
    create("what is left out of a class", BOOTSTRAP, "{conditions: [{type: gpu.example.com/CriticalComponentsReady, requiredStatus: 'True', nodegate: {except: [a/b]}}]}"),
    create("what is left out of one", BOOTSTRAP, "{conditions: [{type: daemonset.nodegate.dev/a.b, requiredStatus: 'True', nodegate: {except: [a/b]}}]}").fails(EXCEPT_TYPE),
    create("what is left out without a namespace", BOOTSTRAP, "{conditions: [{type: daemonsets.nodegate.dev/all, requiredStatus: 'True', nodegate: {except: [a]}}]}").fails("should match"),
    create("17 values", BOOTSTRAP, "{conditions: [{type: label.nodegate.dev/a, requiredStatus: 'True', nodegate: {values: [a, b, c, d, e, f, g, h, i, j, k, l, m, 'n', o, p, q]}}]}").fails("must have at most 16 items"),
    create("a value that is a sentence", BOOTSTRAP, "{conditions: [{type: label.nodegate.dev/a, requiredStatus: 'True', nodegate: {values: [it is done]}}]}").fails("should match"),

    // Immutable fields.
    update("a condition is removed", CONTINUOUS, "{}", "{conditions: [{type: example.com/NetworkReady, requiredStatus: 'True'}]}").fails(CONDITIONS_IMMUTABLE),
    update("a required status changes", BOOTSTRAP, "{}", "{conditions: [{type: example.com/NetworkReady, requiredStatus: 'False'}]}").fails(CONDITIONS_IMMUTABLE),
    update("a default status appears", CONTINUOUS, "{conditions: [{type: A, requiredStatus: 'True'}]}", "{conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'True'}]}").fails(CONDITIONS_IMMUTABLE),
    update("a default status vanishes", CONTINUOUS, "{conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'True'}]}", "{conditions: [{type: A, requiredStatus: 'True'}]}").fails(CONDITIONS_IMMUTABLE),
    update("what is ours in a condition changes", BOOTSTRAP, "{conditions: [{type: A, requiredStatus: 'True', nodegate: {reasons: [A]}}]}", "{conditions: [{type: A, requiredStatus: 'True', nodegate: {reasons: [B]}}]}"),
    update("a minimum appears", BOOTSTRAP, "{conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True'}]}", "{conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimum: 2}}]}"),
    update("conditions in another order", CONTINUOUS, "{conditions: [{type: A, requiredStatus: 'True'}, {type: B, requiredStatus: 'True'}]}", "{conditions: [{type: B, requiredStatus: 'True'}, {type: A, requiredStatus: 'True'}]}"),
    update("the mode changes", CONTINUOUS, "{}", "{enforcementMode: bootstrap-only}").fails(MODE_IMMUTABLE),
    update("allOf is written out", CONTINUOUS, "{}", "{conditionPolicy: allOf}"),
    update("allOf is left out", CONTINUOUS, "{conditionPolicy: allOf}", "{}"),
    update("anyOf appears", CONTINUOUS, "{}", "{conditionPolicy: anyOf}").fails(POLICY_IMMUTABLE),
    update("anyOf vanishes", CONTINUOUS, "{conditionPolicy: anyOf}", "{}").fails(POLICY_IMMUTABLE),
    update("allOf becomes anyOf", CONTINUOUS, "{conditionPolicy: allOf}", "{conditionPolicy: anyOf}").fails(POLICY_IMMUTABLE),
    update("the taint key changes", CONTINUOUS, "{}", "{taint: {key: readiness.k8s.io/other}}").fails(KEY_IMMUTABLE),
    update("the taint effect changes", CONTINUOUS, "{}", "{taint: {effect: NoExecute}}").fails(EFFECT_IMMUTABLE),
    update("the taint value changes", CONTINUOUS, "{}", "{taint: {value: other}}").fails(VALUE_IMMUTABLE),
    update("the taint value vanishes", CONTINUOUS, "{}", "{taint: {value: null}}").fails(VALUE_IMMUTABLE),
    update("the taint value appears", BOOTSTRAP, "{}", "{taint: {value: pending}}"),
    update("an empty taint value becomes one", BOOTSTRAP, "{taint: {value: ''}}", "{taint: {value: pending}}"),
    update("the taint value becomes empty", CONTINUOUS, "{}", "{taint: {value: ''}}").fails(VALUE_IMMUTABLE),
    update("an empty taint value is left out", BOOTSTRAP, "{taint: {value: ''}}", "{}"),
    update("a selected label changes", CONTINUOUS, "{}", "{nodeSelector: {matchLabels: {kubernetes.io/os: windows}}}").fails(SELECTOR_IMMUTABLE),
    update("a selected label is added", CONTINUOUS, "{}", "{nodeSelector: {matchLabels: {gpu: 'true'}}}").fails(SELECTOR_IMMUTABLE),
    update("an expression is added", CONTINUOUS, "{}", "{nodeSelector: {matchExpressions: [{key: gpu, operator: Exists}]}}").fails(SELECTOR_IMMUTABLE),
    update("labels become an expression", CONTINUOUS, "{}", "{nodeSelector: {matchLabels: null, matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}}").fails(SELECTOR_IMMUTABLE),

    // Mutable fields.
    create("existing nodes are left alone", BOOTSTRAP, "{nodegate: {existingNodes: Leave}}"),
    create("existing nodes are gated, said aloud", CONTINUOUS, "{nodegate: {existingNodes: Gate}}"),
    create("existing nodes left alone by a continuous rule", CONTINUOUS, "{nodegate: {existingNodes: Leave}}").fails(CONTINUOUS_LEAVE),
    create("a word for existing nodes that does not exist", BOOTSTRAP, "{nodegate: {existingNodes: leave}}").fails("supported values: \"Gate\", \"Leave\""),
    update("a rule is suspended", BOOTSTRAP, "{}", "{nodegate: {suspend: true}}"),
    update("a rule goes on", CONTINUOUS, "{nodegate: {suspend: true}}", "{}"),
    update("existing nodes are left alone from now on", BOOTSTRAP, "{}", "{nodegate: {existingNodes: Leave}}"),
    update("a dry run becomes real", CONTINUOUS, "{dryRun: true}", "{}"),
    update("a rule becomes remove-only", CONTINUOUS, "{}", "{nodegate: {taintPolicy: remove-only}}"),
    update("a remove-only rule starts to add a taint of ours", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}}", "{nodegate: {taintPolicy: add-and-remove}}"),
    update("a remove-only rule starts to add a foreign taint", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: example.com/startup}}", "{nodegate: {taintPolicy: add-and-remove}, taint: {key: example.com/startup}}").fails(KEY_PREFIX),
    update("a remove-only rule with a foreign taint loses its policy", CONTINUOUS, "{nodegate: {taintPolicy: remove-only}, taint: {key: example.com/startup}}", "{taint: {key: example.com/startup}}").fails(KEY_PREFIX),
    update("timings appear", CONTINUOUS, "{}", "{nodegate: {gracePeriod: 2m, heartbeatTimeout: 10m, disruption: {evictionRate: 1}}}"),
    update("timings change", CONTINUOUS, "{nodegate: {gracePeriod: 2m, heartbeatTimeout: 10m, disruption: {evictionRate: 1}}}", "{nodegate: {gracePeriod: 3m, heartbeatTimeout: 11m, disruption: {evictionRate: 2}}}"),
    update("repair appears", BOOTSTRAP, "{}", "{nodegate: {repair: {readinessTTL: 15m}, regateOn: [Reboot]}}"),
    update("repair vanishes", BOOTSTRAP, "{nodegate: {repair: {readinessTTL: 15m}, regateOn: [Reboot]}}", "{}"),
    update("a timing changes to one that could not work", CONTINUOUS, "{nodegate: {heartbeatTimeout: 10m}}", "{nodegate: {heartbeatTimeout: 10s}}").fails(HEARTBEAT),
];
