//! Events about nodes that wait, and about unreadable objects.

use serde_json::json;

use super::{Bench, Input, Seen};
use crate::io::Object;
use crate::survey::{CONFLICTED, STRAY_TAINTS, UNREADABLE_OBJECTS};
use crate::testing::{Builder, GATE, RuleBuilder, daemon_set, node, pod, rule};
use crate::{Count, RuleCount};
use nodegate_core::condition::{ComponentGroup, Watch};

const FOREIGN: &str = "node.gardener.cloud/critical-components-not-ready";

fn components() -> RuleBuilder {
    rule("r").waits_for("node.gardener.cloud/CriticalComponentsReady")
}

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn reasons(bench: &mut Bench) -> Vec<String> {
    let told = bench.told();
    let reason = |told: &String| told.split(' ').next().unwrap().to_owned();
    told.iter().map(reason).collect()
}

/// A node that waits for the pod of a `DaemonSet`.
fn waiting() -> Bench {
    let agent = daemon_set("kube-system/agent")
        .critical()
        .toleration("{operator: Exists}");
    let mut bench = Bench::new(&[components()], &[]);
    bench.shows(
        Watch::DaemonSets(ComponentGroup::Class(0)),
        agent.clone().json().clone(),
    );
    bench.sees(&node("n"));
    bench
}

fn agents_pod() -> crate::testing::PodBuilder {
    let agent = daemon_set("kube-system/agent").critical();
    pod("kube-system/agent-n").of(&agent).on("n")
}

#[test]
fn what_a_node_waits_for_is_told_once_it_has_lasted_a_second_and_again_when_it_is_something_else() {
    let mut bench = waiting();
    bench.wait(950);
    assert_eq!(reasons(&mut bench), ["TaintAdded"]);
    bench.wait(100);
    let told = bench.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("DaemonSet") && told[0].contains("agent"),
        "{told:?}"
    );
    bench.change("n", |node| node["metadata"]["labels"]["a"] = json!("b"));
    bench.wait(5000);
    assert_eq!(bench.told(), [""; 0], "nothing else is missing");
    bench.shows(
        Watch::Pods(ComponentGroup::Class(0)),
        agents_pod().json().clone(),
    );
    let told = bench.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("agent-n"), "{told:?}");
    bench.shows(
        Watch::Pods(ComponentGroup::Class(0)),
        agents_pod().ready().json().clone(),
    );
    assert_eq!(reasons(&mut bench), ["TaintRemoved"]);
    // When something is missing again, it is announced again, after a second.
    bench.shows(
        Watch::Pods(ComponentGroup::Class(0)),
        agents_pod().json().clone(),
    );
    bench.wait(1050);
    assert_eq!(reasons(&mut bench), ["TaintAdded"]);
    bench.wait(1000);
    assert_eq!(bench.told().len(), 1);
}

#[test]
fn what_a_node_waits_for_is_a_warning_only_once_it_has_lasted_a_minute() {
    const SCHEDULED: &str = "UnscheduledNodeCriticalDaemonSets";
    const READY: &str = "UnreadyNodeCriticalPods";
    let mut bench = waiting();
    let types = |bench: &mut Bench, milliseconds| {
        bench.wait(milliseconds);
        let types = std::mem::take(&mut bench.types).into_iter();
        types
            .filter(|it| it[0].starts_with("Un"))
            .collect::<Vec<_>>()
    };
    assert_eq!(types(&mut bench, 59_000), [[SCHEDULED, "Normal"]]);
    assert_eq!(types(&mut bench, 60_000), [[SCHEDULED, "Warning"]]);
    let pods = Watch::Pods(ComponentGroup::Class(0));
    bench.shows(pods, agents_pod().json().clone());
    assert_eq!(types(&mut bench, 60_000), [[READY, "Warning"]]);
    bench.shows(pods, agents_pod().ready().json().clone());
    bench.shows(pods, agents_pod().json().clone());
    assert_eq!(types(&mut bench, 30_000), [[READY, "Normal"]], "anew");
}

