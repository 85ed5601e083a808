//! Short stories for the tests of the laws, a good and a bad one each.

use std::fmt::Display;

use serde_json::{Value, json};

use super::ledger::{Glances, Ledger};
use super::truth::Facts;
use crate::sim::actors::ask::{condition_now, text};
use crate::sim::cluster::{Cluster, Who};
use crate::sim::law::{Law, Moment, Report};
use crate::sim::scenario::Scenario;
use crate::sim::settings::{Settings, usual};
use crate::sim::time::{Time, s};
use crate::{Key, Kind, Part, Patch, Preconditions, Request};

pub(super) const TAINT: &str = "readiness.k8s.io/net";

const SOMEBODY: Who = Who::Actor("somebody");
const NODEGATE: Who = Who::Nodegate(0);

/// A cluster, and its state after each step.
pub(super) struct Story {
    cluster: Cluster,
    /// The only instance of Nodegate.
    pub report: Report,
    settings: Settings,
    pages: Vec<Cluster>,
}

impl Default for Story {
    fn default() -> Self {
        Self {
            cluster: Cluster::new(1),
            report: Report {
                runs_since: Some(Time::ZERO),
                leads_since: Some(Time::ZERO),
                synced_since: Some(Time::ZERO),
                ..Report::default()
            },
            settings: usual(),
            pages: Vec::new(),
        }
    }
}

pub(super) fn node(name: &str) -> Value {
    json!({
        "kind": "Node",
        "metadata": { "name": name, "labels": { "pool": "a" } },
        "spec": {},
        "status": { "nodeInfo": { "bootID": "boot-1" } },
    })
}

pub(super) fn gated(mut node: Value) -> Value {
    node["spec"]["taints"] = json!([taint()]);
    node
}

pub(super) fn taint() -> Value {
    json!({ "key": TAINT, "effect": "NoSchedule" })
}

/// A continuous rule `r` that waits for `Net` on the nodes of pool `a`, with these fields added or replaced.
fn rule(fields: Value) -> Value {
    let mut spec = json!({
        "conditions": [{ "type": "Net", "requiredStatus": "True" }],
        "enforcementMode": "continuous",
        "taint": { "key": TAINT, "effect": "NoSchedule" },
        "nodeSelector": { "matchLabels": { "pool": "a" } },
    });
    if let Value::Object(fields) = fields {
        for (field, value) in fields {
            spec[field] = value;
        }
    }
    json!({
        "kind": "NodeReadinessRule",
        "metadata": { "name": "r", "finalizers": ["readiness.node.x-k8s.io/cleanup-taints"] },
        "spec": spec,
    })
}

/// A story under a `bootstrap-only` rule that repairs nodes so.
pub(super) fn repairing(repair: &Value) -> Story {
    Story::under(json!({ "enforcementMode": "bootstrap-only", "nodegate": { "repair": repair } }))
}

/// Nodegate adds the taint of [`rule`] to a node, and its annotation.
pub(super) fn gate(story: &mut Story, node: &str) {
    let uid = story.uid_of_rule("r");
    let value = json!({ "rule-name": "r", "taint-key": TAINT, "taint-effect": "NoSchedule" });
    let annotations = json!({ format!("nodegate.dev/taint-added-by-{uid}"): value.to_string() });
    let patch =
        json!({ "metadata": { "annotations": annotations }, "spec": { "taints": [taint()] } });
    story.patch_by_nodegate(node, patch);
}

impl Story {
    /// A story that begins with [`rule`].
    pub(super) fn under(fields: Value) -> Self {
        let mut story = Self::default();
        story.create(rule(fields));
        story
    }

    pub(super) fn at(&mut self, second: u64) {
        self.cluster.advance(s(second));
    }

    pub(super) fn request(&mut self, who: Who, request: &Request) {
        let answer = self.cluster.request(who, request);
        assert!(answer.is_ok(), "{answer:?}");
        self.pages.push(self.cluster.clone());
    }

    pub(super) fn create(&mut self, object: Value) {
        let key = key_of(&object);
        // The kubelet is Ready at once, so the taint of admission goes.
        let taints = json!({ "spec": { "taints": object["spec"]["taints"] } });
        let node = (key.kind == Kind::Node).then(|| key.name.clone());
        self.request(SOMEBODY, &Request::Create { key, object });
        if let Some(node) = node {
            self.patch_node(&node, taints);
        }
    }

    /// Creates a pod, with its status.
    pub(super) fn create_pod(&mut self, pod: Value) {
        let (key, status) = (key_of(&pod), json!({ "status": pod["status"] }));
        self.create(pod);
        self.patch(SOMEBODY, key, Part::Status, Patch::Merge(status));
    }

    pub(super) fn report(&mut self, node: &str, kind: &str, status: &str) {
        let key = Key::cluster(Kind::Node, node);
        let object = self.cluster.get(&key).unwrap();
        let condition = condition_now(&self.cluster, object, kind, status);
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        self.patch(SOMEBODY, key, Part::Status, patch);
    }

    fn patch(&mut self, who: Who, key: Key, part: Part, patch: Patch) {
        self.request(who, &Request::Patch { key, part, patch });
    }

    fn merge(&mut self, who: Who, kind: Kind, name: &str, part: Part, patch: Value) {
        self.patch(who, Key::cluster(kind, name), part, Patch::Merge(patch));
    }

