//! Explains a node: the effect of each rule, other obstacles for pods, since when, and what to do next.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::finding::Cause;
use crate::api::ConditionStatus;
use crate::cli::page::NextStep;
use crate::cli::rows::{RuleOnNode, State, clock, rows_of};
use crate::cli::snapshot::{Leader, LeaderHealth, Snapshot};
use crate::documentation;
use crate::engine::broken::Identity;
use crate::object::{KUBELETS_CONDITIONS, Node, Taint};
use crate::rule::{RuleSet, WhyStray};

/// Why a node is held, or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeExplanation {
    pub node: Arc<str>,
    pub verdict: NodeVerdict,
    /// When it was first held, if it is held and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The effect of each rule that matches the node; rules that hold it come first.
    pub rules: Vec<RuleOnNode>,
    /// What else keeps pods off the node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<Obstacle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The state of a node over all rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum NodeVerdict {
    Held,
    /// Its conditions are met, and its last taint is about to be removed.
    Releasing,
    /// No rule holds it, and nothing else keeps pods away.
    NotHeld,
    /// No rule holds it, and a taint that looks like a rule's is on it: nothing removes it.
    Stray,
    /// No rule holds it, but something else keeps pods away.
    Obstructed,
    NotSelected,
    /// The controller leaves it alone because an object could not be parsed.
    LeftAlone,
    Deleting,
}

/// Explains a node; `None` if it does not exist.
pub(crate) fn explain_node(snapshot: &Snapshot, name: &str) -> Option<NodeExplanation> {
    let view = &snapshot.view;
    let node = view.node(name)?.node;
    let mut notes = snapshot.notes();
    let left_alone = view.left_alone(name);
    let mut rules = rows_of(snapshot, name)?;
    rules.sort_by_key(|rule| !rule.state.holds());
    let obstacles = obstacles(node, view.rules());
    let verdict = if node.deleting {
        NodeVerdict::Deleting
    } else if left_alone.is_some() {
        NodeVerdict::LeftAlone
    } else if rules.iter().any(is_held) {
        NodeVerdict::Held
    } else if rules.iter().any(|rule| rule.state == State::Releasing) {
        NodeVerdict::Releasing
    } else if obstacles.iter().any(|it| it.is_stray) {
        NodeVerdict::Stray
    } else if !obstacles.is_empty() {
        NodeVerdict::Obstructed
    } else if rules.is_empty() {
        NodeVerdict::NotSelected
    } else {
        NodeVerdict::NotHeld
    };
    notes.extend(left_alone.map(|why| format!("the controller leaves this node as it is: {why}")));
    notes.extend(about_the_controller(snapshot));
    let holding = rules.iter().filter(|rule| rule.state.holds());
    let since = holding.filter_map(|rule| rule.since).min();
    let next = match left_alone {
        Some(broken) => see_object(&broken.object),
        None => next(snapshot, verdict, &rules, &obstacles),
    };
    Some(NodeExplanation {
        node: node.name.clone(),
        verdict,
        since,
        created: node.created,
        rules,
        obstacles,
        next,
        notes,
    })
}

/// A problem of the controller that should act on the node.
fn about_the_controller(snapshot: &Snapshot) -> Option<String> {
    let leader = snapshot.leader.as_ref()?;
    match leader.health(snapshot.at) {
        LeaderHealth::Alive => None,
        LeaderHealth::Nobody => Some("no controller leads: no taint is added or removed".into()),
        LeaderHealth::Silent => Some(format!(
            "the controller {} has not renewed its lease{}: it may add and remove no taints",
            leader.pod(),
            leader
                .renewed
                .map_or_else(String::new, |at| format!(" since {}", clock(at)))
        )),
    }
}

/// What to do next: about the deepest cause that holds the node, or else about another obstacle.
fn next(
    snapshot: &Snapshot,
    verdict: NodeVerdict,
    rules: &[RuleOnNode],
    obstacles: &[Obstacle],
) -> Option<NextStep> {
    let of_obstacles = || obstacles.iter().find_map(|it| it.next.clone());
    let leader = snapshot.leader.as_ref();
    let ailing = leader.filter(|leader| leader.health(snapshot.at) != LeaderHealth::Alive);
    match verdict {
        NodeVerdict::Deleting
        | NodeVerdict::NotSelected
        | NodeVerdict::NotHeld
        | NodeVerdict::LeftAlone => None,
        NodeVerdict::Releasing => ailing.map(check_controller),
        NodeVerdict::Stray | NodeVerdict::Obstructed => of_obstacles(),
        NodeVerdict::Held => {
            let suspended = rules
                .iter()
                .find(|it| it.tainted && it.state == State::Suspended);
            let deepest = rules
                .iter()
                .filter(|rule| rule.state.holds())
                .flat_map(|rule| &rule.conditions)
                .filter(|condition| !condition.met)
                .flat_map(|condition| &condition.causes)
                .find_map(deepest);
            let deleted = rules.iter().find(|it| it.deleting);
            deepest
                .or_else(|| suspended.map(|rule| go_on(leader, &rule.rule)))
                .or_else(|| deleted.map(|rule| clean_up(leader, &rule.rule)))
                .or_else(of_obstacles)
        }
    }
}

/// Where to look for what the controller cannot parse.
fn see_object(object: &Identity) -> Option<NextStep> {
    let (namespace, name) = (&*object.key.namespace, &*object.key.name);
    if name.is_empty() {
        return None;
    }
    let namespace = match namespace {
        "" => String::new(),
        namespace => format!("-n {namespace} "),
    };
    let kind = object.watch.kind().to_lowercase();
    Some(NextStep::new(
        "correct the field that cannot be parsed",
        format!("kubectl {namespace}get {kind} {name} -o yaml"),
    ))
}