#[test]
fn a_rule_that_another_governs_says_so_in_an_event_a_message_and_a_gauge() {
    let first = gate();
    let mut second = gate().created(crate::testing::at(1));
    second.json()["metadata"]["name"] = json!("s");
    second.json()["metadata"]["uid"] = json!("s-uid");
    let mut bench = Bench::new(&[first, second.clone()], &[node("a"), node("b")]);
    bench.wait(3000);
    let why =
        format!("an earlier rule governs taint {GATE}:NoSchedule on 2 of 2 selected nodes: 'r'");
    let told = |bench: &mut Bench| {
        let told = bench.told().into_iter();
        told.filter(|it| it.starts_with("Conflicted"))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&mut bench), [format!("Conflicted s: {why}")]);
    assert!(bench.types.contains(&["Conflicted", "Warning"]));
    assert_eq!(bench.status("s")["conditions"][0]["message"], why);
    let conflicted = |bench: &Bench, rule: &str| bench.gauge(&CONFLICTED, &[rule]).unwrap();
    assert_eq!(["r", "s"].map(|it| conflicted(&bench, it)), [0, 2]);
    bench.sees(&node("c"));
    bench.wait(3000);
    assert_eq!(told(&mut bench), [""; 0], "one more node is no news");
    bench.sees_rule(&second.dry_run());
    bench.wait(3000);
    assert_eq!(conflicted(&bench, "s"), 0);
}

#[test]
fn nodes_with_a_taint_that_no_rule_removes_are_counted() {
    let stray = || node("a").taint("readiness.k8s.io/gaet", "NoSchedule");
    let mut bench = Bench::new(&[gate()], &[stray(), node("b")]);
    bench.wait(1000);
    assert_eq!(bench.gauge(&STRAY_TAINTS, &[]), Some(1));
    bench.sees(&node("a"));
    assert_eq!(bench.gauge(&STRAY_TAINTS, &[]), Some(0));
}

#[test]
fn gardeners_taint_gets_no_event_about_its_adoption_and_gardeners_own_when_it_goes() {
    #[rustfmt::skip]
    let cases = [
        ("ours", components(), GATE, &["TaintAdopted"][..], "TaintRemoved"),
        ("gardener's", components().remove_only(), FOREIGN, &[], "NodeCriticalComponentsReady"),
    ];
    for (name, rule, key, told, removed) in cases {
        let rule = rule.taint(key, "NoSchedule").without_finalizer();
        let bench = || {
            let agent = daemon_set("kube-system/agent")
                .critical()
                .toleration("{operator: Exists}");
            let mut bench = Bench::of(&super::settings());
            bench.cluster.put(
                Watch::DaemonSets(ComponentGroup::Class(0)),
                agent.clone().json().clone(),
            );
            bench.begin(
                std::slice::from_ref(&rule),
                &[node("n").taint(key, "NoSchedule")],
            );
            bench
        };
        let mut bench = bench();
        bench.wait(900);
        assert_eq!(reasons(&mut bench), told, "{name}");
        let ready = agents_pod().ready().json().clone();
        bench.shows(Watch::Pods(ComponentGroup::Class(0)), ready);
        assert_eq!(reasons(&mut bench), [removed], "{name}");
    }
}

fn show(bench: &mut Bench, object: Object) {
    bench.take(vec![Input::Seen(Seen::Apply(object))]);
    bench.wait(2000);
}

fn odd<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_node_that_cannot_be_understood_is_told_of_and_fails_for_its_rules() {
    const WHY: &str =
        r#"Node n cannot be parsed: status: invalid type: string "up", expected struct Status"#;
    let mut bench = Bench::new(&[gate()], &[node("n").condition("Net", "True")]);
    bench.wait(3000);
    let unreadable = json!({"metadata": {"name": "n", "uid": "n-uid"}, "status": "up"});
    bench.shows(Watch::Nodes, unreadable);
    bench.wait(2000);
    assert_eq!(
        bench.told(),
        [format!(
            "ObjectUnreadable n: This node is left as it is: {WHY}"
        )]
    );
    let failed = |bench: &Bench| {
        let status = bench.status("r");
        json!([
            status["nodegate"]["failedNodeCount"],
            status["failedNodes"][0]["message"]
        ])
    };
    assert_eq!(failed(&bench), json!([1, WHY]));
    assert_eq!(bench.gauge(&UNREADABLE_OBJECTS, &["Node"]), Some(1));
    bench.sees(&node("n").condition("Net", "True"));
    bench.wait(2000);
    assert_eq!(failed(&bench), json!([0, null]), "it is as it was");
    bench.sees(&node("n").condition("Net", "False"));
    assert_eq!(bench.taints("n"), [GATE]);
    assert_eq!(bench.gauge(&UNREADABLE_OBJECTS, &["Node"]), Some(0));
}

