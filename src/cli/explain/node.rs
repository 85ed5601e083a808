//! Explains a node: the effect of each rule, other obstacles for pods, since when, and what to do next.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::finding::{Cause, ConditionOnNode};
use crate::api::{ConditionStatus, EnforcementMode};
use crate::cli::fleet::{State, clock, is_unknown, lingering, remark, since, why_lingering};
use crate::cli::page::NextStep;
use crate::cli::snapshot::{Leader, LeaderHealth, Snapshot};
use crate::documentation;
use crate::engine::broken::Identity;
use crate::engine::passed_over_message;
use crate::object::{KUBELETS_CONDITIONS, Node, Taint};
use crate::plan::{Outcome, PassedOver, WhyPassedOver};
use crate::repair::{Deadline, Verdict};
use crate::rule::ownership::BootstrapRecord;
use crate::rule::{Reach, Rule, RuleSet, WhyStray};

/// Why a node is open or closed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeExplanation {
    /// The node's name.
    pub node: Arc<str>,
    /// The node's state overall.
    pub verdict: NodeVerdict,
    /// When it was first held, if it is held and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the Node was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The effect of each rule that matches the node; rules that hold it come first.
    pub rules: Vec<RuleOnNode>,
    /// What else keeps pods off the node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<Obstacle>,
    /// What to do next, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    /// What could not be read, and other remarks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The state of a node over all rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeVerdict {
    Held,
    /// Its conditions are met, and its last taint is about to be removed.
    Opening,
    /// Open, and nothing else keeps pods away.
    Open,
    /// No rule holds it, but something else keeps pods away.
    Obstructed,
    NotSelected,
    /// The controller leaves it alone because an object could not be parsed.
    LeftAlone,
    Deleting,
}

/// The effect of one rule on a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleOnNode {
    /// The rule's name.
    pub rule: Arc<str>,
    /// The rule's effect on the node.
    pub state: State,
    /// The rule's taint, as `key:effect`.
    pub taint: String,
    /// When the rule may add its taint.
    pub mode: EnforcementMode,
    /// Whether the node has the taint.
    pub tainted: bool,
    /// Whether the rule is being deleted, and its taint is still to be lifted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// Since when, if the taint or the conditions show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The controller's message about the unmet conditions; empty if they are met.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Further remarks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The rule's conditions, unmet ones first.
    pub conditions: Vec<ConditionOnNode>,
}

impl RuleOnNode {
    /// Whether the rule keeps the node closed: it holds the node, or it is suspended with its taint on the node.
    fn keeps_closed(&self) -> bool {
        self.state.holds() || (self.tainted && self.state == State::Suspended)
    }
}

