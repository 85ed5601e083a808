//! CSI drivers, configured classes and resources.

use super::{CNI_MISSING, COMPONENTS, DRIVERS, READY, assert_lack, cni, cni_pod, worker};
use crate::api::ConditionStatus;
use crate::condition::{CHECK_LABEL, Component};
use crate::object::ObjectKey;
use crate::testing::{Builder, World, configured_world, csi_node, daemon_set, pod, world};

/// A class for GPU nodes that requires the drivers' volume counts, beside Gardener's class.
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
    #[rustfmt::skip]
    let cases = [
        ("Gardener's", world().daemon_set(&cni()), Some(CNI_MISSING), None),
        ("the GPU class's", world().daemon_set(&gpu), None, gpu_missing),
        ("in no namespace of the class", world().daemon_set(&elsewhere), None, None),
        ("of both", world().daemon_set(&both), both_missing, both_missing),
        ("a pod in no namespace of the class", world().pod(&pod("default/driver-1").of(&elsewhere)), None, None),
        ("one of each", world().daemon_set(&cni()).daemon_set(&gpu), Some(CNI_MISSING), gpu_missing),
    ];
    for (name, world, gardener, gpu) in cases {
        assert_lack(name, &world, COMPONENTS, gardener);
        assert_lack(name, &world, "gpu.example.com/CriticalComponentsReady", gpu);
    }
}

#[test]
fn components_are_asked_about_in_gardeners_order() {
    let proxy = daemon_set("kube-system/proxy").critical();
    let base = || world(&worker()).daemon_set(&cni()).daemon_set(&proxy);
    let a = cni_pod().waits_for_driver("a.csi");
    let b = pod("kube-system/proxy-1")
        .of(&proxy)
        .waits_for_driver("b.csi");
    let ready = || base().pod(&a.clone().ready()).pod(&b.clone().ready());
    let drivers = csi_node("worker-1").driver("a.csi").driver("b.csi");
    #[rustfmt::skip]
    let cases = [
        (base(), Some("DaemonSets kube-system/cni, kube-system/proxy have no pod on this node")),
        (base().pod(&a).pod(&b), Some("pods kube-system/cni-1, kube-system/proxy-1 are not Ready")),
        (ready(), Some("CSI drivers a.csi, b.csi are not registered on this node")),
        (ready().csi_node(&drivers), None),
    ];
    for (world, expected) in cases {
        assert_lack("in order", &world, COMPONENTS, expected);
    }
}

#[test]
fn drivers_and_resources_are_asked_about_by_name() {
    let gpus = |count| worker().allocatable("nvidia.com/gpu", count);
    let driver = "csidriver.nodegate.dev/a.csi";
    let resource = "resource.nodegate.dev/nvidia.com/gpu";
    let no_driver = Some("CSI driver a.csi is not registered on this node");
    let no_gpu = Some("this node has no nvidia.com/gpu to allocate");
    #[rustfmt::skip]
    let cases = [
        ("no CSINode", world(&worker()), driver, no_driver),
        ("another driver", world(&worker()).csi_node(&csi_node("worker-1").driver("b.csi")), driver, no_driver),
        (
            "registered on an earlier node of the name",
            world(&worker()).csi_node(&csi_node("worker-1").owned_by("older").driver("a.csi")),
            driver,
            no_driver,
        ),
        ("registered", world(&worker()).csi_node(&csi_node("worker-1").driver("a.csi")), driver, None),
        (
            "its storage is unreachable, and degraded before that",
            world(&worker()).csi_node(
                &csi_node("worker-1")
                    .driver("a.csi")
                    .unhealthy("a.csi", "StorageDegraded", "Slow")
                    .unhealthy("a.csi", "StorageUnreachable", "NetworkPartition"),
            ),
            driver,
            Some("CSI driver a.csi reports StorageUnreachable (NetworkPartition): down (+1 more)"),
        ),
        (
            "its storage is in a state that is not known yet",
            world(&worker()).csi_node(&csi_node("worker-1").driver("a.csi").unhealthy(
                "a.csi",
                "StorageReadOnly",
                "",
            )),
            driver,
            Some("CSI driver a.csi reports StorageReadOnly: down"),
        ),
        (
            "another driver's storage is unreachable",
            world(&worker()).csi_node(&csi_node("worker-1").driver("a.csi").unhealthy(
                "b.csi",
                "StorageUnreachable",
                "Down",
            )),
            driver,
            None,
        ),
        (
            "a report without registration",
            world(&worker()).csi_node(&csi_node("worker-1").unhealthy(
                "a.csi",
                "StorageDegraded",
                "Slow",
            )),
            driver,
            no_driver,
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
    ];
    for (name, world, kind, expected) in cases {
        assert_lack(name, &world, kind, expected);
    }
}

#[test]
fn a_condition_that_depends_on_more_than_is_read_of_a_node_is_unknown() {
    type Make<'a> = &'a dyn Fn(usize) -> World;
    const DEVICES: &str = "resourceslice.nodegate.dev/gpu.example.com";
    const CHECK: &str = "check.nodegate.dev/tools.a";
    let waits = |count: usize| {
        let name = |index: usize| format!("driver-{index}");
        let pods = [cni_pod().ready(), pod("kube-system/b").critical().ready()];
        let pods = (0..count).fold(pods, |[a, b], it| [b.waits_for_driver(&name(it)), a]);
        pods.iter().fold(world(&worker()), World::pod)
    };
    let pods = |count: usize| {
        let name = |index: usize| format!("kube-system/pod-{index}");
        let pods = (0..count).map(|it| pod(&name(it)).critical().ready());
        pods.fold(world(&worker()), |world, it| world.pod(&it))
    };
    let taints = |count: usize| {
        let name = |index: usize| format!("example.com/{index}");
        let taints = (0..count).fold(worker(), |node, it| node.taint(&name(it), "NoSchedule"));
        world(&taints)
    };
    let slices = |count: usize| {
        let component = Component::Devices("gpu.example.com".into());
        world(&worker()).waited_for(component).slices(count)
    };
    let runs = |count: usize| {
        let check = Component::Check(ObjectKey::new("tools", "a"));
        let name = |index: usize| format!("tools/a-{index}");
        let runs = (0..count).map(|it| pod(&name(it)).label(CHECK_LABEL, "a").phase("Succeeded"));
        let world = world(&worker()).waited_for(check);
        runs.fold(world, |world, run| world.pod(&run))
    };
    #[rustfmt::skip]
    let cases = [
        ("waits of pods", &waits as Make, 200, DRIVERS, None),
        ("pods", &pods, 1000, READY, Some("1000 such pods")),
        ("taints", &taints, 1000, COMPONENTS, Some("1000 taints")),
        ("slices", &slices, 1000, DEVICES, Some("1000 such ResourceSlices")),
        ("runs of a check", &runs, 1000, CHECK, None),
    ];
    for (name, make, most, kind, what) in cases {
        let unknown = |count: usize| {
            let condition = make(count).condition(kind).expect("it is made");
            let is_unknown = condition.status == ConditionStatus::Unknown;
            assert_eq!(condition.reason == "TooManyToRead", is_unknown, "{name}");
            is_unknown.then_some(condition.message)
        };
        assert_eq!(unknown(most), None, "{name}");
        let expected = what.map(|it| format!("this node has more than {it}, too many to read"));
        assert_eq!(unknown(most + 1), expected, "{name}");
    }
}
