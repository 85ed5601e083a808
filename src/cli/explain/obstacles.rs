//! What else keeps pods off a node, beside rules: other taints, a cordon, a kubelet that is not Ready.

use serde::Serialize;

use super::next::Next;
use crate::api::ConditionStatus;
use crate::object::{KUBELETS_CONDITIONS, Node, Taint};
use crate::rule::RuleSet;

const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// Something else that keeps pods off a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Obstacle {
    /// The taint, as `key:effect`; empty where it is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub taint: String,
    /// What it means.
    pub message: String,
    /// What to do about it, where that is known.
    #[serde(skip)]
    pub next: Option<Next>,
}

/// Everything that keeps pods off a node and is none of the rules' doing.
#[must_use]
pub fn obstacles(node: &Node, rules: &RuleSet) -> Vec<Obstacle> {
    let is_managed = |taint: &Taint| {
        let mut managed = rules.rules().iter();
        managed.any(|rule| {
            let is_live = rule.live().is_some() || rule.deleting;
            let effect = taint.effect.parse();
            is_live && effect.is_ok_and(|effect| rule.is_about(&taint.key, effect))
        })
    };
    let taints = node.taints.iter().filter(|taint| !is_managed(taint));
    let mut all: Vec<Obstacle> = taints
        .filter(|taint| taint.effect != "PreferNoSchedule")
        .map(|taint| of_taint(taint, node))
        .collect();
    if node.deleting {
        all.push(Obstacle {
            taint: String::new(),
            message: "the node is being deleted: no rule is about it any more".into(),
            next: None,
        });
    }
    if let Some(ready) = node.condition(KUBELETS_CONDITIONS[0])
        && ready.status != ConditionStatus::True
    {
        let why = match (ready.reason.as_str(), ready.message.as_str()) {
            ("", "") => String::new(),
            (text, "") | ("", text) => format!(": {text}"),
            (reason, message) => format!(": {reason}: {message}"),
        };
        all.push(Obstacle {
            taint: String::new(),
            message: format!("the node's kubelet is not Ready{why}"),
            next: Some(Next::new(
                "see what the kubelet reports",
                format!("kubectl describe node {}", node.name),
            )),
        });
    }
    all
}

fn of_taint(taint: &Taint, node: &Node) -> Obstacle {
    let Taint { key, effect, .. } = taint;
    let (message, next) = match key.as_str() {
        CORDONED => (
            "the node is cordoned".to_owned(),
            Some(Next::new(
                "let pods come again",
                format!("kubectl uncordon {}", node.name),
            )),
        ),
        "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable" => (
            "Kubernetes keeps pods away while the kubelet is not Ready".to_owned(),
            None,
        ),
        "node.cloudprovider.kubernetes.io/uninitialized" => (
            "the cloud provider has not said yet what the node is".to_owned(),
            None,
        ),
        "karpenter.sh/unregistered" => ("Karpenter has not taken the node on yet".to_owned(), None),
        key if key.starts_with("node.kubernetes.io/") => (
            "Kubernetes keeps pods away while the node is short of something".to_owned(),
            None,
        ),
        _ => (
            "somebody else's taint, which no rule lifts".to_owned(),
            None,
        ),
    };
    Obstacle {
        taint: format!("{key}:{effect}"),
        message,
        next,
    }
}
