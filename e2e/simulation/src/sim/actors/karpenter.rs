//! Karpenter: it keeps a pool at its number of `NodeClaim`s, launches an instance for each, registers and initializes its
//! node, and removes the node of a deleted claim.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ask::{
    condition, create, delete, has_taint, is_going, items, merge, name, node_key, taints, text,
};
use super::due::Due;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms, s};
use crate::{Key, Kind, Part};

const KARPENTER: &str = "karpenter";
const TERMINATION: &str = "karpenter.sh/termination";
const POOL: &str = "karpenter.sh/nodepool";
const UNREGISTERED: &str = "karpenter.sh/unregistered";
const REGISTERED: &str = "karpenter.sh/registered";
const INITIALIZED: &str = "karpenter.sh/initialized";

/// Karpenter, with the pool that it manages.
#[derive(Debug)]
pub struct Karpenter {
    pool: Pool,
    due: Due<Task>,
    /// How many claims it has created.
    made: u64,
    /// The claims whose instance has launched.
    launched: BTreeSet<String>,
}

#[derive(Debug, Clone)]
pub struct Pool {
    /// The name of its `NodePool`, which must exist.
    pub name: &'static str,
    pub nodes: usize,
    pub startup_taints: Vec<Value>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Count,
    Launch(String),
    Look(String),
    /// The instance of this claim has terminated.
    Ended(String),
}

impl Karpenter {
    /// Manages this pool, and creates the first nodes at this time.
    pub fn new(pool: Pool, from: Time) -> Self {
        let mut due = Due::default();
        due.at(from, Task::Count);
        Self {
            pool,
            due,
            made: 0,
            launched: BTreeSet::new(),
        }
    }

    fn count(&mut self, cluster: &mut Cluster) {
        let pool = &self.pool;
        let claims = cluster.objects(Kind::NodeClaim);
        let live = claims.filter(|(_, claim)| {
            !is_going(claim) && claim["metadata"]["labels"][POOL] == pool.name
        });
        for _ in live.count()..pool.nodes {
            self.made += 1;
            let key = claim_key(&format!("{}-{}", pool.name, self.made));
            let claim = json!({
                "metadata": {"labels": {POOL: pool.name}, "finalizers": [TERMINATION]},
                "spec": {"startupTaints": pool.startup_taints, "requirements": []},
            });
            // Claim names are unique.
            let _ = create(cluster, KARPENTER, key, claim);
        }
    }

    fn look(&mut self, cluster: &mut Cluster, name: &str, rng: &mut Rng) {
        let Some(claim) = cluster.get(&claim_key(name)).cloned() else {
            return;
        };
        let node = cluster.get(&node_key(name)).cloned();
        if is_going(&claim) {
            self.terminate(cluster, &claim, node.as_deref(), rng);
            return;
        }
        let Some(node) = node.filter(|node| !is_going(node)) else {
            return;
        };
        if has_taint(&node, UNREGISTERED) {
            register(cluster, &claim, &node);
        } else if node["metadata"]["labels"][INITIALIZED] != "true" && is_up(&claim, &node) {
            let label = json!({"metadata": {"labels": {INITIALIZED: "true"}}});
            let _ = merge(cluster, KARPENTER, &node_key(name), Part::Main, label);
            set_condition(cluster, name, "Initialized", json!({}));
        }
    }

    /// Removes the node first, then the instance, then the claim.
    fn terminate(
        &mut self,
        cluster: &mut Cluster,
        claim: &Value,
        node: Option<&Value>,
        rng: &mut Rng,
    ) {
        let claim_name = name(claim);
        match node {
            Some(node) if is_going(node) => {
                let at = cluster.now() + rng.between(s(1), s(4));
                self.due.at(at, Task::Ended(claim_name.to_owned()));
            }
            Some(_) => {
                let _ = delete(cluster, KARPENTER, &node_key(claim_name), None);
            }
            None => release(cluster, &claim_key(claim_name)),
        }
    }
}

impl Actor for Karpenter {
    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, rng: &mut Rng) {
        while let Some(task) = self.due.take(cluster.now()) {
            match task {
                Task::Count => self.count(cluster),
                Task::Launch(claim) => {
                    let status = json!({"providerID": format!("lab:///{claim}")});
                    set_condition(cluster, &claim, "Launched", status);
                }
                Task::Look(claim) => self.look(cluster, &claim, rng),
                Task::Ended(claim) => release(cluster, &node_key(&claim)),
            }
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        let name = &change.key.name;
        match (change.key.kind, &change.after) {
            (Kind::NodeClaim, Some(claim)) => {
                if self.launched.insert(name.clone()) {
                    let at = change.at + rng.between(ms(500), s(3));
                    self.due.at(at, Task::Launch(name.clone()));
                }
                if is_going(claim) {
                    self.due.at(change.at + ms(300), Task::Count);
                }
            }
            (Kind::NodeClaim, None) => {
                self.due.at(change.at + ms(300), Task::Count);
                return;
            }
            (Kind::Node, _) => {}
            _ => return,
        }
        let at = change.at + rng.between(ms(50), ms(500));
        self.due.at(at, Task::Look(name.clone()));
    }
}

fn claim_key(name: &str) -> Key {
    Key::cluster(Kind::NodeClaim, name)
}

fn register(cluster: &mut Cluster, claim: &Value, node: &Value) {
    let pool = &claim["metadata"]["labels"][POOL];
    let taints = taints(node).iter().filter(|it| it["key"] != UNREGISTERED);
    let patch = json!({
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "labels": {POOL: pool, REGISTERED: "true"},
            "finalizers": [TERMINATION],
        },
        "spec": {"taints": taints.collect::<Vec<_>>()},
    });
    let _ = merge(cluster, KARPENTER, &node_key(name(node)), Part::Main, patch);
    let status = json!({"nodeName": name(node)});
    set_condition(cluster, name(claim), "Registered", status);
}

/// Whether Karpenter considers the node initialized: Ready, and without its startup taints.
fn is_up(claim: &Value, node: &Value) -> bool {
    let startup = items(&claim["spec"]["startupTaints"]);
    condition(node, "Ready") == "True"
        && !taints(node).iter().any(|taint| {
            let key = text(&taint["key"]);
            let is_startup = startup.iter().any(|it| it["key"] == *key);
            is_startup || key.starts_with("node.kubernetes.io/")
        })
}

/// Sets a condition of a claim to `True`, with further fields of its status.
fn set_condition(cluster: &mut Cluster, claim: &str, kind: &str, mut status: Value) {
    let key = claim_key(claim);
    let Some(object) = cluster.get(&key).cloned() else {
        return;
    };
    if condition(&object, kind) == "True" {
        return;
    }
    let known = items(&object["status"]["conditions"]).iter().cloned();
    let new = json!({"type": kind, "status": "True", "reason": kind, "message": "",
        "lastTransitionTime": cluster.wall().strftime("%FT%TZ").to_string()});
    status["conditions"] = known.chain([new]).collect();
    // The claim was just read.
    let _ = merge(
        cluster,
        KARPENTER,
        &key,
        Part::Status,
        json!({"status": status}),
    );
}

/// Removes Karpenter's finalizer, which completes the deletion.
fn release(cluster: &mut Cluster, key: &Key) {
    let finalizers = cluster.get(key).map(|object| {
        let all = items(&object["metadata"]["finalizers"]).iter();
        all.filter(|it| **it != TERMINATION)
            .cloned()
            .collect::<Vec<_>>()
    });
    if let Some(finalizers) = finalizers {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let _ = merge(cluster, KARPENTER, key, Part::Main, patch);
    }
}
