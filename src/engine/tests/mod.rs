//! The engine as a whole: what was seen and answered goes in; what it asks for, tells and counts comes out.
//!
//! What it does to nodes whatever goes wrong is the laboratory's to try. These are about what the laboratory has no law for:
//! what is told and counted, what rules' statuses say, and in which order things are written.

mod conditions;
mod nodes;
mod rules;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use json_patch::PatchOperation;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::io::{Answer, Count, Effect, Input, Now, Object, Request, Seen};
use super::kind::Watch;
use super::{Engine, RequestError, Settings, Survey};
use crate::config::Config;
use crate::guard::Limits;
use crate::object::MetadataObject;
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at};

/// What a request is refused with, if it is.
type Refusal = fn(&Request) -> Option<RequestError>;

/// An engine that leads and has seen everything, and what comes of what it asks for: each request is carried out at once,
/// unless it is refused.
struct Bench {
    engine: Engine,
    now: Now,
    began: Instant,
    nodes: BTreeMap<String, Value>,
    rules: BTreeMap<String, Value>,
    version: u64,
    refusal: Refusal,
    /// How many requests have been refused.
    refused: usize,
    confirmation: u64,
    /// What was asked for, each with what it is about.
    asked: Vec<String>,
    /// What was told, each as its reason, what it is about, and what it says.
    told: Vec<String>,
    counted: Vec<Count>,
}