#[test]
fn unreadable_objects_are_reported_where_people_look() {
    let meta = |name: &str| json!({"name": name, "uid": "u", "namespace": ""});
    let in_kube_system = json!({"name": "a", "uid": "u", "namespace": "kube-system"});
    let cases: [(&str, Object, &[&str]); 6] = [
        (
            "a pod, on its node",
            Object::Pod(
                ComponentGroup::Class(0),
                odd(json!({"metadata": in_kube_system, "spec": {"nodeName": "n"}, "status": 5})),
            ),
            &[
                "ObjectUnreadable n: This node is left as it is: Pod kube-system/a cannot be parsed: status: ",
            ],
        ),
        (
            "a pod on a node that is not there",
            Object::Pod(
                ComponentGroup::Class(0),
                odd(json!({"metadata": in_kube_system, "spec": {"nodeName": "x"}, "status": 5})),
            ),
            &[],
        ),
        (
            "a node that is not known, by its own UID",
            Object::Node(odd(json!({"metadata": meta("new"), "status": "up"}))),
            &[
                "ObjectUnreadable new: This node is left as it is: Node new cannot be parsed: status: ",
            ],
        ),
        (
            "a CSINode, on its node",
            Object::CsiNode(odd(json!({"metadata": meta("n"), "spec": []}))),
            &["ObjectUnreadable n: This node is left as it is: CSINode n cannot be parsed: spec: "],
        ),
        (
            "a DaemonSet, on the rules that wait for its class",
            Object::DaemonSet(
                ComponentGroup::Class(0),
                odd(json!({"metadata": in_kube_system, "spec": 5})),
            ),
            &["ObjectUnreadable r: DaemonSet kube-system/a cannot be parsed: spec: "],
        ),
        (
            "a rule, on itself",
            Object::Rule(odd(json!({"metadata": {"name": "odd"}, "spec": {}}))),
            &["ObjectUnreadable odd: NodeReadinessRule odd cannot be parsed: metadata.uid"],
        ),
    ];
    for (name, object, expected) in cases {
        let elsewhere = gate().taint("readiness.k8s.io/s", "NoSchedule");
        let mut elsewhere = elsewhere;
        elsewhere.json()["metadata"]["name"] = json!("s");
        elsewhere.json()["metadata"]["uid"] = json!("s-uid");
        let ready = node("n").condition("Net", "True");
        let mut bench = Bench::new(&[components(), elsewhere], &[ready]);
        bench.wait(3000);
        bench.told();
        show(&mut bench, object);
        let told = bench.told();
        assert_eq!(told.len(), expected.len(), "{name}: {told:?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{name}: {told}");
        }
    }
}

#[test]
fn what_a_node_waited_for_last_is_told_with_its_release() {
    let pods = Watch::Pods(ComponentGroup::Class(0));
    let mut bench = Bench::new(&[components().bootstrap_only()], &[]);
    for name in ["agent", "fast"] {
        let agent = daemon_set(&format!("kube-system/{name}")).critical();
        let agent = agent.toleration("{operator: Exists}").json().clone();
        bench.shows(Watch::DaemonSets(ComponentGroup::Class(0)), agent);
    }
    bench.sees(&node("n"));
    let fast = daemon_set("kube-system/fast").critical();
    let fast = pod("kube-system/fast-n").of(&fast).on("n").ready();
    bench.wait(1000);
    for pod in [agents_pod(), fast, agents_pod().ready()] {
        bench.shows(pods, pod.clone().json().clone());
        bench.wait(1000);
    }
    let stages = bench.counted.iter().filter_map(|count| match count {
        Count::Rule(_, RuleCount::StartedUp(stages)) => Some(&*stages[0].component),
        _ => None,
    });
    assert_eq!(stages.collect::<Vec<_>>(), ["kube-system/agent"]);
    let told = bench.told().into_iter();
    let told: Vec<_> = told
        .filter(|it| it.starts_with("BootstrapCompleted"))
        .collect();
    let [note] = &told[..] else {
        panic!("{told:?}");
    };
    let (_, end) = note.rsplit_once(" after ").unwrap();
    let (took, last) = end.split_once("s; ").unwrap();
    assert!((1..110).contains(&took.parse().unwrap()), "{note}");
    assert_eq!(last, "kube-system/agent came last");
}
