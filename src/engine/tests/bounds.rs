//! One node must not hold up the others: what its kubelet, or a tenant, makes very many of is bounded, or takes time in
//! proportion. Every list that is kept of an object is tried.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use allocation_counter::measure;

use super::kept::{Kept, Lists};
use super::{Bench, settings};
use crate::io::{Answer, Effect, Input, Object, Request, Seen};
use crate::testing::{RuleBuilder, node, rule};
use nodegate_core::condition::{ComponentGroup, Watch};
use nodegate_core::object::{Kind, Node, Watched};

/// How many entries are tried. A build without optimization takes up to thirty times as long, so it tries fewer.
const COUNTS: &[usize] = if cfg!(debug_assertions) {
    &[100, 10_000]
} else {
    &[100, 1_000, 10_000, 66_000]
};
/// For how long another node's change may be held up, in time of the processor.
const BOUND: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 100 });
/// How much longer for each object that a list no longer has.
const GONE: Duration = Duration::from_micros(5);
/// What all that one kubelet or tenant writes may take while it is taken in, in bytes.
const MEMORY: u64 = 32 << 20;
/// How many events are taken in at once: many, for each evaluation takes its time.
const BATCH: usize = 8_192;

const CLASS: ComponentGroup = ComponentGroup::Class(0);
/// The components of the rules, in their order: a `DaemonSet`, all of them, and a driver's devices.
const ALL: ComponentGroup = ComponentGroup::Named(1);
const DEVICES: ComponentGroup = ComponentGroup::Named(2);

/// One rule for each source of conditions, all of which wait for something.
fn rules() -> Vec<RuleBuilder> {
    let gate = |name: &str, kind: &str| {
        let gate = rule(name).taint(&format!("readiness.k8s.io/{name}"), "NoSchedule");
        gate.waits_for(kind)
    };
    vec![
        gate("class", "node.gardener.cloud/CriticalComponentsReady")
            .bootstrap_only()
            .nodegate("regateOn: [Reboot, Maintenance]"),
        gate("driver", "csidriver.nodegate.dev/0-1.csi")
            .bootstrap_only()
            .nodegate("regateOn: [Reboot]"),
        gate("agent", "daemonset.nodegate.dev/kube-system.agent")
            .bootstrap_only()
            .nodegate("regateOn: [Revision]"),
        gate("all", "daemonsets.nodegate.dev/all"),
        gate("devices", "resourceslice.nodegate.dev/gpu.example.com"),
        gate("resource", "resource.nodegate.dev/example.com/0-1"),
        gate("late", "Late")
            .bootstrap_only()
            .nodegate("repair: {readinessTTL: 15m}"),
        rule("net")
            .waits_for("Net")
            .nodegate("heartbeatTimeout: 10m"),
    ]
}

/// A list, and how to write an object in which it has some entries, other ones each turn.
struct Case {
    list: &'static str,
    watch: Watch,
    json: fn(usize, usize) -> String,
}

/// These fields, comma-separated, one for each entry of a turn.
fn entries(count: usize, turn: usize, entry: impl Fn(&str) -> String) -> String {
    let entries = (0..count).map(|index| entry(&format!("{turn}-{index}")));
    entries.collect::<Vec<_>>().join(",")
}

const META: &str =
    r#""name": "evil", "uid": "evil-uid", "creationTimestamp": "2026-01-01T00:00:00Z""#;
const LINUX: &str = r#""kubernetes.io/os": "linux""#;
const CRITICAL: &str = r#""node.gardener.cloud/critical-component": "true""#;

/// The node of the kubelet that writes very much, with these more fields of its metadata, spec and status.
fn evil(turn: usize, meta: &str, spec: &str, status: &str) -> String {
    format!(
        r#"{{"metadata": {{{META}, "labels": {{{LINUX}}} {meta}}}, "spec": {{{spec}}},
            "status": {{"nodeInfo": {{"bootID": "{turn}"}} {status}}}}}"#
    )
}