/// Explains a node; `None` if it does not exist.
pub fn explain_node(snapshot: &Snapshot, name: &str) -> Option<NodeExplanation> {
    let view = &snapshot.view;
    let node = view.node(name)?.node;
    let mut notes = snapshot.notes();
    let left_alone = view.left_alone(name);
    let plan = view.plan(name)?;
    let mut rules: Vec<RuleOnNode> = plan
        .outcomes
        .iter()
        .map(|outcome| on_node(outcome, node, snapshot))
        .chain(
            lingering(node, &plan, snapshot)
                .map(|(rule, reach)| of_deleted(rule, reach, node, snapshot)),
        )
        .collect();
    rules.sort_by_key(|rule| !rule.state.holds());
    let obstacles = obstacles(node, view.rules());
    let holds = || rules.iter().filter(|rule| rule.state.holds());
    let verdict = if node.deleting {
        NodeVerdict::Deleting
    } else if left_alone.is_some() {
        NodeVerdict::LeftAlone
    } else if rules.iter().any(RuleOnNode::keeps_closed) {
        NodeVerdict::Held
    } else if rules.iter().any(|rule| rule.state == State::Opening) {
        NodeVerdict::Opening
    } else if !obstacles.is_empty() {
        NodeVerdict::Obstructed
    } else if rules.is_empty() {
        NodeVerdict::NotSelected
    } else {
        NodeVerdict::Open
    };
    notes.extend(left_alone.map(|why| format!("the controller leaves this node as it is: {why}")));
    notes.extend(about_the_controller(snapshot));
    let since = holds().filter_map(|rule| rule.since).min();
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

fn on_node(outcome: &Outcome<'_>, node: &Node, snapshot: &Snapshot) -> RuleOnNode {
    let rule = outcome.rule;
    let spec = rule.spec.as_ref().ok();
    let taint = spec.map(|spec| (spec.taint.key.as_str(), spec.effect));
    let is_unknown = is_unknown(outcome, snapshot);
    let results = outcome.findings.iter();
    let mut conditions: Vec<ConditionOnNode> = results
        .map(|finding| ConditionOnNode::of(finding, node, snapshot))
        .collect();
    conditions.sort_by_key(|condition| condition.met);
    let mut remarks: Vec<String> = remark(outcome, node).into_iter().collect();
    if is_unknown && !rule.is_suspended() {
        remarks = vec![
            "you may not read everything that this depends on: this is what the node's taint and conditions show".into(),
        ];
    }
    if let Some(spec) = spec.filter(|_| !is_unknown) {
        let left_out = PassedOver::left_out_on(spec, snapshot.view.cluster(), node);
        remarks.extend(passed_over_message(spec, &left_out, WhyPassedOver::ShutOut));
    }
    if let Some(deadline) = &outcome.deadline
        && outcome.tainted
    {
        remarks.push(match deadline {
            Ok(Deadline::At(at)) => format!("its readiness TTL ends at {}", clock(*at)),
            Ok(Deadline::Never) => "it may take any time to become ready".into(),
            Err(why) => format!("its readiness TTL is unknown: {why}"),
        });
    }
    match outcome.verdict {
        Some(Verdict::Spare(why)) if outcome.tainted => {
            remarks.push(format!("it is not repaired: {why}"));
        }
        Some(Verdict::Blocked(why)) => remarks.push(format!("it is not repaired: {why}")),
        Some(Verdict::Impossible(why)) => remarks.push(format!("it cannot be repaired: {why}")),
        _ => {}
    }
    if outcome.rebooted.is_some() {
        remarks.push(
            "the node has rebooted since its bootstrap: evidence from before counts only once it is renewed. This command \
             judges that by the times on the node, the controller by what it sees"
                .into(),
        );
    }
    if !outcome.met {
        remarks.extend(why_again(outcome.bootstrap));
    }
    let why = if outcome.met || is_unknown {
        String::new()
    } else {
        outcome.why()
    };
    RuleOnNode {
        rule: rule.name.clone(),
        state: State::of(outcome, snapshot),
        taint: taint.map_or_else(String::new, |(key, effect)| format!("{key}:{effect}")),
        mode: spec.map_or(EnforcementMode::Continuous, |spec| spec.mode),
        tainted: outcome.tainted,
        deleting: false,
        since: since(outcome, node),
        why,
        remarks,
        conditions,
    }
}

/// A rule that is being deleted, and whose taint is still on the node: its conditions no longer count.
fn of_deleted(rule: &Rule, reach: &Reach, node: &Node, snapshot: &Snapshot) -> RuleOnNode {
    let spec = rule.spec.as_ref().ok();
    let why = why_lingering(rule, snapshot);
    RuleOnNode {
        rule: rule.name.clone(),
        state: State::Held,
        taint: format!("{}:{}", reach.key, reach.effect),
        mode: spec.map_or(EnforcementMode::Continuous, |spec| spec.mode),
        tainted: true,
        deleting: true,
        since: node.tainted_since(&reach.key, reach.effect),
        why: why.clone(),
        remarks: vec![why],
        conditions: Vec::new(),
    }
}

/// Why a rule closes a node again whose bootstrap was complete, other than for a reboot.
fn why_again(bootstrap: BootstrapRecord<'_>) -> Option<String> {
    match bootstrap {
        BootstrapRecord::Revised { daemon_set } => Some(format!(
            "its bootstrap was completed with another revision of DaemonSet {daemon_set}, whose pod has gone: it does not count \
             any more (regateOn: Revision)"
        )),
        BootstrapRecord::Maintained => Some(
            "its bootstrap was completed before a maintenance: it does not count any more (regateOn: Maintenance)"
                .to_owned(),
        ),
        BootstrapRecord::No
        | BootstrapRecord::Done
        | BootstrapRecord::Unstamped
        | BootstrapRecord::Outdated { .. } => None,
    }
}

/// A problem of the controller that should act on the node.
fn about_the_controller(snapshot: &Snapshot) -> Option<String> {
    let leader = snapshot.leader.as_ref()?;
    match leader.health(snapshot.at) {
        LeaderHealth::Alive => None,
        LeaderHealth::Nobody => Some("no controller leads: no taint is added or lifted".into()),
        LeaderHealth::Silent => Some(format!(
            "the controller {} has not renewed its lease{}: it may add and lift no taints",
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
        | NodeVerdict::Open
        | NodeVerdict::LeftAlone => None,
        NodeVerdict::Opening => ailing.map(check_controller),
        NodeVerdict::Obstructed => of_obstacles(),
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
                format!("start a controller, which lifts the taint, or clean up by hand ({page})"),
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
                "kubectl patch nodereadinessrule {rule} --type merge -p '{{\"spec\":{{\"suspend\":false}}}}'"
            ),
        ),
    }
}

fn deepest(cause: &Cause) -> Option<NextStep> {
    let below = cause.causes.iter().find_map(deepest);
    below.or_else(|| cause.next.clone())
}

const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// Something other than a rule that keeps pods off a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Obstacle {
    /// The taint, as `key:effect`; empty if the obstacle is not a taint.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub taint: String,
    pub message: String,
    /// What to do about it, if that is known.
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
            next: Some(NextStep::new(
                "see what the kubelet reports",
                format!("kubectl describe node {}", node.name),
            )),
        });
    }
    all
}

/// A taint that looks like a rule's and that no rule lifts.
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
        message: format!("no rule lifts this taint: {why}"),
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
            "the taint of another component, which no rule lifts".to_owned(),
            None,
        ),
    };
    Obstacle {
        taint: format!("{key}:{effect}"),
        message,
        next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing::Scene;
    use crate::object::ObjectKey;
    use crate::testing::{Builder, GATE, at, node, rule};

    #[test]
    fn why_a_completed_bootstrap_does_not_count_is_said_while_conditions_are_unmet() {
        let regates = rule("r").bootstrap_only().waits_for("Net");
        let regates = regates.nodegate("regateOn: [Maintenance]");
        let held = node("n").dated_taint(GATE, "NoSchedule").annotation(
            "readiness.k8s.io/bootstrap-completed-r-uid",
            r#"{"rule-name":"r","maintenance":true}"#,
        );
        let met = held.clone().condition("Net", "True");
        for (node, expected) in [(held, 1), (met, 0)] {
            let snapshot = Scene::default().rule(&regates).node(node).read(at(60));
            let rules = explain_node(&snapshot, "n").unwrap().rules;
            let said = rules[0].remarks.iter();
            let said = said.filter(|it| it.contains("before a maintenance"));
            assert_eq!(said.count(), expected, "{rules:?}");
        }
        let daemon_set = &ObjectKey::new("kube-system", "driver");
        let revised = why_again(BootstrapRecord::Revised { daemon_set }).unwrap();
        assert!(revised.contains("revision of DaemonSet kube-system/driver"));
    }
}