fn decode<T: DeserializeOwned>(json: &Value) -> T {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// Merges the conditions of a strategic merge patch.
fn merge(conditions: &mut Vec<Value>, patch: &Value) {
    for condition in patch["status"]["conditions"].as_array().unwrap() {
        conditions.retain(|it| it["type"] != condition["type"]);
        if condition["$patch"] != "delete" {
            conditions.push(condition.clone());
        }
    }
}

/// Carries a patch out, whatever it tests.
fn carry_out(object: &mut Value, mut patch: json_patch::Patch) {
    patch
        .0
        .retain(|operation| !matches!(operation, PatchOperation::Test(_)));
    json_patch::patch(object, &patch).unwrap();
}

impl Bench {
    /// An engine that comes to know these rules and nodes at [`at`]`(100)`, and what it does about them at once.
    fn new(rules: &[RuleBuilder], nodes: &[NodeBuilder]) -> Self {
        Self::refusing(rules, nodes, |_| None)
    }

    /// The same, where requests are refused from the start.
    fn refusing(rules: &[RuleBuilder], nodes: &[NodeBuilder], refusal: Refusal) -> Self {
        let now = Now {
            wall: at(100),
            monotonic: Instant::now(),
        };
        let settings = Settings {
            classes: Config::default().classes().unwrap(),
            passing_taints: Vec::new(),
            publish_conditions: true,
            enable_karpenter: false,
            concurrency: 64,
            rate: None,
            status_node_limit: 10,
            disruption_limits: Limits::default(),
        };
        let mut bench = Self {
            engine: Engine::new(settings, now),
            now,
            began: now.monotonic,
            nodes: BTreeMap::new(),
            rules: BTreeMap::new(),
            version: 0,
            refusal,
            refused: 0,
            confirmation: 0,
            asked: Vec::new(),
            told: Vec::new(),
            counted: Vec::new(),
        };
        let mut inputs = vec![Input::Leads];
        inputs.extend(Self::watches().map(Seen::Listing).map(Input::Seen));
        for rule in rules {
            inputs.push(bench.put_rule(rule));
        }
        for node in nodes {
            inputs.push(bench.put_node(node));
        }
        inputs.extend(Self::watches().map(Seen::Synced).map(Input::Seen));
        inputs.extend(bench.confirmed());
        bench.take(inputs);
        bench
    }

    fn watches() -> impl Iterator<Item = Watch> {
        [
            Watch::Nodes,
            Watch::CsiNodes,
            Watch::Rules,
            Watch::Pods(0),
            Watch::DaemonSets(0),
        ]
        .into_iter()
    }

    fn put_rule(&mut self, rule: &RuleBuilder) -> Input {
        let mut json = rule.clone().json().clone();
        let name = json["metadata"]["name"].as_str().unwrap().to_owned();
        if let Some(known) = self.rules.get(&name) {
            json["status"] = known["status"].clone();
        }
        let json = self.versioned(json);
        self.rules.insert(name.clone(), json);
        Input::Seen(Seen::Put(Object::Rule(decode(&self.rules[&name]))))
    }

    fn put_node(&mut self, node: &NodeBuilder) -> Input {
        let json = node.clone().json().clone();
        let name = json["metadata"]["name"].as_str().unwrap().to_owned();
        let json = self.versioned(json);
        self.nodes.insert(name.clone(), json);
        Input::Seen(Seen::Put(Object::Node(decode(&self.nodes[&name]))))
    }

    fn versioned(&mut self, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object
    }

    /// The watch shows this state of a node.
    fn sees(&mut self, node: &NodeBuilder) {
        let input = self.put_node(node);
        self.take(vec![input]);
    }

    /// The watch shows that a node is gone.
    fn gone(&mut self, name: &str) {
        let node = self.nodes.remove(name).unwrap();
        self.take(vec![Input::Seen(Seen::Gone(Object::Node(decode(&node))))]);
    }

    /// The watch shows this state of a rule.
    fn sees_rule(&mut self, rule: &RuleBuilder) {
        let input = self.put_rule(rule);
        self.take(vec![input]);
    }

    /// Somebody else changes a node.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut node = self.nodes[name].clone();
        change(&mut node);
        let node = self.versioned(node);
        self.nodes.insert(name.to_owned(), node.clone());
        self.take(vec![Input::Seen(Seen::Put(Object::Node(decode(&node))))]);
    }

    /// Time passes, in which the watches go on to show that nothing else happens.
    fn wait(&mut self, milliseconds: u64) {
        let until = self.now.monotonic + Duration::from_millis(milliseconds);
        while self.now.monotonic < until {
            let wake = self
                .engine
                .next_wake()
                .map_or(until, |wake| wake.min(until));
            self.now.monotonic = wake.max(self.now.monotonic + Duration::from_millis(1));
            self.now.wall = at(100)
                .checked_add(self.now.monotonic - self.began)
                .unwrap();
            let confirmed = self.confirmed();
            self.take(confirmed);
        }
    }

    fn confirmed(&self) -> Vec<Input> {
        Self::watches()
            .map(|watch| Input::Seen(Seen::Confirmed(watch, self.confirmation)))
            .collect()
    }

    fn take(&mut self, mut inputs: Vec<Input>) {
        loop {
            let effects = self.engine.take(inputs.drain(..), self.now);
            for effect in effects {
                match effect {
                    Effect::Request(id, request) => {
                        let answer = self.answer(request);
                        inputs.push(Input::Answered(id, answer));
                    }
                    Effect::Confirm(number) => {
                        self.confirmation = number;
                        inputs.extend(self.confirmed());
                    }
                    Effect::Count(count) => self.counted.push(count),
                }
            }
            if inputs.is_empty() {
                return;
            }
        }
    }

    fn answer(&mut self, request: Request) -> Result<Answer, RequestError> {
        if let Some(error) = (self.refusal)(&request) {
            self.refused += 1;
            return Err(error);
        }
        match request {
            Request::PatchNode { name, patch } => {
                self.asked.push(format!("node {name}"));
                let mut node = self.nodes[&*name].clone();
                if node["spec"].is_null() {
                    node["spec"] = json!({});
                }
                carry_out(&mut node, patch);
                let node = self.versioned(node);
                let metadata = decode::<MetadataObject>(&node).try_into().unwrap();
                self.nodes.insert(name.to_string(), node);
                Ok(Answer::NodeMetadata(metadata))
            }
            Request::PatchNodeStatus { name, patch } => {
                self.asked.push(format!("conditions of {name}"));
                let mut node = self.nodes[&*name].clone();
                if node["status"]["conditions"].is_null() {
                    node["status"]["conditions"] = json!([]);
                }
                merge(node["status"]["conditions"].as_array_mut().unwrap(), &patch);
                let node = self.versioned(node);
                self.nodes.insert(name.to_string(), node.clone());
                Ok(Answer::Node(Box::new(decode(&node))))
            }
            Request::ReadNode { name } => {
                self.asked.push(format!("read {name}"));
                Ok(Answer::Node(Box::new(decode(&self.nodes[&*name]))))
            }
            Request::PatchRule { name, patch } => {
                self.asked.push(format!("rule {name}"));
                let mut rule = self.rules[&*name].clone();
                carry_out(&mut rule, patch);
                let rule = self.versioned(rule);
                self.rules.insert(name.to_string(), rule.clone());
                Ok(Answer::Rule(Box::new(decode(&rule))))
            }
            Request::PatchRuleStatus { name, patch } => {
                self.asked.push(format!("status of {name}"));
                let mut rule = self.rules[&*name].clone();
                carry_out(&mut rule, patch);
                let rule = self.versioned(rule);
                self.rules.insert(name.to_string(), rule);
                Ok(Answer::Version(self.version))
            }
            Request::PostEvent { notice, .. } => {
                let (reason, name) = (notice.topic.reason, &notice.about.name);
                self.told.push(format!("{reason} {name}: {}", notice.note));
                Ok(Answer::Done)
            }
            other => panic!("nothing here asks for {other:?}"),
        }
    }

    /// What has been told since this was asked last.
    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// What has been asked for since this was asked last.
    fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }

    /// What has been counted since this was asked last, but for evaluations and what was saved.
    fn counted(&mut self) -> Vec<String> {
        let counted = std::mem::take(&mut self.counted);
        let of_note = counted.into_iter().filter_map(|count| match count {
            Count::Evaluated { .. } | Count::StatusSpared | Count::StatusCoalesced => None,
            Count::Changed(change) => Some(format!("{:?} {}", change.kind, change.rule_name)),
            Count::BootstrapCompleted { rule, since } => {
                let since = since.map(|since| since.duration_since(at(0)).as_secs());
                Some(format!("BootstrapCompleted {rule} since {since:?}"))
            }
            Count::TurnedUnmet { rule, condition } => {
                Some(format!("TurnedUnmet {rule} {condition}"))
            }
            Count::Failed { rule, reason } => Some(format!("{reason} {rule}")),
            other => Some(format!("{other:?}")),
        });
        of_note.collect()
    }

    /// The keys of a node's taints.
    fn taints(&self, node: &str) -> Vec<&str> {
        let taints = self.nodes[node]["spec"]["taints"].as_array();
        let keys = taints.into_iter().flatten();
        keys.map(|taint| taint["key"].as_str().unwrap()).collect()
    }

    fn status(&self, rule: &str) -> &Value {
        &self.rules[rule]["status"]
    }

    fn survey(&self) -> Survey {
        self.engine.survey(self.now)
    }
}