/// The same without them.
fn bare(turn: usize) -> Watched<Node> {
    Watched::of(&evil(turn, "", "", ""))
}

fn annotated(turn: usize, annotations: &str) -> String {
    evil(
        turn,
        &format!(r#", "annotations": {{{annotations}}}"#),
        "",
        "",
    )
}

fn conditions(turn: usize, conditions: &str) -> String {
    evil(turn, "", "", &format!(r#", "conditions": [{conditions}]"#))
}

fn daemon_set(template: &str) -> String {
    format!(
        r#"{{"metadata": {{"namespace": "tenant", "name": "d", "uid": "d"}}, "spec": {{"template": {{"spec": {{{template}}}}}}}}}"#
    )
}

fn affinity(terms: &str) -> String {
    daemon_set(&format!(
        r#""affinity": {{"nodeAffinity": {{"requiredDuringSchedulingIgnoredDuringExecution":
            {{"nodeSelectorTerms": [{terms}]}}}}}}"#
    ))
}

fn values(count: usize, turn: usize) -> String {
    entries(count, turn, |it| format!(r#""{it}""#))
}

const CASES: &[Case] = &[
    Case {
        list: "Node.labels",
        watch: Watch::Nodes,
        json: |count, turn| {
            let labels = entries(count, turn, |it| format!(r#""{it}": """#));
            let labels = [LINUX, &labels].map(str::to_owned);
            let labels = labels
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect::<Vec<_>>();
            format!(
                r#"{{"metadata": {{{META}, "labels": {{{}}}}}}}"#,
                labels.join(",")
            )
        },
    },
    Case {
        list: "Node.annotations",
        watch: Watch::Nodes,
        json: |count, turn| {
            let owned = |it: &str| {
                format!(
                    r#""nodegate.dev/taint-added-by-{it}": "{{\"rule-name\":\"r\",\"taint-key\":\"readiness.k8s.io/{it}\",\"taint-effect\":\"NoSchedule\"}}""#
                )
            };
            annotated(turn, &entries(count, turn, owned))
        },
    },
    Case {
        list: "Node.annotations",
        watch: Watch::Nodes,
        json: |count, turn| {
            let record = |it: &str| match it.len() % 2 {
                0 => format!(r#""nodegate.dev/ready-deadline-{it}": "never""#),
                _ => format!(r#""readiness.k8s.io/bootstrap-completed-{it}": "{{}}""#),
            };
            annotated(turn, &entries(count, turn, record))
        },
    },
    Case {
        list: "Node.taints",
        watch: Watch::Nodes,
        json: |count, turn| {
            let taint =
                |it: &str| format!(r#"{{"key": "example.com/{it}", "effect": "NoSchedule"}}"#);
            evil(
                turn,
                "",
                &format!(r#""taints": [{}]"#, entries(count, turn, taint)),
                "",
            )
        },
    },
    Case {
        list: "Node.conditions",
        watch: Watch::Nodes,
        json: |count, turn| {
            let condition = |it: &str| format!(r#"{{"type": "{it}", "status": "True"}}"#);
            conditions(turn, &entries(count, turn, condition))
        },
    },
    // As if they were published by an earlier configuration.
    Case {
        list: "Node.conditions",
        watch: Watch::Nodes,
        json: |count, turn| {
            let condition = |it: &str| {
                format!(
                    r#"{{"type": "csidriver.nodegate.dev/{it}", "status": "True", "reason": "CSIDriversRegistered"}}"#
                )
            };
            conditions(turn, &entries(count, turn, condition))
        },
    },
    Case {
        list: "Node.resources",
        watch: Watch::Nodes,
        json: |count, turn| {
            let amount = |it: &str| format!(r#""example.com/{it}": "1""#);
            evil(
                turn,
                "",
                "",
                &format!(r#", "allocatable": {{{}}}"#, entries(count, turn, amount)),
            )
        },
    },
    Case {
        list: "CSINode.drivers",
        watch: Watch::CsiNodes,
        json: |count, turn| {
            let driver = |it: &str| format!(r#"{{"name": "{it}.csi"}}"#);
            let drivers = entries(count, turn, driver);
            format!(r#"{{"metadata": {{"name": "evil"}}, "spec": {{"drivers": [{drivers}]}}}}"#)
        },
    },
    Case {
        list: "CSINode.unhealthy",
        watch: Watch::CsiNodes,
        json: |count, turn| {
            let report = |it: &str| {
                format!(
                    r#"{{"name": "{it}.csi", "healthConditions": [{{"status": "Bad", "reason": "", "message": ""}}]}}"#
                )
            };
            let reports = entries(count, turn, report);
            format!(
                r#"{{"metadata": {{"name": "evil"}}, "spec": {{"drivers": [{{"name": "0-1.csi"}}]}}, "status": {{"storageHealth": [{reports}]}}}}"#
            )
        },
    },
    Case {
        list: "Pod.annotations",
        watch: Watch::Pods(CLASS),
        json: |count, turn| {
            let waits =
                |it: &str| format!(r#""node.gardener.cloud/wait-for-csi-node-{it}": "{it}.csi""#);
            pod("p", &entries(count, turn, waits))
        },
    },
    Case {
        list: "Pod.orphan",
        watch: Watch::Pods(CLASS),
        json: |count, turn| {
            let labels = entries(count, turn, |it| format!(r#""{it}": """#));
            format!(
                r#"{{"metadata": {{"namespace": "kube-system", "name": "p", "uid": "p", "labels": {{{labels}}}}}, "spec": {{"nodeName": "evil"}}}}"#
            )
        },
    },
    Case {
        list: "DaemonSet.selector",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let labels = entries(count, turn, |it| format!(r#""{it}": """#));
            selecting(&format!(r#""matchLabels": {{{labels}}}"#))
        },
    },
    Case {
        list: "DaemonSet.selector[].operator",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let values = values(count, turn);
            selecting(&format!(
                r#""matchExpressions": [{{"key": "a", "operator": "NotIn", "values": [{values}]}}]"#
            ))
        },
    },
    Case {
        list: "DaemonSet.template_labels",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let labels = entries(count, turn, |it| format!(r#""{it}": """#));
            format!(
                r#"{{"metadata": {{"namespace": "tenant", "name": "d", "uid": "d"}}, "spec": {{"template": {{"metadata": {{"labels": {{{labels}}}}}}}}}}}"#
            )
        },
    },
    Case {
        list: "DaemonSet.node_selector",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let labels = entries(count, turn, |it| format!(r#""{it}": """#));
            daemon_set(&format!(r#""nodeSelector": {{{labels}}}"#))
        },
    },
    Case {
        list: "DaemonSet.node_affinity",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let term = |it: &str| {
                format!(r#"{{"matchExpressions": [{{"key": "{it}", "operator": "Exists"}}]}}"#)
            };
            affinity(&entries(count, turn, term))
        },
    },
    Case {
        list: "DaemonSet.node_affinity[].labels",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let absent = |it: &str| format!(r#"{{"key": "{it}", "operator": "DoesNotExist"}}"#);
            let absent = entries(count, turn, absent);
            affinity(&format!(r#"{{"matchExpressions": [{absent}]}}"#))
        },
    },
    Case {
        list: "DaemonSet.node_affinity[].labels[].operator",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let values = values(count, turn);
            affinity(&format!(
                r#"{{"matchExpressions": [{{"key": "a", "operator": "NotIn", "values": [{values}]}}]}}"#
            ))
        },
    },
    Case {
        list: "DaemonSet.node_affinity[].names",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let name = |it: &str| {
                format!(r#"{{"key": "metadata.name", "operator": "NotIn", "values": ["{it}"]}}"#)
            };
            affinity(&format!(
                r#"{{"matchFields": [{}]}}"#,
                entries(count, turn, name)
            ))
        },
    },
    Case {
        list: "DaemonSet.tolerations",
        watch: Watch::DaemonSets(ALL),
        json: |count, turn| {
            let toleration = |it: &str| format!(r#"{{"key": "{it}", "operator": "Exists"}}"#);
            daemon_set(&format!(
                r#""tolerations": [{}]"#,
                entries(count, turn, toleration)
            ))
        },
    },
];

/// Kinds of which a kubelet or a tenant can make many objects.
const OBJECTS: &[Case] = &[
    Case {
        list: "Pod",
        watch: Watch::Pods(CLASS),
        json: |index, _| pod(&format!("p-{index}"), ""),
    },
    Case {
        list: "ResourceSlice",
        watch: Watch::ResourceSlices(DEVICES),
        json: |index, turn| {
            format!(
                r#"{{"metadata": {{"name": "s-{index}"}}, "spec": {{"nodeName": "evil", "devices": [{{"name": "d"}}],
                    "pool": {{"name": "p-{index}", "generation": {turn}, "resourceSliceCount": 1}}}}}}"#
            )
        },
    },
    // They run nowhere.
    Case {
        list: "DaemonSet",
        watch: Watch::DaemonSets(ALL),
        json: |index, turn| {
            format!(
                r#"{{"metadata": {{"namespace": "tenant", "name": "d-{index}", "uid": "d-{index}"}},
                    "spec": {{"template": {{"spec": {{"nodeSelector": {{"a": "{turn}"}}}}}}}}}}"#
            )
        },
    },
];

/// A critical pod on that node, Ready, with these annotations.
fn pod(name: &str, annotations: &str) -> String {
    format!(
        r#"{{"metadata": {{"namespace": "kube-system", "name": "{name}", "annotations": {{{annotations}}}}}, "spec": {{"nodeName": "evil"}},
            "status": {{"conditions": [{{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"}}]}}}}"#
    )
}

fn selecting(selector: &str) -> String {
    format!(
        r#"{{"metadata": {{"namespace": "tenant", "name": "d", "uid": "d"}}, "spec": {{"selector": {{{selector}}}, "template": {{}}}}}}"#
    )
}

/// The lists that are kept of an object.
fn lists(object: Object) -> Lists {
    fn of<T: Kept + Kind>(it: Watched<T>) -> Lists {
        let mut found = Lists::new();
        if let Ok(it) = it.read() {
            it.lists(T::RESOURCE.kind(), &mut found);
        }
        found
    }
    match object {
        Object::Node(it) => of(it),
        Object::CsiNode(it) => of(it),
        Object::Pod(_, it) => of(it),
        Object::DaemonSet(_, it) => of(it),
        Object::ResourceSlice(_, it) => of(it),
        // Whoever may write these may do what they do without them.
        Object::Rule(_) | Object::NodeClaim(_) | Object::NodePool(_) => Lists::new(),
    }
}

/// The time that this thread has had a processor, or else that has passed.
fn processor_time() -> Duration {
    static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let time = stat.split(' ').next().and_then(|time| time.parse().ok());
    time.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

/// An engine that sees two nodes: what one of them does, and how long the other's changes then take.
struct Pair {
    bench: Bench,
    turn: usize,
    /// The longest that another node's change took.
    longest: Duration,
}

impl Pair {
    fn new() -> Self {
        Self::of(0)
    }

    /// With so many nodes more.
    fn of(nodes: usize) -> Self {
        let mut bench = Bench::of(&settings());
        let other = node("other").condition("Net", "True");
        let more = (0..nodes).map(|it| node(&format!("n-{it}")).condition("Net", "True"));
        let all: Vec<_> = more.chain([other]).collect();
        bench.begin(&rules(), &all);
        while let Some(watch) = bench.begun.keys().find(|it| !bench.watches.contains(it)) {
            let watch = *watch;
            bench.lists(watch);
        }
        let mut pair = Self {
            bench,
            turn: 0,
            longest: Duration::ZERO,
        };
        let agent = daemon_set("")
            .replace("tenant", "kube-system")
            .replace(r#""d""#, r#""agent""#);
        let own = [
            Object::Node(bare(9)),
            Object::of(Watch::DaemonSets(ComponentGroup::Named(0)), &agent),
            Object::of(
                Watch::CsiNodes,
                r#"{"metadata": {"name": "evil"}, "spec": {"drivers": [{"name": "0-1.csi"}]}}"#,
            ),
            Object::of(
                Watch::Pods(CLASS),
                &pod(
                    "own",
                    r#""node.gardener.cloud/wait-for-csi-node-a": "0-1.csi""#,
                ),
            ),
        ];
        pair.sees(own.map(Seen::Apply).into(), &bare(9));
        pair
    }

    /// The watches show all this, and then a change of the other node, which has to be written.
    fn sees(&mut self, seen: Vec<Seen>, evil: &Watched<Node>) {
        let bench = &mut self.bench;
        bench.now.monotonic += Duration::from_secs(2);
        bench.now.wall += Duration::from_secs(2);
        self.turn += 1;
        let status = ["True", "False"][self.turn % 2];
        let other = bench.cluster.get(Watch::Nodes, "other").unwrap().clone();
        let mut other = other;
        other["status"]["conditions"][0]["status"] = status.into();
        let other = super::object(Watch::Nodes, bench.cluster.put(Watch::Nodes, other));
        let mut inputs = bench.confirmed();
        inputs.extend(
            seen.into_iter()
                .chain([Seen::Apply(other)])
                .map(Input::Seen),
        );
        let mut spent = Duration::ZERO;
        let mut is_written = false;
        for _ in 0..1000 {
            let began = processor_time();
            let effects = bench.engine.take(inputs.drain(..), bench.now);
            if !is_written {
                spent += processor_time().saturating_sub(began);
            }
            for effect in effects {
                let (id, request) = match effect {
                    Effect::Request(id, request) => (id, request),
                    Effect::Watch(watch, _) => {
                        bench.watches.push(watch);
                        inputs.extend(bench.lists_of(&[watch]));
                        continue;
                    }
                    Effect::Unwatch(_) | Effect::Count(_) => continue,
                };
                is_written |= matches!(&request, Request::PatchNode(name, _) if **name == *"other");
                let answer = match &request {
                    Request::PatchNode(name, _)
                    | Request::PatchNodeStatus(name, _)
                    | Request::ReadNode(name)
                        if **name == *"evil" =>
                    {
                        Ok(Answer::Node(evil.clone().into()))
                    }
                    _ => bench.answer(request),
                };
                inputs.push(Input::Answered(id, answer));
            }
            let wakes = bench
                .engine
                .next_wake()
                .is_some_and(|at| at <= bench.now.monotonic);
            if inputs.is_empty() && !wakes {
                break;
            }
        }
        assert!(is_written, "the other node's change");
        self.longest = self.longest.max(spent);
    }
}

#[test]
fn every_list_that_is_kept_is_tried() {
    let mut kept: BTreeSet<String> = BTreeSet::new();
    for case in CASES {
        let lists = |count| lists(Object::of(case.watch, &(case.json)(count, 0)));
        let (few, more) = (lists(2), lists(50));
        assert!(few[case.list] < more[case.list], "{few:?}, {more:?}");
        kept.extend(more.into_keys());
    }
    for case in OBJECTS {
        kept.extend(lists(Object::of(case.watch, &(case.json)(0, 0))).into_keys());
    }
    let tried = CASES.iter().map(|case| case.list.to_owned());
    assert_eq!(kept, tried.collect(), "what is kept, and what is tried");
}

#[test]
fn no_list_of_one_object_holds_up_another_node() {
    let late: Vec<String> = thread::scope(|scope| {
        let parts = CASES.chunks(CASES.len().div_ceil(4));
        let parts: Vec<_> = parts.map(|cases| scope.spawn(|| late(cases))).collect();
        parts
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    assert!(late.is_empty(), "{late:#?}");
}

/// The lists that hold up another node's change for too long.
fn late(cases: &[Case]) -> Vec<String> {
    let mut late = Vec::new();
    for case in cases {
        for &count in COUNTS {
            let mut pair = Pair::new();
            // They come, others are there after a reboot, and they are gone. To decode them takes most of this test's time.
            for (turn, count) in [(0, count), (1, count.min(10_000)), (2, 0)] {
                let json = (case.json)(count, turn);
                let took = measure(|| {
                    let shown = Object::of(case.watch, &json);
                    let node = match &shown {
                        Object::Node(node) if node.value().is_some() => node.clone(),
                        _ => bare(turn),
                    };
                    let seen = [shown, Object::Node(node.clone())].map(Seen::Apply);
                    pair.sees(seen.into(), &node);
                });
                let bytes = took.bytes_max;
                if bytes > MEMORY {
                    late.push(format!("{} of {count}: {bytes} bytes", case.list));
                }
            }
            if pair.longest > BOUND {
                late.push(format!("{} of {count}: {:?}", case.list, pair.longest));
                break;
            }
        }
    }
    late
}

#[test]
fn no_number_of_objects_holds_up_another_node() {
    let mut late = Vec::new();
    for case in OBJECTS {
        for &count in COUNTS {
            let mut pair = Pair::new();
            let node = bare(0);
            let asked = pair.bench.now.monotonic;
            let mut all =
                (0..count).map(|it| Seen::Apply(Object::of(case.watch, &(case.json)(it, 0))));
            let mut began = vec![Seen::Init(case.watch, asked)];
            loop {
                began.extend(all.by_ref().take(BATCH));
                if began.is_empty() {
                    break;
                }
                pair.sees(std::mem::take(&mut began), &node);
            }
            let changed = Seen::Apply(Object::of(case.watch, &(case.json)(count / 2, 1)));
            pair.sees(vec![Seen::InitDone(case.watch), changed], &node);
            let listed = [Seen::Init(case.watch, asked), Seen::InitDone(case.watch)];
            pair.sees(listed.into(), &node);
            // A list in which all of them are gone takes time in proportion.
            let in_proportion = GONE * u32::try_from(count).unwrap();
            if pair.longest > BOUND + in_proportion {
                late.push(format!("{} of {count}: {:?}", case.list, pair.longest));
                break;
            }
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}

/// A tenant's `DaemonSet` with so many expressions, and the class's labels.
fn tenants(index: usize, expressions: usize) -> String {
    let absent = |it: &str| format!(r#"{{"key": "{it}", "operator": "DoesNotExist"}}"#);
    let absent = entries(expressions, index, absent);
    affinity(&format!(r#"{{"matchExpressions": [{absent}]}}"#))
        .replace(
            r#""d", "uid": "d""#,
            &format!(r#""d-{index}", "uid": "d-{index}", "labels": {{{CRITICAL}}}"#),
        )
        .replace(
            r#""template": {"#,
            &format!(r#""template": {{"metadata": {{"labels": {{{CRITICAL}}}}},"#),
        )
}

#[test]
fn no_number_of_large_daemon_sets_in_a_namespace_holds_up_another_node() {
    let mut late = Vec::new();
    // 60,000 are more than is read; 500 are read.
    for (watch, expressions) in [
        (Watch::DaemonSets(CLASS), 60_000),
        (Watch::DaemonSets(CLASS), 500),
        (Watch::DaemonSets(ALL), 60_000),
        (Watch::DaemonSets(ALL), 500),
    ] {
        let mut pair = Pair::of(300);
        let all = (0..60).map(|index| tenants(index, expressions));
        let all: Vec<_> = all.collect();
        let took = measure(|| {
            for (turn, json) in all.iter().enumerate() {
                let seen = Seen::Apply(Object::of(watch, json));
                pair.sees(vec![seen], &bare(turn));
            }
        });
        let (bytes, longest) = (took.bytes_max, pair.longest);
        println!("{watch:?}, 60 of {expressions} expressions: {longest:?}, {bytes} bytes");
        if longest > BOUND || bytes > MEMORY {
            late.push(format!(
                "{watch:?} of {expressions}: {longest:?}, {bytes} bytes"
            ));
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}