    pub(super) fn patch_by_nodegate(&mut self, node: &str, patch: Value) {
        self.merge(NODEGATE, Kind::Node, node, Part::Main, patch);
    }

    pub(super) fn patch_node_status_by_nodegate(&mut self, node: &str, patch: Value) {
        self.merge(NODEGATE, Kind::Node, node, Part::Status, patch);
    }

    pub(super) fn patch_node(&mut self, node: &str, patch: Value) {
        self.merge(SOMEBODY, Kind::Node, node, Part::Main, patch);
    }

    pub(super) fn patch_node_status(&mut self, node: &str, patch: Value) {
        self.merge(SOMEBODY, Kind::Node, node, Part::Status, patch);
    }

    pub(super) fn patch_csi_node(&mut self, node: &str, patch: Value) {
        self.merge(SOMEBODY, Kind::CsiNode, node, Part::Main, patch);
    }

    pub(super) fn patch_rule(&mut self, rule: &str, patch: Value) {
        self.merge(SOMEBODY, Kind::NodeReadinessRule, rule, Part::Main, patch);
    }

    pub(super) fn patch_claim_status(&mut self, claim: &str, patch: Value) {
        self.merge(SOMEBODY, Kind::NodeClaim, claim, Part::Status, patch);
    }

    pub(super) fn delete(&mut self, who: Who, key: Key) {
        let delete = Request::Delete {
            key,
            preconditions: Preconditions::default(),
            grace: Some(0),
        };
        self.request(who, &delete);
    }

    pub(super) fn delete_rule(&mut self, rule: &str) {
        self.delete(SOMEBODY, Key::cluster(Kind::NodeReadinessRule, rule));
    }

    pub(super) fn delete_node(&mut self, node: &str) {
        self.delete(SOMEBODY, Key::cluster(Kind::Node, node));
    }

    /// Registers a CSI driver on a node, as its only one.
    pub(super) fn register(&mut self, node: &str, driver: &str) {
        self.create(json!({
            "kind": "CSINode",
            "metadata": { "name": node },
            "spec": { "drivers": [{ "name": driver, "nodeID": node }] },
        }));
    }

    pub(super) fn uid_of_rule(&self, rule: &str) -> String {
        self.uid(&Key::cluster(Kind::NodeReadinessRule, rule))
    }

    pub(super) fn uid(&self, key: &Key) -> String {
        text(&self.cluster.get(key).unwrap()["metadata"]["uid"]).to_owned()
    }

    /// Evaluates `ask` on a node's current facts.
    pub(super) fn ask<T>(&self, node: &str, ask: impl FnOnce(&Facts<'_>) -> T) -> Option<T> {
        let mut ledger = Ledger::default();
        ledger.read(&self.cluster);
        let moment = self.moment(&ledger, &self.cluster, (0, 0));
        let now = Glances::all(self.cluster.revision());
        moment.ask(node, now, self.cluster.now(), ask)
    }

    /// The law's verdict on each step of the story.
    pub(super) fn judge(&self, law: &mut dyn Law) -> Result<(), String> {
        let (mut ledger, mut judged) = (Ledger::default(), (0, 0));
        for cluster in &self.pages {
            ledger.read(cluster);
            law.check(&self.moment(&ledger, cluster, judged))?;
            judged = (cluster.changes().len(), cluster.writes().len());
        }
        Ok(())
    }

    /// Expects the law to allow each step of the story, or to forbid one.
    pub(super) fn judged(&self, law: &mut dyn Law, fine: bool, case: impl Display) {
        let judged = self.judge(law);
        assert_eq!(judged.is_ok(), fine, "{case}: {judged:?}");
    }

    /// Expects the law to allow the end of the story, or to forbid it.
    pub(super) fn judged_end(&self, law: &mut dyn Law, fine: bool, case: impl Display) {
        let judged = (self.cluster.changes().len(), self.cluster.writes().len());
        let mut ledger = Ledger::default();
        ledger.read(&self.cluster);
        let moment = |judged| self.moment(&ledger, &self.cluster, judged);
        let verdict = law.check(&moment((0, 0)));
        let verdict = verdict.and_then(|()| law.finally(&moment(judged)));
        assert_eq!(verdict.is_ok(), fine, "{case}: {verdict:?}");
    }

    fn moment<'a>(
        &'a self,
        ledger: &'a Ledger,
        cluster: &'a Cluster,
        (judged_changes, judged_writes): (usize, usize),
    ) -> Moment<'a> {
        Moment {
            ledger,
            cluster,
            scenario: &SCENARIO,
            settings: &self.settings,
            faults: &[],
            instances: std::slice::from_ref(&self.report),
            new_changes: &cluster.changes()[judged_changes..],
            new_writes: &cluster.writes()[judged_writes..],
            calm_since: Time::ZERO,
        }
    }
}

/// The key of an object by its own kind and metadata.
fn key_of(object: &Value) -> Key {
    let mut kinds = Kind::ALL.into_iter();
    let kind = kinds.find(|kind| object["kind"] == kind.name()).unwrap();
    let metadata = &object["metadata"];
    Key::namespaced(kind, text(&metadata["namespace"]), text(&metadata["name"]))
}

static SCENARIO: Scenario = Scenario {
    title: "story: what a test tells",
    instances: 1,
    settings: usual,
    brake: None,
    lasts: s(60),
    settles: s(60),
    build: |it| it,
};
