//! What the synthesized conditions say, in tables of named cases.

use proptest::prelude::*;

use crate::api::ConditionStatus;
use crate::testing::{
    Answer, Builder, CRITICAL, DaemonSetBuilder, GATE, NodeBuilder, PodBuilder, RuleBuilder, World,
    at, configured_world, csi_node, daemon_set, node, pod, rule, world,
};

const SCHEDULED: &str = "node.gardener.cloud/CriticalDaemonSetsScheduled";
const READY: &str = "node.gardener.cloud/CriticalPodsReady";
const DRIVERS: &str = "node.gardener.cloud/CSIDriversRegistered";
const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";

const CNI_MISSING: &str = "DaemonSet kube-system/cni has no pod on this node";

fn worker() -> NodeBuilder {
    node("worker-1")
}

fn cni() -> DaemonSetBuilder {
    daemon_set("kube-system/cni").critical()
}

fn cni_pod() -> PodBuilder {
    pod("kube-system/cni-1").of(&cni())
}

/// What is amiss by a condition that some source makes; `None` when it is `True`.
fn lack(world: &World, kind: &str) -> Option<String> {
    let answer = world.condition(kind).expect("some source makes it");
    (answer.status != ConditionStatus::True).then_some(answer.message)
}

fn assert_lack(name: &str, world: &World, kind: &str, expected: Option<&str>) {
    assert_eq!(lack(world, kind).as_deref(), expected, "{name}: {kind}");
}

#[test]
fn a_node_without_critical_components_lacks_nothing() {
    let world = world(&worker().taint("node.kubernetes.io/not-ready", "NoSchedule"));
    for (kind, reason, message) in [
        (
            SCHEDULED,
            "DaemonSetsScheduled",
            "every critical DaemonSet meant for this node has a pod on it",
        ),
        (
            READY,
            "PodsReady",
            "every critical pod on this node is Ready",
        ),
        (
            DRIVERS,
            "CSIDriversRegistered",
            "every CSI driver that is waited for is registered",
        ),
        (
            COMPONENTS,
            "CriticalComponentsReady",
            "every critical component is ready on this node",
        ),
    ] {
        let answer = Answer {
            status: ConditionStatus::True,
            reason: reason.into(),
            message: message.into(),
            recheck: None,
        };
        assert_eq!(world.condition(kind), Some(answer));
    }
}

#[test]
fn a_daemon_set_is_waited_for_until_it_has_a_live_pod_of_its_own() {
    let proxy = daemon_set("kube-system/proxy").critical();
    let agent = daemon_set("kube-system/agent").critical();
    let with = |pod: PodBuilder| world(&worker()).daemon_set(&cni()).pod(&pod);
    for (name, world, expected) in [
        (
            "no pod",
            world(&worker()).daemon_set(&cni()),
            Some(CNI_MISSING),
        ),
        ("a pod that is not Ready", with(cni_pod()), None),
        (
            "a terminating pod",
            with(cni_pod().deleting()),
            Some(CNI_MISSING),
        ),
        (
            "a pod that succeeded",
            with(cni_pod().phase("Succeeded")),
            Some(CNI_MISSING),
        ),
        (
            "a pod that failed",
            with(cni_pod().phase("Failed")),
            Some(CNI_MISSING),
        ),
        (
            "a pod on another node",
            with(cni_pod().on("worker-2")),
            Some(CNI_MISSING),
        ),
        (
            "a labelled pod that nobody controls",
            with(pod("kube-system/cni-1").critical()),
            Some(CNI_MISSING),
        ),
        (
            "a pod of another DaemonSet",
            with(pod("kube-system/cni-1").of(&proxy)).daemon_set(&proxy),
            Some(CNI_MISSING),
        ),
        (
            "a failed pod beside its replacement",
            with(cni_pod().phase("Failed")).pod(&pod("kube-system/cni-2").of(&cni())),
            None,
        ),
        (
            "no label",
            world(&worker()).daemon_set(&daemon_set("kube-system/cni")),
            None,
        ),
        (
            "a label on the metadata only",
            world(&worker()).daemon_set(&daemon_set("kube-system/cni").label(CRITICAL, "true")),
            None,
        ),
        (
            "a label on the pod template only",
            world(&worker())
                .daemon_set(&daemon_set("kube-system/cni").template_label(CRITICAL, "true")),
            None,
        ),
        (
            "a label with another value",
            world(&worker()).daemon_set(
                &daemon_set("kube-system/cni")
                    .label(CRITICAL, "false")
                    .template_label(CRITICAL, "false"),
            ),
            None,
        ),
        (
            "being deleted",
            world(&worker()).daemon_set(&cni().deleting()),
            None,
        ),
        (
            "two without a pod",
            world(&worker()).daemon_set(&cni()).daemon_set(&proxy),
            Some("DaemonSets kube-system/cni, kube-system/proxy have no pod on this node"),
        ),
        (
            "three without a pod",
            world(&worker())
                .daemon_set(&cni())
                .daemon_set(&proxy)
                .daemon_set(&agent),
            Some(
                "DaemonSets kube-system/agent, kube-system/cni, kube-system/proxy have no pod on this node",
            ),
        ),
        (
            "in a namespace that the class does not cover",
            world(&worker()).daemon_set(&daemon_set("agents/agent").critical()),
            None,
        ),
    ] {
        assert_lack(name, &world, SCHEDULED, expected);
    }
}

