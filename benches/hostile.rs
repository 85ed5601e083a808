//! How long the decision for one node takes where its kubelet or a tenant has made very many of something.
//!
//! `cargo bench --bench hostile`. Everything here has to be linear or bounded: one node must not hold up the others.

mod world;

use std::sync::Arc;

use divan::Bencher;
use nodegate_core::api::ConditionStatus;
use nodegate_core::condition::{Component, ComponentGroup, NamedComponent};
use nodegate_core::object::{DaemonSet, Node, NodeCondition, ObjectKey, Pod, ResourceSlice, Taint};
use world::{Source, World, kept};

const COUNTS: [usize; 3] = [100, 1_000, 10_000];
const RULES: usize = 10;
const CLASS: ComponentGroup = ComponentGroup::Class(0);

fn main() {
    divan::main();
}

fn decide(bencher: Bencher, make: impl FnOnce(&mut World)) {
    let mut world = World::new(RULES, Source::Critical, false, true);
    make(&mut world);
    bencher.bench_local(|| divan::black_box(&world).plan());
}

fn annotate(node: &mut Node, key: String, value: String) {
    node.annotations.get_or_insert_default().insert(key, value);
}

/// Records that a rule which is gone owns the taint of this number.
fn own(node: &mut Node, index: usize) {
    let key = format!("nodegate.dev/taint-added-by-{index}");
    let value = format!(
        r#"{{"rule-name":"r","taint-key":"readiness.k8s.io/{index}","taint-effect":"NoSchedule"}}"#
    );
    annotate(node, key, value);
}

/// Records of ownership for taints that the node does not have.
#[divan::bench(args = COUNTS)]
fn owners(bencher: Bencher, count: usize) {
    decide(bencher, |world| {
        for index in 0..count {
            own(&mut world.node, index);
        }
    });
}

/// Records of bootstraps and deadlines.
#[divan::bench(args = COUNTS)]
fn records(bencher: Bencher, count: usize) {
    decide(bencher, |world| {
        for index in 0..count {
            for prefix in [
                "readiness.k8s.io/bootstrap-completed-",
                "nodegate.dev/ready-deadline-",
            ] {
                annotate(&mut world.node, format!("{prefix}{index}"), "{}".into());
            }
        }
    });
}

#[divan::bench(args = COUNTS)]
fn labels(bencher: Bencher, count: usize) {
    decide(bencher, |world| {
        let labels = (0..count).map(|index| (format!("example.com/{index}"), "x".into()));
        world.node.labels.extend(labels);
    });
}

#[divan::bench(args = COUNTS)]
fn conditions(bencher: Bencher, count: usize) {
    decide(bencher, |world| {
        let conditions = (0..count).map(|index| NodeCondition {
            kind: format!("example.com/{index}"),
            status: ConditionStatus::False,
            reason: String::new(),
            message: String::new(),
            transition: None,
            heartbeat: None,
        });
        world.node.conditions.splice(0..0, conditions);
        world.node.conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
    });
}

/// Taints of the node, and a record of ownership for each.
#[divan::bench(args = COUNTS)]
fn taints(bencher: Bencher, count: usize) {
    decide(bencher, |world| {
        let taints = (0..count).map(|index| Taint {
            key: format!("readiness.k8s.io/{index}"),
            value: String::new(),
            effect: "NoSchedule".into(),
            time_added: None,
        });
        world.node.taints.splice(0..0, taints);
        for index in 0..count {
            own(&mut world.node, index);
        }
    });
}

fn make_pods(world: &mut World, count: usize, change: impl Fn(usize, &mut Pod)) {
    let pods = world.pods.entry(CLASS).or_default();
    let first = pods[0].clone();
    pods.extend((0..count).map(|index| {
        let mut pod = Pod::clone(&first);
        pod.key = ObjectKey::new("kube-system", format!("pod-{index}"));
        change(index, &mut pod);
        kept(pod)
    }));
}

/// Critical pods, each with an owner of its own.
#[divan::bench(args = COUNTS)]
fn pods(bencher: Bencher, count: usize) {
    decide(bencher, |world| {
        make_pods(world, count, |index, pod| {
            pod.daemon_set = Some(index.to_string().into());
        });
    });
}

/// `DaemonSet`s of the cluster, each with a pod on the node.
#[divan::bench(args = COUNTS)]
fn daemon_sets(bencher: Bencher, count: usize) {
    decide(bencher, |world| {
        let uid = |index: usize| Arc::from(index.to_string());
        make_pods(world, count, |index, pod| pod.daemon_set = Some(uid(index)));
        let all = world.daemon_sets.entry(CLASS).or_default();
        let first = all.values().next().expect("a DaemonSet").clone();
        for index in 0..count {
            let mut daemon_set = DaemonSet::clone(&first);
            daemon_set.key = ObjectKey::new("kube-system", format!("daemon-set-{index}"));
            daemon_set.uid = uid(index);
            all.insert(daemon_set.key.clone(), kept(daemon_set));
        }
    });
}

/// Critical pods, each with CSI drivers to wait for.
#[divan::bench(args = COUNTS)]
fn csi_drivers(bencher: Bencher, count: usize) {
    decide(bencher, |world| {
        make_pods(world, count, |index, pod| {
            let key = format!("node.gardener.cloud/wait-for-csi-node-{index}");
            pod.annotations = vec![(key, format!("{index}.csi.example.com"))];
        });
    });
}

/// `ResourceSlice`s, each of a pool of its own.
#[divan::bench(args = COUNTS)]
fn resource_slices(bencher: Bencher, count: usize) {
    let group = ComponentGroup::Named(0);
    let driver: Arc<str> = "gpu.example.com".into();
    let mut world = World::new(RULES, Source::Devices, false, true);
    world.named = vec![NamedComponent {
        component: Component::Devices(driver),
        group,
        is_seen: true,
        is_served: true,
    }];
    let slices = (0..count).map(|index| ResourceSlice {
        pool: index.to_string().into(),
        generation: 1,
        of: 1,
        devices: 8,
        ..ResourceSlice::default()
    });
    world
        .slices
        .entry(group)
        .or_default()
        .extend(slices.map(kept));
    bencher.bench_local(|| divan::black_box(&world).plan());
}
