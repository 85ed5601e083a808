//! The actors, beside an engine without rules.

use serde_json::{Value, json};

use super::ask::{condition, has_taint, node_key, text, uid};
use super::*;
use crate::sim::cluster::{Cluster, View};
use crate::sim::run::run;
use crate::sim::scenario::{Scenario, Scene};
use crate::sim::settings::usual;
use crate::sim::time::{ms, s};
use crate::{Key, Kind};

/// The cluster with its history after these actors have acted for a while.
fn played(build: for<'a> fn(Scene<'a>) -> Scene<'a>) -> Cluster {
    let scenario = Scenario {
        title: "actors: no rule is there",
        instances: 1,
        settings: usual,
        brake: None,
        lasts: s(100),
        settles: s(10),
        build,
    };
    run(&scenario, 7, &[], false).cluster
}

fn pods<'a>(at: View<'a>, node: &str, app: &str) -> Vec<&'a Value> {
    let pods = at.objects(Kind::Pod).map(|(_, pod)| &**pod);
    pods.filter(|pod| pod["spec"]["nodeName"] == node && pod["metadata"]["labels"]["app"] == app)
        .collect()
}

fn all_ready(at: View<'_>) -> bool {
    let mut pods = at.objects(Kind::Pod);
    pods.all(|(_, pod)| condition(pod, "Ready") == "True")
}

fn daemon_set(name: &str, tolerations: &Value) -> (Key, Value) {
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"tolerations": tolerations}});
    let key = Key::namespaced(Kind::DaemonSet, "kube-system", name);
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    (key, json!({"spec": spec}))
}

#[test]
fn every_pod_gets_where_it_should() {
    let cluster = played(|it| {
        let mut machines = machines(4);
        machines[3] = machines[3].clone().taint("example.com/gated", "NoSchedule");
        let agent = daemon_set("agent", &json!([]));
        let new = json!({"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}});
        let operator = Operator::default()
            .creates(s(1), daemon_set("gate", &json!([{"operator": "Exists"}])))
            .creates(s(1), agent.clone())
            .edits(s(40), agent.0.clone(), new)
            .deletes(s(80), agent.0);
        it.nodes(Kubelets::new(machines))
            .acts(Scheduler::default())
            .acts(operator)
            .acts(Workload::new(6, s(10), s(1)))
    });
    let at = cluster.at(s(30));
    for number in 0..4 {
        let node = format!("n-{number}");
        assert_eq!(pods(at, &node, "gate").len(), 1, "{node}");
        let (agents, web) = if number < 3 { (1, 2) } else { (0, 0) };
        assert_eq!(pods(at, &node, "agent").len(), agents, "{node}");
        assert_eq!(pods(at, &node, "web").len(), web, "{node}");
    }
    assert!(all_ready(at));

    let at = cluster.at(s(79));
    assert!(all_ready(at), "after the rolling update");
    for node in ["n-0", "n-1", "n-2"] {
        let pods = pods(at, node, "agent");
        assert_eq!(pods.len(), 1, "{node}");
        assert_eq!(pods[0]["metadata"]["annotations"]["v"], "2", "{node}");
    }

    let at = cluster.at(s(100));
    let mut nodes = ["n-0", "n-1", "n-2", "n-3"].iter();
    assert!(nodes.all(|node| pods(at, node, "agent").is_empty()));
}

#[test]
fn a_node_is_not_ready_while_it_reboots_and_another_one_when_it_returns() {
    let cluster = played(|it| {
        let kubelets = Kubelets::new(machines(2))
            .then(s(20), "n-0", Deed::Reboot(s(10)))
            .then(s(20), "n-1", Deed::Replace(s(10)));
        it.nodes(kubelets).acts(Reporter::new("example.com/Ready"))
    });
    // Ready, what the reporter says, whether the node has the not-ready taint, and the boot.
    let what = |at: View<'_>, name: &str| {
        let node = at.get(&node_key(name));
        node.map_or_else(String::new, |node| {
            let (ready, said) = (
                condition(node, "Ready"),
                condition(node, "example.com/Ready"),
            );
            let tainted = has_taint(node, "node.kubernetes.io/not-ready");
            let boot = text(&node["status"]["nodeInfo"]["bootID"]);
            format!("{ready} {said} {tainted} {boot}")
        })
    };
    #[rustfmt::skip]
    let cases = [
        (s(15), "True True false n-0-boot-1", "True True false n-1-boot-1"),
        // A node that is off keeps its last status.
        (s(29), "True True false n-0-boot-1", ""),
        (s(31) + ms(500), "False True true n-0-boot-2", "False  true n-1-boot-2"),
        (s(45), "True True false n-0-boot-2", "True True false n-1-boot-2"),
    ];
    for (at, rebooted, replaced) in cases {
        let then = cluster.at(at);
        assert_eq!(what(then, "n-0"), rebooted, "{at:?}");
        assert_eq!(what(then, "n-1"), replaced, "{at:?}");
    }
    let states = cluster.history(&node_key("n-1"));
    let uids: std::collections::BTreeSet<_> = states
        .iter()
        .filter_map(|state| Some(uid(state.object.as_ref()?).to_owned()))
        .collect();
    assert_eq!(uids.len(), 2);
}