/// A node with labels that a `DaemonSet` may ask for.
fn labelled() -> NodeBuilder {
    worker()
        .label("kubernetes.io/arch", "arm64")
        .label("cores", "8")
}

/// A `DaemonSet` whose pods require one of these terms of node affinity, given in YAML.
fn requires(terms: &str) -> DaemonSetBuilder {
    cni().pod_spec(&format!(
        "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
         {{nodeSelectorTerms: {terms}}}}}}}"
    ))
}

fn assert_meant_for(name: &str, node: &NodeBuilder, daemon_set: &DaemonSetBuilder, expected: bool) {
    let world = world(node).daemon_set(daemon_set);
    assert_lack(name, &world, SCHEDULED, expected.then_some(CNI_MISSING));
}

#[test]
fn a_daemon_set_that_should_not_run_here_is_not_waited_for() {
    for (name, daemon_set, expected) in [
        ("anywhere", cni(), true),
        (
            "this node's name",
            cni().pod_spec("nodeName: worker-1"),
            true,
        ),
        (
            "another node's name",
            cni().pod_spec("nodeName: worker-2"),
            false,
        ),
        (
            "node selector that matches",
            cni()
                .node_selector("kubernetes.io/arch", "arm64")
                .node_selector("cores", "8"),
            true,
        ),
        (
            "node selector of which half matches",
            cni()
                .node_selector("kubernetes.io/arch", "arm64")
                .node_selector("cores", "9"),
            false,
        ),
        (
            "node selector for a label that is missing",
            cni().node_selector("gpu", ""),
            false,
        ),
        (
            "preferred affinity only",
            cni().pod_spec(
                "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}",
            ),
            true,
        ),
    ] {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}

#[test]
fn node_affinity_asks_for_labels() {
    let labels = |requirement: &str| requires(&format!("[{{matchExpressions: [{requirement}]}}]"));
    for (name, daemon_set, expected) in [
        (
            "In",
            labels("{key: cores, operator: In, values: ['4', '8']}"),
            true,
        ),
        (
            "not In",
            labels("{key: cores, operator: In, values: ['4']}"),
            false,
        ),
        (
            "NotIn",
            labels("{key: cores, operator: NotIn, values: ['4']}"),
            true,
        ),
        (
            "NotIn of a missing label",
            labels("{key: gpu, operator: NotIn, values: [a]}"),
            true,
        ),
        (
            "not NotIn",
            labels("{key: cores, operator: NotIn, values: ['8']}"),
            false,
        ),
        ("Exists", labels("{key: cores, operator: Exists}"), true),
        ("not Exists", labels("{key: gpu, operator: Exists}"), false),
        (
            "DoesNotExist",
            labels("{key: gpu, operator: DoesNotExist}"),
            true,
        ),
        (
            "not DoesNotExist",
            labels("{key: cores, operator: DoesNotExist}"),
            false,
        ),
        (
            "Gt",
            labels("{key: cores, operator: Gt, values: ['7']}"),
            true,
        ),
        (
            "not Gt",
            labels("{key: cores, operator: Gt, values: ['8']}"),
            false,
        ),
        (
            "Lt",
            labels("{key: cores, operator: Lt, values: ['9']}"),
            true,
        ),
        (
            "not Lt",
            labels("{key: cores, operator: Lt, values: ['8']}"),
            false,
        ),
        (
            "an unknown operator",
            labels("{key: cores, operator: Like, values: ['8']}"),
            false,
        ),
    ] {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}

#[test]
fn node_affinity_asks_for_the_nodes_name() {
    let fields = |requirement: &str| requires(&format!("[{{matchFields: [{requirement}]}}]"));
    for (name, daemon_set, expected) in [
        (
            "this node by a field",
            fields("{key: metadata.name, operator: In, values: [worker-1]}"),
            true,
        ),
        (
            "another node by a field",
            fields("{key: metadata.name, operator: In, values: [worker-2]}"),
            false,
        ),
        (
            "not another node by a field",
            fields("{key: metadata.name, operator: NotIn, values: [worker-2]}"),
            true,
        ),
        (
            "not this node by a field",
            fields("{key: metadata.name, operator: NotIn, values: [worker-1]}"),
            false,
        ),
        (
            "a field with two values",
            fields("{key: metadata.name, operator: In, values: [worker-1, worker-2]}"),
            false,
        ),
        (
            "a field with an operator that fields do not have",
            fields("{key: metadata.name, operator: Exists}"),
            false,
        ),
        (
            "labels match, but the field does not",
            requires(
                "[{matchExpressions: [{key: cores, operator: Exists}], \
                  matchFields: [{key: metadata.name, operator: In, values: [worker-2]}]}]",
            ),
            false,
        ),
    ] {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}

#[test]
fn one_term_of_a_node_affinity_is_enough() {
    let amd64 = "{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}";
    let arm64 = "{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}";
    let broken = "{matchExpressions: [{key: cores, operator: Gt, values: [many]}]}";
    for (name, daemon_set, expected) in [
        ("no term matches", requires(&format!("[{amd64}]")), false),
        (
            "one of two terms matches",
            requires(&format!("[{amd64}, {arm64}]")),
            true,
        ),
        ("no term", requires("[]"), false),
        ("an empty term", requires("[{}]"), false),
        (
            "an empty term beside one that matches",
            requires(&format!("[{{}}, {arm64}]")),
            true,
        ),
        (
            "a term that cannot be parsed",
            requires(&format!("[{broken}]")),
            false,
        ),
        (
            "a term that cannot be parsed beside one that matches",
            requires(&format!("[{broken}, {arm64}]")),
            true,
        ),
        (
            "affinity matches, but the node selector does not",
            requires(&format!("[{arm64}]")).node_selector("cores", "9"),
            false,
        ),
    ] {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}

#[test]
fn a_taint_that_stays_shuts_out_a_daemon_set_that_does_not_tolerate_it() {
    let gpu = |effect| worker().taint_with("example.com/gpu", "yes", effect);
    for (name, node, daemon_set, expected) in [
        ("NoSchedule", gpu("NoSchedule"), cni(), false),
        ("NoExecute", gpu("NoExecute"), cni(), false),
        ("PreferNoSchedule", gpu("PreferNoSchedule"), cni(), true),
        (
            "tolerated by key",
            gpu("NoSchedule"),
            cni().toleration("{key: example.com/gpu, operator: Exists}"),
            true,
        ),
        (
            "tolerated by value",
            gpu("NoSchedule"),
            cni().toleration("{key: example.com/gpu, value: 'yes', effect: NoSchedule}"),
            true,
        ),
        (
            "tolerated with another value",
            gpu("NoSchedule"),
            cni().toleration("{key: example.com/gpu, value: 'no'}"),
            false,
        ),
        (
            "tolerated with another effect",
            gpu("NoExecute"),
            cni().toleration("{key: example.com/gpu, operator: Exists, effect: NoSchedule}"),
            false,
        ),
        (
            "everything tolerated",
            gpu("NoExecute"),
            cni().toleration("{operator: Exists}"),
            true,
        ),
        (
            "one of two tolerated",
            gpu("NoSchedule").taint("example.com/other", "NoSchedule"),
            cni().toleration("{key: example.com/gpu, operator: Exists}"),
            false,
        ),
        (
            "out of service, which an administrator says",
            worker().taint("node.kubernetes.io/out-of-service", "NoExecute"),
            cni(),
            false,
        ),
    ] {
        assert_meant_for(name, &node, &daemon_set, expected);
    }
}

#[test]
fn a_taint_that_will_go_is_looked_through() {
    let lifecycle = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "karpenter.sh/unregistered",
    ];
    let configured = [
        "node.cilium.io/agent-not-ready",
        "ebs.csi.aws.com/agent-not-ready",
        "efs.csi.aws.com/agent-not-ready",
        "node.gardener.cloud/critical-components-not-ready",
    ];
    for key in lifecycle.into_iter().chain(configured) {
        for effect in ["NoSchedule", "NoExecute"] {
            let world = world(&worker().taint(key, effect)).daemon_set(&cni());
            assert_lack(key, &world, SCHEDULED, Some(CNI_MISSING));
        }
    }
}

#[test]
fn a_configured_taint_key_may_be_a_prefix() {
    let config = "passingTaints: [example.com/startup-*, example.com/exact]";
    for (key, expected) in [
        ("example.com/startup-network", true),
        ("example.com/startup-", true),
        ("example.com/start", false),
        ("example.com/exact", true),
        ("example.com/exactly", false),
        ("node.cilium.io/agent-not-ready", false),
    ] {
        let node = worker().taint(key, "NoSchedule");
        let world = configured_world(&node, config).daemon_set(&cni());
        assert_lack(key, &world, SCHEDULED, expected.then_some(CNI_MISSING));
    }
}

#[test]
fn a_taint_that_a_rule_manages_is_looked_through() {
    let network = || rule("network").waits_for("NetworkReady");
    let elsewhere = |rule: RuleBuilder| rule.selects("pool", "other");
    let gated = || worker().taint(GATE, "NoSchedule");
    for (name, node, rule, expected) in [
        ("managed here", gated(), network(), true),
        (
            "managed on other nodes",
            gated(),
            elsewhere(network()),
            true,
        ),
        ("only lifted", gated(), network().remove_only(), true),
        (
            "of a rule that is being deleted",
            gated(),
            network().deleting(),
            true,
        ),
        ("of a dry run", gated(), network().dry_run(), false),
        (
            "of a rule that cannot act yet",
            gated(),
            network().without_finalizer(),
            true,
        ),
        (
            "of a rule that cannot be used",
            gated(),
            rule("broken"),
            false,
        ),
        (
            "with another effect",
            worker().taint(GATE, "NoExecute"),
            network(),
            false,
        ),
        (
            "with another value",
            worker().taint_with(GATE, "other", "NoSchedule"),
            network(),
            true,
        ),
    ] {
        let world = world(&node).daemon_set(&cni()).rule(&rule);
        assert_lack(name, &world, SCHEDULED, expected.then_some(CNI_MISSING));
    }
}

#[test]
fn a_taint_left_by_a_rule_that_is_gone_is_looked_through() {
    let node = worker()
        .dated_taint("readiness.k8s.io/old", "NoSchedule")
        .owned_by("old", "readiness.k8s.io/old", "NoSchedule");
    let world = world(&node).daemon_set(&cni());
    assert_lack("orphan", &world, SCHEDULED, Some(CNI_MISSING));
}

#[test]
fn a_daemon_set_that_the_gate_itself_shuts_out_is_left_out() {
    let gate = || rule("gate").waits_for(COMPONENTS);
    let tolerant = || cni().toleration(&format!("{{key: {GATE}, operator: Exists}}"));
    for (name, rule, daemon_set, expected) in [
        ("intolerant", gate(), cni(), false),
        ("tolerant", gate(), tolerant(), true),
        (
            "a gate that waits for something else",
            rule("gate").waits_for("Ready"),
            cni(),
            true,
        ),
        (
            "a gate of other nodes",
            gate().selects("pool", "other"),
            cni(),
            true,
        ),
        ("a gate that only lifts", gate().remove_only(), cni(), false),
        (
            "a gate of the other effect",
            gate().taint(GATE, "NoExecute"),
            cni(),
            false,
        ),
        (
            "a gate that repels nobody",
            gate().taint(GATE, "PreferNoSchedule"),
            cni(),
            true,
        ),
        (
            "tolerant of another value",
            gate(),
            cni().toleration(&format!("{{key: {GATE}, value: other}}")),
            false,
        ),
    ] {
        let absent = world(&worker()).daemon_set(&daemon_set).rule(&rule);
        let effect = absent.rules()[0].spec.as_ref().unwrap().effect;
        let present = worker().taint(GATE, effect.as_str());
        let present = world(&present).daemon_set(&daemon_set).rule(&rule);
        for (when, world) in [
            ("while the taint is there", present),
            ("while it is not", absent),
        ] {
            let name = format!("{name}, {when}");
            assert_lack(&name, &world, SCHEDULED, expected.then_some(CNI_MISSING));
        }
    }
}

#[test]
fn a_daemon_set_that_tolerates_only_the_gate_is_waited_for_on_a_newborn_node() {
    let node = worker()
        .taint("node.kubernetes.io/not-ready", "NoSchedule")
        .taint(GATE, "NoSchedule");
    let cni = cni().toleration(&format!("{{key: {GATE}, operator: Exists}}"));
    let world = world(&node)
        .daemon_set(&cni)
        .rule(&rule("gate").waits_for(COMPONENTS));
    assert_lack("newborn", &world, COMPONENTS, Some(CNI_MISSING));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn critical_pods_have_to_be_ready() {
    let proxy = daemon_set("kube-system/proxy").critical();
    let with = |pod: PodBuilder| world(&worker()).daemon_set(&cni()).pod(&pod);
    let bare = || pod("kube-system/probe").critical();
    let cni_2 = || pod("kube-system/cni-2").of(&cni());
    for (name, world, expected) in [
        (
            "no pod yet",
            world(&worker()).daemon_set(&cni()),
            Some(CNI_MISSING),
        ),
        (
            "not Ready",
            with(cni_pod()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        ("Ready", with(cni_pod().ready()), None),
        (
            "Ready, but terminating",
            with(cni_pod().ready().deleting()),
            Some(CNI_MISSING),
        ),
        (
            "a surge of which the old pod is Ready",
            with(cni_pod().ready()).pod(&cni_2()),
            None,
        ),
        (
            "a surge of which the new pod is Ready",
            with(cni_pod()).pod(&cni_2().ready()),
            None,
        ),
        (
            "a surge of which neither is Ready",
            with(cni_2()).pod(&cni_pod()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        (
            "a surge whose Ready pod terminates",
            with(cni_pod().ready().deleting()).pod(&cni_2()),
            Some("pod kube-system/cni-2 is not Ready"),
        ),
        (
            "a bare pod that is not Ready",
            world(&worker()).pod(&bare()),
            Some("pod kube-system/probe is not Ready"),
        ),
        (
            "a bare pod in a namespace that the class does not cover",
            world(&worker()).pod(&pod("monitoring/probe").critical()),
            None,
        ),
        (
            "a bare pod that is Ready",
            world(&worker()).pod(&bare().ready()),
            None,
        ),
        (
            "a bare pod that succeeded",
            world(&worker()).pod(&bare().phase("Succeeded")),
            None,
        ),
        (
            "a bare pod that failed",
            world(&worker()).pod(&bare().phase("Failed")),
            None,
        ),
        (
            "a bare pod that terminates",
            world(&worker()).pod(&bare().deleting()),
            None,
        ),
        (
            "a pod without the label",
            world(&worker()).pod(&pod("kube-system/probe")),
            None,
        ),
        (
            "a pod of a DaemonSet that is being deleted",
            world(&worker())
                .daemon_set(&cni().deleting())
                .pod(&cni_pod()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        (
            "a pod of a DaemonSet that is not meant for this node",
            world(&worker())
                .daemon_set(&cni().node_selector("gpu", "yes"))
                .pod(&cni_pod()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        (
            "three that are not Ready, one of them for its DaemonSet twice",
            with(cni_2())
                .pod(&cni_pod())
                .daemon_set(&proxy)
                .pod(&pod("kube-system/proxy-1").of(&proxy))
                .pod(&bare()),
            Some("pods kube-system/cni-1, kube-system/probe, kube-system/proxy-1 are not Ready"),
        ),
    ] {
        assert_lack(name, &world, READY, expected);
    }
}

#[test]
fn a_pod_that_was_ready_before_the_node_was_created_is_believed_after_a_minute() {
    let old = || cni_pod().ready_since(at(-100));
    let doubt = "pod kube-system/cni-1 has been Ready since before this node was created";
    let other = || pod("kube-system/other").critical();
    let with = |pod: &PodBuilder| world(&worker()).daemon_set(&cni()).pod(pod);
    for (name, world, expected, recheck) in [
        (
            "at once",
            with(&old()).now(at(0)),
            Some(doubt),
            Some(at(60)),
        ),
        (
            "nearly a minute later",
            with(&old()).now(at(59)),
            Some(doubt),
            Some(at(60)),
        ),
        ("a minute later", with(&old()).now(at(60)), None, None),
        (
            "Ready since the node was created",
            with(&cni_pod().ready_since(at(0))).now(at(1)),
            None,
            None,
        ),
        (
            "beside a new pod that is Ready",
            with(&old())
                .pod(&pod("kube-system/cni-2").of(&cni()).ready_since(at(1)))
                .now(at(2)),
            None,
            None,
        ),
        (
            "beside a new pod that is not Ready",
            with(&old())
                .pod(&pod("kube-system/cni-2").of(&cni()))
                .now(at(2)),
            Some(doubt),
            Some(at(60)),
        ),
        (
            "a bare pod",
            world(&worker())
                .pod(&other().ready_since(at(-1)))
                .now(at(2)),
            Some("pod kube-system/other has been Ready since before this node was created"),
            Some(at(60)),
        ),
        (
            "behind one that is not Ready",
            with(&old()).pod(&other()).now(at(2)),
            Some("pod kube-system/other is not Ready"),
            Some(at(60)),
        ),
    ] {
        assert_lack(name, &world, READY, expected);
        let answer = world.condition(READY).unwrap();
        assert_eq!(answer.recheck, recheck, "{name}");
        let asks = rule("asks").waits_for(READY).dry_run();
        assert_eq!(world.rule(&asks).plan().recheck, recheck, "{name}: plan");
    }
}

#[test]
fn csi_drivers_that_pods_wait_for_have_to_be_registered() {
    let driver_pod = |driver: &str| cni_pod().waits_for_driver(driver);
    let with = |pod: PodBuilder| world(&worker()).pod(&pod);
    let both = || driver_pod("b.csi").waits_for_driver("a.csi");
    for (name, world, expected) in [
        ("no CSINode, nothing wanted", with(cni_pod()), None),
        (
            "no CSINode",
            with(driver_pod("a.csi")),
            Some("CSI driver a.csi is not registered on this node"),
        ),
        (
            "no driver",
            with(driver_pod("a.csi")).csi_node(&csi_node("worker-1")),
            Some("CSI driver a.csi is not registered on this node"),
        ),
        (
            "another driver",
            with(driver_pod("a.csi")).csi_node(&csi_node("worker-1").driver("b.csi")),
            Some("CSI driver a.csi is not registered on this node"),
        ),
        (
            "registered",
            with(driver_pod("a.csi")).csi_node(&csi_node("worker-1").driver("a.csi")),
            None,
        ),
        (
            "registered on an earlier node of the name",
            with(driver_pod("a.csi"))
                .csi_node(&csi_node("worker-1").owned_by("older").driver("a.csi")),
            Some("CSI driver a.csi is not registered on this node"),
        ),
        (
            "two wanted, none registered",
            with(both()),
            Some("CSI drivers a.csi, b.csi are not registered on this node"),
        ),
        (
            "two wanted, one registered",
            with(both()).csi_node(&csi_node("worker-1").driver("a.csi")),
            Some("CSI driver b.csi is not registered on this node"),
        ),
        (
            "two wanted and registered",
            with(both()).csi_node(&csi_node("worker-1").driver("a.csi").driver("b.csi")),
            None,
        ),
        (
            "wanted by two pods",
            with(driver_pod("a.csi"))
                .pod(&pod("kube-system/y").critical().waits_for_driver("a.csi")),
            Some("CSI driver a.csi is not registered on this node"),
        ),
        (
            "wanted by a finished pod",
            with(driver_pod("a.csi").phase("Succeeded")),
            None,
        ),
        (
            "wanted by a terminating pod",
            with(driver_pod("a.csi").deleting()),
            None,
        ),
        (
            "wanted by a pod without the label",
            with(pod("x/y").waits_for_driver("a.csi")),
            None,
        ),
        (
            "another annotation",
            with(cni_pod().annotation("node.gardener.cloud/wait-for", "a.csi")),
            None,
        ),
    ] {
        assert_lack(name, &world, DRIVERS, expected);
    }
}

/// A class for nodes with GPUs, beside Gardener's, that asks for the drivers' volume counts.
const TWO_CLASSES: &str = "
criticalComponentClasses:
- name: gardener
  selector: {matchLabels: {node.gardener.cloud/critical-component: 'true'}}
  namespaces: ['*']
  conditionPrefix: node.gardener.cloud/
  csiAnnotationPrefix: node.gardener.cloud/wait-for-csi-node-
- name: gpu
  selector: {matchExpressions: [{key: gpu.example.com/part, operator: Exists}]}
  namespaces: [gpu-system]
  conditionPrefix: gpu.example.com/
  csiAnnotationPrefix: gpu.example.com/wait-for-
  requireCSIAllocatable: true
";

#[test]
fn a_class_may_ask_for_the_volume_count_of_a_driver() {
    let gpu_pod = pod("gpu-system/driver")
        .label("gpu.example.com/part", "driver")
        .annotation("gpu.example.com/wait-for-a", "a.csi")
        .annotation("gpu.example.com/wait-for-b", "b.csi");
    let world = || configured_world(&worker(), TWO_CLASSES).pod(&gpu_pod);
    let csi = || csi_node("worker-1");
    for (name, world, expected) in [
        (
            "both without a count",
            world().csi_node(&csi().driver("b.csi").driver("a.csi")),
            Some("CSI drivers a.csi, b.csi report no allocatable count on this node"),
        ),
        (
            "one without a count",
            world().csi_node(&csi().driver("b.csi").counted_driver("a.csi")),
            Some("CSI driver b.csi reports no allocatable count on this node"),
        ),
        (
            "both with a count",
            world().csi_node(&csi().counted_driver("b.csi").counted_driver("a.csi")),
            None,
        ),
        (
            "one missing, one without a count",
            world().csi_node(&csi().driver("a.csi")),
            Some("CSI driver b.csi is not registered on this node"),
        ),
    ] {
        assert_lack(
            name,
            &world,
            "gpu.example.com/CSIDriversRegistered",
            expected,
        );
    }
}

#[test]
fn a_class_is_about_its_own_components_only() {
    let gpu = daemon_set("gpu-system/driver")
        .label("gpu.example.com/part", "driver")
        .template_label("gpu.example.com/part", "driver");
    let elsewhere = daemon_set("default/driver")
        .label("gpu.example.com/part", "driver")
        .template_label("gpu.example.com/part", "driver");
    let both = daemon_set("gpu-system/both")
        .critical()
        .label("gpu.example.com/part", "both")
        .template_label("gpu.example.com/part", "both");
    let world = || configured_world(&worker(), TWO_CLASSES);
    let gpu_missing = Some("DaemonSet gpu-system/driver has no pod on this node");
    let both_missing = Some("DaemonSet gpu-system/both has no pod on this node");
    for (name, world, gardener, gpu) in [
        (
            "Gardener's",
            world().daemon_set(&cni()),
            Some(CNI_MISSING),
            None,
        ),
        (
            "the GPU class's",
            world().daemon_set(&gpu),
            None,
            gpu_missing,
        ),
        (
            "in no namespace of the class",
            world().daemon_set(&elsewhere),
            None,
            None,
        ),
        (
            "of both",
            world().daemon_set(&both),
            both_missing,
            both_missing,
        ),
        (
            "a pod in no namespace of the class",
            world().pod(&pod("default/driver-1").of(&elsewhere)),
            None,
            None,
        ),
        (
            "one of each",
            world().daemon_set(&cni()).daemon_set(&gpu),
            Some(CNI_MISSING),
            gpu_missing,
        ),
    ] {
        assert_lack(name, &world, COMPONENTS, gardener);
        assert_lack(name, &world, "gpu.example.com/CriticalComponentsReady", gpu);
    }
}

#[test]
fn a_gate_of_one_class_shuts_nothing_out_of_another() {
    let gate = rule("gate").waits_for("gpu.example.com/CriticalComponentsReady");
    let world = configured_world(&worker().taint(GATE, "NoSchedule"), TWO_CLASSES)
        .daemon_set(&cni())
        .rule(&gate);
    assert_lack("Gardener's", &world, COMPONENTS, Some(CNI_MISSING));
}

#[test]
fn components_are_asked_about_in_gardeners_order() {
    let missing_driver = "CSI driver a.csi is not registered on this node";
    let base = || world(&worker()).daemon_set(&cni());
    let waiting = || cni_pod().waits_for_driver("a.csi");
    for (name, world, expected) in [
        ("no pod", base(), Some(CNI_MISSING)),
        (
            "a pod that is not Ready and waits for a driver",
            base().pod(&waiting()),
            Some("pod kube-system/cni-1 is not Ready"),
        ),
        (
            "a pod that waits for a driver",
            base().pod(&waiting().ready()),
            Some(missing_driver),
        ),
        (
            "everything",
            base()
                .pod(&waiting().ready())
                .csi_node(&csi_node("worker-1").driver("a.csi")),
            None,
        ),
    ] {
        assert_lack(name, &world, COMPONENTS, expected);
    }
}

#[test]
fn drivers_and_resources_are_asked_about_by_name() {
    let gpus = |count| worker().allocatable("nvidia.com/gpu", count);
    let driver = "csidriver.nodegate.dev/a.csi";
    let resource = "resource.nodegate.dev/nvidia.com/gpu";
    let no_driver = Some("CSI driver a.csi is not registered on this node");
    let no_gpu = Some("this node has no nvidia.com/gpu to allocate");
    for (name, world, kind, expected) in [
        ("no CSINode", world(&worker()), driver, no_driver),
        (
            "another driver",
            world(&worker()).csi_node(&csi_node("worker-1").driver("b.csi")),
            driver,
            no_driver,
        ),
        (
            "registered on an earlier node of the name",
            world(&worker()).csi_node(&csi_node("worker-1").owned_by("older").driver("a.csi")),
            driver,
            no_driver,
        ),
        (
            "registered",
            world(&worker()).csi_node(&csi_node("worker-1").driver("a.csi")),
            driver,
            None,
        ),
        ("no such resource", world(&worker()), resource, no_gpu),
        ("none of the resource", world(&gpus("0")), resource, no_gpu),
        ("some of the resource", world(&gpus("8")), resource, None),
        (
            "a resource of Kubernetes' own",
            world(&worker().allocatable("hugepages-2Mi", "64Mi")),
            "resource.nodegate.dev/hugepages-2Mi",
            None,
        ),
    ] {
        assert_lack(name, &world, kind, expected);
    }
}

#[test]
fn what_the_node_reports_under_a_reserved_prefix_does_not_count() {
    for kind in [
        COMPONENTS,
        "node.gardener.cloud/Other",
        "csidriver.nodegate.dev/a.csi",
        "resource.nodegate.dev/nvidia.com/gpu",
    ] {
        let node = worker().condition(kind, "True");
        let answer = world(&node)
            .daemon_set(&cni())
            .condition(kind)
            .map(|answer| answer.status);
        assert_ne!(answer, Some(ConditionStatus::True), "{kind}");
    }
    let unmade = world(&worker().condition("node.gardener.cloud/Other", "True"));
    assert_eq!(unmade.condition("node.gardener.cloud/Other"), None);
}

#[test]
fn what_the_node_reports_otherwise_counts_as_it_is() {
    let reported = |status: &str| {
        let condition = serde_json::json!({
            "type": "NetworkReady", "status": status, "reason": "Why", "message": "because",
        });
        world(&worker().condition_with(condition)).condition("NetworkReady")
    };
    for (status, expected) in [
        ("True", ConditionStatus::True),
        ("False", ConditionStatus::False),
        ("Unknown", ConditionStatus::Unknown),
        ("", ConditionStatus::Unknown),
    ] {
        let answer = Answer {
            status: expected,
            reason: "Why".into(),
            message: "because".into(),
            recheck: None,
        };
        assert_eq!(reported(status), Some(answer), "{status:?}");
    }
    assert_eq!(world(&worker()).condition("NetworkReady"), None);
}

/// A pod of this name in one of the states that matter.
fn any_pod(name: &str) -> impl Strategy<Value = PodBuilder> {
    let pod = pod(&format!("kube-system/{name}"));
    let owner = prop::sample::select(vec![None, Some("cni"), Some("proxy")]);
    let ready = prop::sample::select(vec![None, Some(-5), Some(5)]);
    (owner, ready, 0..6_u8).prop_map(move |(owner, ready, state)| {
        let pod = pod.clone();
        let pod = match owner {
            None => pod.critical(),
            Some(owner) => pod.of(&daemon_set(&format!("kube-system/{owner}")).critical()),
        };
        let pod = match ready {
            None => pod,
            Some(since) => pod.ready_since(at(since)),
        };
        match state {
            0 => pod.deleting(),
            1 => pod.phase("Failed"),
            2 => pod.waits_for_driver("a.csi"),
            _ => pod,
        }
    })
}

proptest! {
    #[test]
    fn the_order_of_pods_does_not_matter(
        (pods, shuffled) in ["a", "b", "c", "d"].map(any_pod)
            .prop_map(Vec::from)
            .prop_flat_map(|pods| (Just(pods.clone()), Just(pods).prop_shuffle())),
    ) {
        let base = world(&worker())
            .daemon_set(&cni())
            .now(at(30));
        let with = |pods: &[PodBuilder]| pods.iter().fold(base.clone(), World::pod);
        let (one, other) = (with(&pods), with(&shuffled));
        for kind in [SCHEDULED, READY, DRIVERS, COMPONENTS] {
            prop_assert_eq!(one.condition(kind), other.condition(kind));
        }
    }
}
