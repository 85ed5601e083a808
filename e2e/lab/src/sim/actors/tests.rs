//! The actors, without Nodegate.

use serde_json::{Value, json};

use super::ask::{condition, has_taint, is_going, items, name, node_key, taint, text, uid};
use super::*;
use crate::sim::actor::Actor;
use crate::sim::cluster::Cluster;
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms, s};
use crate::{Key, Kind};

struct Stage {
    cluster: Cluster,
    actors: Vec<Box<dyn Actor>>,
    rng: Rng,
    told: usize,
}

impl Stage {
    /// Everything that Kubernetes does itself, with these kubelets, and further actors.
    fn new(kubelets: Kubelets, others: Vec<Box<dyn Actor>>) -> Self {
        let mut actors: Vec<Box<dyn Actor>> = vec![
            Box::new(kubelets),
            Box::new(DaemonSets::default()),
            Box::new(Scheduler::default()),
            Box::new(Lifecycle::default()),
            Box::new(Garbage::default()),
        ];
        actors.extend(others);
        Self {
            cluster: Cluster::new(1),
            actors,
            rng: Rng::new(7),
            told: 0,
        }
    }

    fn run(&mut self, until: Time) {
        loop {
            while self.told < self.cluster.changes().len() {
                let change = self.cluster.changes()[self.told].clone();
                self.told += 1;
                for actor in &mut self.actors {
                    actor.changed(&change, &self.cluster, &mut self.rng);
                }
            }
            let wakes = self.actors.iter().enumerate();
            let next = wakes.filter_map(|(index, actor)| Some((actor.wake()?, index)));
            match next.min() {
                Some((at, index)) if at <= until => {
                    self.cluster.advance(at);
                    self.actors[index].act(&mut self.cluster, &mut self.rng);
                }
                _ => return self.cluster.advance(until),
            }
        }
    }

    fn node(&self, name: &str) -> Option<&Value> {
        let node = self.cluster.get(&node_key(name));
        node.map(|node| &**node)
    }

    fn pods(&self, node: &str, app: &str) -> Vec<&Value> {
        let pods = self.cluster.objects(Kind::Pod).map(|(_, pod)| &**pod);
        pods.filter(|pod| {
            pod["spec"]["nodeName"] == node && pod["metadata"]["labels"]["app"] == app
        })
        .collect()
    }
}

fn daemon_set(name: &str, tolerations: &Value) -> (Key, Value) {
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"tolerations": tolerations}});
    let key = Key::namespaced(Kind::DaemonSet, "kube-system", name);
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    (key, json!({"spec": spec}))
}

fn everything() -> Value {
    json!([{"operator": "Exists"}])
}

