//! Timelines from records and from held nodes, and their text.

use super::*;
use crate::api::names::STARTUP_PREFIX;
use crate::cli::page::{Page, Render};
use crate::cli::testing::Scene;
use crate::rule::StartupRecord;
use crate::testing::{Builder, GATE, NodeBuilder, at, node, rule};
use serde_json::json;

/// A node that opened after its conditions were met, each after this many seconds.
fn started(name: &str, conditions: &[(&str, i64)]) -> NodeBuilder {
    let met = conditions.iter();
    let last = met
        .clone()
        .map(|(_, seconds)| *seconds)
        .max()
        .unwrap_or_default();
    let record = StartupRecord {
        rule_name: "network".into(),
        created: at(0),
        tainted: at(0),
        conditions: met
            .map(|(kind, seconds)| ((*kind).to_owned(), at(*seconds)))
            .collect(),
        left_out: 0,
        opened: at(last + 1),
    };
    let key = format!("{STARTUP_PREFIX}network-uid");
    node(name).created(at(0)).annotation(&key, &record.value())
}

#[test]
fn the_component_comes_first_that_makes_nodes_slow() {
    let mut scene = Scene::default();
    for index in 1..=10 {
        let conditions = [("cni", 10 * index), ("csi", 8)];
        scene = scene.node(started(&format!("n-{index:02}"), &conditions));
    }
    let answer = timelines(&scene.read(at(3600)), None, 2);
    assert_eq!((answer.recorded, answer.held), (10, 0));
    let slowest: Vec<_> = answer
        .starts
        .iter()
        .map(|it| (it.node.as_str(), it.seconds))
        .collect();
    assert_eq!(slowest, [("n-10", 101.0), ("n-09", 91.0)]);
    let spreads: Vec<_> = answer
        .conditions
        .iter()
        .map(|it| {
            (
                it.condition.as_str(),
                it.p50,
                it.p90,
                it.max,
                it.last,
                it.delay,
            )
        })
        .collect();
    let expected = [
        ("cni", 50.0, 90.0, 100.0, 10, 47.0),
        ("csi", 8.0, 8.0, 8.0, 0, 0.0),
        ("", 51.0, 91.0, 101.0, 0, 0.0),
    ];
    assert_eq!(spreads, expected);
    assert_eq!(answer.conditions[0].slowest, "n-10");
}

#[test]
fn only_nodes_of_late_are_counted_where_that_is_asked() {
    let old = started("old", &[("cni", 1)]).created(at(-100));
    let scene = Scene::default()
        .node(old)
        .node(started("new", &[("cni", 2)]));
    let answer = timelines(&scene.read(at(3600)), Some(at(-1)), 10);
    let names: Vec<_> = answer.starts.iter().map(|it| it.node.as_str()).collect();
    assert_eq!(names, ["new"]);
}

#[test]
fn a_held_node_shows_its_start_so_far() {
    let held = node("n")
        .created(at(0))
        .taint(GATE, "NoSchedule")
        .condition_with(
            json!({"type": "example.com/a", "status": "True", "lastTransitionTime": at(20)}),
        );
    let held = held.condition("example.com/b", "False");
    let network = rule("network")
        .waits_for("example.com/a")
        .waits_for("example.com/b");
    let answer = timeline_of(
        &Scene::default().rule(&network).node(held).read(at(60)),
        "n",
    )
    .unwrap();
    assert_eq!((answer.recorded, answer.held), (0, 1));
    let text = answer.text(&Page::plain(at(60)));
    for line in [
        "node/n  held for 1m00s so far under rule/network\n",
        "  registered      ▏",
        "  example.com/a   ████████████████████                                           20s\n",
        "not yet, after 1m00s\n",
        "  opened                                                                         not yet\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn what_was_before_the_node_is_shown_where_karpenter_tells() {
    let claim = json!({"metadata": {"name": "c", "creationTimestamp": at(-30)}, "status": {"nodeName": "n"}});
    let scene = Scene::default()
        .node(started("n", &[("cni", 9)]))
        .claim(claim);
    let answer = timeline_of(&scene.read(at(3600)), "n").unwrap();
    let stages: Vec<_> = answer.starts[0]
        .stages
        .iter()
        .map(|stage| (stage.kind, stage.seconds.unwrap()))
        .collect();
    let expected = [
        (StageKind::Asked, -30.0),
        (StageKind::Registered, 0.0),
        (StageKind::Closed, 0.0),
        (StageKind::Condition, 9.0),
        (StageKind::Opened, 10.0),
    ];
    assert_eq!(stages, expected);
}

#[test]
fn a_node_without_a_record_says_so() {
    let answer = timeline_of(&Scene::default().node(node("n")).read(at(0)), "n").unwrap();
    assert_eq!(answer.starts, []);
    assert!(answer.text(&Page::plain(at(0))).contains("no record"));
    assert_eq!(timeline_of(&Scene::default().read(at(0)), "n"), None);
}

/// The text shows the timeline.
#[test]
fn the_condition_that_costs_most_comes_first_and_the_slowest_start() {
    let mut scene = Scene::default();
    for (index, cni, csi) in [(1, 21, 8), (2, 19, 9), (3, 64, 9), (4, 23, 31)] {
        let conditions = [
            ("daemonset.nodegate.dev/kube-system.cilium", cni),
            ("csidriver.nodegate.dev/ebs.csi.aws.com", csi),
        ];
        scene = scene.node(started(&format!("worker-{index}"), &conditions));
    }
    let read = scene.read(at(3600));
    let fleet = timelines(&read, None, 10).text(&Page::plain(at(3600)));
    let place = |what: &str| {
        fleet
            .find(what)
            .unwrap_or_else(|| panic!("{what} is not in\n{fleet}"))
    };
    assert!(place("kube-system.cilium") < place("ebs.csi.aws.com"));
    assert!(place("worker-3") < place("worker-4"));
    assert!(place("worker-4") < place("worker-2"));
}
