//! The actors, without Nodegate.

use serde_json::{Value, json};

use super::ask::{condition, has_taint, node_key, text, uid};
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