#[test]
fn every_pod_gets_where_it_should() {
    let mut machines = machines(4);
    machines[3] = machines[3].clone().taint("example.com/gated", "NoSchedule");
    let agent = daemon_set("agent", &json!([]));
    let new = json!({"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}});
    let operator = Operator::default()
        .creates(s(1), daemon_set("gate", &everything()))
        .creates(s(1), agent.clone())
        .edits(s(40), agent.0.clone(), new)
        .deletes(s(80), agent.0);
    let workload = Workload::new(6, s(10), s(1));
    let mut stage = Stage::new(
        Kubelets::new(machines),
        vec![Box::new(operator), Box::new(workload)],
    );
    stage.run(s(30));
    for number in 0..4 {
        let node = format!("n-{number}");
        assert_eq!(stage.pods(&node, "gate").len(), 1, "{node}");
        let (agents, web) = if number < 3 { (1, 2) } else { (0, 0) };
        assert_eq!(stage.pods(&node, "agent").len(), agents, "{node}");
        assert_eq!(stage.pods(&node, "web").len(), web, "{node}");
    }
    let all_ready = |stage: &Stage| {
        let mut pods = stage.cluster.objects(Kind::Pod);
        pods.all(|(_, pod)| condition(pod, "Ready") == "True")
    };
    assert!(all_ready(&stage));

    stage.run(s(79));
    assert!(all_ready(&stage), "after the rolling update");
    for node in ["n-0", "n-1", "n-2"] {
        let pods = stage.pods(node, "agent");
        assert_eq!(pods.len(), 1, "{node}");
        assert_eq!(pods[0]["metadata"]["annotations"]["v"], "2", "{node}");
    }

    stage.run(s(100));
    let nodes = ["n-0", "n-1", "n-2", "n-3"];
    assert!(
        nodes
            .iter()
            .all(|node| stage.pods(node, "agent").is_empty())
    );
}

#[test]
fn a_rolling_update_takes_one_pod_at_a_time_and_with_surge_none() {
    for (strategy, least) in [
        (json!({}), 2),
        (
            json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}),
            3,
        ),
    ] {
        let (key, mut set) = daemon_set("agent", &everything());
        json_patch::merge(&mut set["spec"], &strategy);
        let new = json!({"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}});
        let operator = Operator::default()
            .creates(s(1), (key.clone(), set))
            .edits(s(20), key, new);
        let mut stage = Stage::new(Kubelets::new(machines(3)), vec![Box::new(operator)]);
        let mut fewest = usize::MAX;
        for moment in 0..400 {
            stage.run(s(19) + ms(moment * 100));
            let is_served = |node: &&&str| {
                let pods = stage.pods(node, "agent");
                let mut live = pods.iter().filter(|pod| !is_going(pod));
                live.any(|pod| condition(pod, "Ready") == "True")
            };
            fewest = fewest.min(["n-0", "n-1", "n-2"].iter().filter(is_served).count());
        }
        assert_eq!(fewest, least, "{strategy}");
        let pods: Vec<_> = stage.cluster.objects(Kind::Pod).collect();
        assert_eq!(pods.len(), 3);
        let is_new = |pod: &Value| pod["metadata"]["annotations"]["v"] == "2";
        assert!(pods.iter().all(|(_, pod)| is_new(pod)));
    }
}

#[test]
fn a_node_is_not_ready_while_it_reboots_and_another_one_when_it_returns() {
    let kubelets = Kubelets::new(machines(2))
        .then(s(20), "n-0", Deed::Reboot(s(10)))
        .then(s(20), "n-1", Deed::Replace(s(10)));
    let reporter = Reporter::new("example.com/Ready");
    let mut stage = Stage::new(kubelets, vec![Box::new(reporter)]);
    let what = |stage: &Stage, name: &str| {
        stage.node(name).map(|node| {
            (
                condition(node, "Ready").to_owned(),
                condition(node, "example.com/Ready").to_owned(),
                has_taint(node, "node.kubernetes.io/not-ready"),
                text(&node["status"]["nodeInfo"]["bootID"]).to_owned(),
            )
        })
    };
    let state = |ready: &str, reported: &str, tainted, boot: &str| {
        Some((
            ready.to_owned(),
            reported.to_owned(),
            tainted,
            boot.to_owned(),
        ))
    };
    for (at, rebooted, replaced) in [
        (
            s(15),
            state("True", "True", false, "n-0-boot-1"),
            state("True", "True", false, "n-1-boot-1"),
        ),
        // A node that is off keeps its last status.
        (s(29), state("True", "True", false, "n-0-boot-1"), None),
        (
            s(31) + ms(500),
            state("False", "True", true, "n-0-boot-2"),
            state("False", "", true, "n-1-boot-2"),
        ),
        (
            s(45),
            state("True", "True", false, "n-0-boot-2"),
            state("True", "True", false, "n-1-boot-2"),
        ),
    ] {
        stage.run(at);
        assert_eq!(what(&stage, "n-0"), rebooted, "{at:?}");
        assert_eq!(what(&stage, "n-1"), replaced, "{at:?}");
    }
    let states = stage.cluster.history(&node_key("n-1"));
    let uids: std::collections::BTreeSet<_> = states
        .iter()
        .filter_map(|state| Some(uid(state.object.as_ref()?).to_owned()))
        .collect();
    assert_eq!(uids.len(), 2);
}

#[test]
fn drivers_register_with_the_node_that_is_there_and_go_with_it() {
    let kubelets = Kubelets::new(machines(1)).then(s(30), "n-0", Deed::Replace(s(5)));
    let csi = Csi::of("csi.example.com", s(2), s(4)).vanishes(
        s(10),
        "n-0",
        "csi.example.com",
        Some(s(10)),
    );
    let mut stage = Stage::new(kubelets, vec![Box::new(csi)]);
    for (at, drivers) in [(s(6), 1), (s(12), 0), (s(22), 1), (s(50), 1)] {
        stage.run(at);
        let csi_node = stage.cluster.get(&Key::cluster(Kind::CsiNode, "n-0"));
        let found = csi_node.map_or(0, |it| items(&it["spec"]["drivers"]).len());
        assert_eq!(found, drivers, "{at:?}");
    }
    let owner = uid(stage.node("n-0").unwrap()).to_owned();
    let csi_node = stage.cluster.get(&Key::cluster(Kind::CsiNode, "n-0"));
    assert_eq!(
        csi_node.unwrap()["metadata"]["ownerReferences"][0]["uid"],
        owner
    );
}

#[test]
fn a_claim_becomes_a_node_and_is_replaced_when_it_is_deleted() {
    let pool = Pool {
        name: "default",
        nodes: 2,
        startup_taints: vec![taint("example.com/startup")],
    };
    let claim = Key::cluster(Kind::NodeClaim, "default-1");
    let operator = Operator::default()
        .taints(s(25), "default-1", &[])
        .deletes(s(40), claim);
    let karpenter = Karpenter::new(vec![pool], s(1));
    let mut stage = Stage::new(
        Kubelets::default(),
        vec![Box::new(karpenter), Box::new(operator)],
    );
    stage.run(s(20));
    for name in ["default-1", "default-2"] {
        let node = stage.node(name).unwrap();
        let labels = &node["metadata"]["labels"];
        assert_eq!(labels["karpenter.sh/nodepool"], "default", "{name}");
        assert!(labels["karpenter.sh/initialized"].is_null(), "{name}");
        assert!(!has_taint(node, "karpenter.sh/unregistered"), "{name}");
    }
    stage.run(s(35));
    let initialized = |stage: &Stage, name: &str| {
        let claim = stage.cluster.get(&Key::cluster(Kind::NodeClaim, name));
        claim.map(|claim| condition(claim, "Initialized").to_owned())
    };
    assert_eq!(initialized(&stage, "default-1").as_deref(), Some("True"));
    assert_eq!(initialized(&stage, "default-2").as_deref(), Some(""));
    stage.run(s(60));
    let nodes: Vec<&str> = stage
        .cluster
        .objects(Kind::Node)
        .map(|(_, node)| name(node))
        .collect();
    assert_eq!(nodes, ["default-2", "default-3"]);
    assert_eq!(stage.cluster.objects(Kind::NodeClaim).count(), 2);
}