fn check_controller(leader: &Leader) -> NextStep {
    NextStep::new(
        "check the controller",
        format!("kubectl -n {} get pods", leader.namespace),
    )
}

/// How a rule that is being deleted comes to go.
pub(super) fn clean_up(leader: Option<&Leader>, rule: &str) -> NextStep {
    leader.map_or_else(
        || {
            let page = documentation::page("troubleshooting.md#a-rule-is-stuck-terminating");
            NextStep::new(
                format!(
                    "start a controller, which removes the taint, or clean up by hand ({page})"
                ),
                format!("kubectl get nodereadinessrule {rule} -o yaml"),
            )
        },
        check_controller,
    )
}

pub(super) fn go_on(leader: Option<&Leader>, rule: &str) -> NextStep {
    match leader.filter(|leader| leader.suspends_all) {
        Some(leader) => NextStep::new(
            "resume all rules",
            format!(
                "kubectl -n {} annotate lease {} {}-",
                leader.namespace,
                crate::api::names::LEASE,
                crate::api::names::SUSPEND_ALL
            ),
        ),
        None => NextStep::new(
            "resume the rule",
            format!(
                "kubectl patch nodereadinessrule {rule} --type merge -p '{{\"spec\":{{\"nodegate\":{{\"suspend\":false}}}}}}'"
            ),
        ),
    }
}

/// Whether the rule holds the node, or is suspended with its taint on the node.
fn is_held(row: &RuleOnNode) -> bool {
    row.state.holds() || (row.tainted && row.state == State::Suspended)
}

fn deepest(cause: &Cause) -> Option<NextStep> {
    let below = cause.causes.iter().find_map(deepest);
    below.or_else(|| cause.next.clone())
}

const CORDONED: &str = "node.kubernetes.io/unschedulable";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Obstacle {
    /// The taint, as `key:effect`; empty if the obstacle is not a taint.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub taint: String,
    pub message: String,
    /// Whether it is a taint that looks like a rule's and that no rule removes.
    #[serde(skip)]
    pub is_stray: bool,
    #[serde(skip)]
    pub next: Option<NextStep>,
}

/// Everything other than rules that keeps pods off a node.
pub(super) fn obstacles(node: &Node, rules: &RuleSet) -> Vec<Obstacle> {
    let stray: Vec<(&Taint, WhyStray)> = rules.stray(node).collect();
    let why_stray = |taint: &Taint| {
        let mut stray = stray.iter().filter(|(it, _)| *it == taint);
        stray.next().map(|(_, why)| why)
    };
    let is_managed = |taint: &Taint| {
        let mut managed = rules.rules().iter();
        managed.any(|rule| {
            let is_live = rule.live().is_some() || rule.deleting;
            let effect = taint.effect.parse();
            is_live && effect.is_ok_and(|effect| rule.is_about(&taint.key, effect))
        })
    };
    let taints = node.taints.iter();
    let taints = taints.filter(|taint| taint.effect != "PreferNoSchedule");
    let mut all: Vec<Obstacle> = taints
        .filter_map(|taint| match why_stray(taint) {
            Some(why) => Some(of_stray(taint, why, node)),
            None => (!is_managed(taint)).then(|| of_taint(taint, node)),
        })
        .collect();
    if node.deleting {
        all.push(Obstacle {
            taint: String::new(),
            message: "the node is being deleted: rules no longer apply to it".into(),
            is_stray: false,
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
            is_stray: false,
            next: Some(NextStep::new(
                "see what the kubelet reports",
                format!("kubectl describe node {}", node.name),
            )),
        });
    }
    all
}

/// A taint that looks like a rule's and that no rule removes.
fn of_stray(taint: &Taint, why: &WhyStray, node: &Node) -> Obstacle {
    let Taint { key, effect, .. } = taint;
    let next = match why {
        WhyStray::DryRun { rule } | WhyStray::Rejected { rule } => NextStep::new(
            "see what the rule would do",
            format!("kubectl nodegate explain rule/{rule}"),
        ),
        WhyStray::NoRule | WhyStray::OtherEffect { .. } | WhyStray::NotSelected { .. } => {
            NextStep::new(
                "correct what gives nodes this taint, and remove it",
                format!("kubectl taint node {} {key}:{effect}-", node.name),
            )
        }
    };
    Obstacle {
        taint: format!("{key}:{effect}"),
        message: format!("no rule removes this taint: {why}"),
        is_stray: true,
        next: Some(next),
    }
}

fn of_taint(taint: &Taint, node: &Node) -> Obstacle {
    let Taint { key, effect, .. } = taint;
    let (message, next) = match key.as_str() {
        CORDONED => (
            "the node is cordoned".to_owned(),
            Some(NextStep::new(
                "allow pods again",
                format!("kubectl uncordon {}", node.name),
            )),
        ),
        "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable" => (
            "Kubernetes keeps pods away while the kubelet is not Ready".to_owned(),
            None,
        ),
        "node.cloudprovider.kubernetes.io/uninitialized" => (
            "the cloud provider has not initialized the node yet".to_owned(),
            None,
        ),
        "karpenter.sh/unregistered" => {
            ("Karpenter has not registered the node yet".to_owned(), None)
        }
        key if key.starts_with("node.kubernetes.io/") => (
            "Kubernetes keeps pods away while the node is short of a resource".to_owned(),
            None,
        ),
        _ => (
            "the taint of another component, which no rule removes".to_owned(),
            None,
        ),
    };
    Obstacle {
        taint: format!("{key}:{effect}"),
        message,
        is_stray: false,
        next,
    }
}
