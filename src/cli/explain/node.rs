//! Explains a node: the effect of each rule, other obstacles for pods, since when, and what to do next.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::finding::Cause;
use super::told;
use crate::page::{Block, Branch, Line, NextStep, Page, Render};
use crate::rows::{NodeVerdict, RuleOnNode, State, rows_of};
use crate::snapshot::{Leader, Snapshot};
use nodegate_core::api::names::{LEASE, SUSPEND_ALL};
use nodegate_core::api::{ConditionStatus, PauseReason};
use nodegate_core::object::{KUBELETS_CONDITIONS, Node, ObjectKey, Taint};
use nodegate_core::rule::{RuleSet, WhyStray};
use nodegate_core::text::documentation;
use nodegate_engine::{Broken, CachedRule};

#[derive(Debug, Clone, PartialEq, Serialize)]
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

pub(crate) fn explain_node(snapshot: &Snapshot, name: &str) -> Option<NodeExplanation> {
    let view = &snapshot.view;
    let node = view.node(name)?.node;
    let mut notes = snapshot.notes();
    let left_alone = view.left_alone(name);
    let mut rules = rows_of(snapshot, name)?;
    rules.sort_by_key(|rule| !rule.holds());
    let obstacles = obstacles(node, view.rules());
    let obstructed = match view.rules().stray(node).next() {
        Some(_) => NodeVerdict::Stray,
        None => NodeVerdict::Obstructed,
    };
    let verdict = match NodeVerdict::of(&rules, left_alone.is_some()) {
        _ if node.deleting => NodeVerdict::Deleting,
        verdict if obstacles.is_empty() => verdict,
        NodeVerdict::Waiting | NodeVerdict::NotHeld | NodeVerdict::NotSelected => obstructed,
        verdict => verdict,
    };
    notes.extend(left_alone.map(|why| format!("the controller leaves this node as it is: {why}")));
    notes.extend(snapshot.idle());
    let holding = || rules.iter().filter(|rule| rule.holds());
    let cached = |rule: &RuleOnNode| view.cached_rules().get(&rule.rule);
    notes.extend(holding().filter_map(cached).filter_map(way_out));
    let since = holding().filter_map(|rule| rule.since).min();
    let next = match left_alone {
        Some(broken) => see_object(broken),
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

/// What to do next: about the deepest cause that holds the node, or else about another obstacle.
fn next(
    snapshot: &Snapshot,
    verdict: NodeVerdict,
    rules: &[RuleOnNode],
    obstacles: &[Cause],
) -> Option<NextStep> {
    let of_obstacles = || obstacles.iter().find_map(|it| it.next.clone());
    let leader = snapshot.leader.as_ref();
    match verdict {
        NodeVerdict::Held | NodeVerdict::Waiting => {}
        NodeVerdict::Stray | NodeVerdict::Obstructed => return of_obstacles(),
        _ => return None,
    }
    let is_in_force = |it: &&RuleOnNode| matches!(it.state, State::Held | State::Gating);
    let in_force = rules.iter().filter(is_in_force);
    let conditions = in_force.flat_map(|it| &it.conditions);
    let mut causes = conditions.flat_map(|it| &it.causes);
    if let Some(step) = causes.find_map(Cause::deepest_step) {
        return Some(step);
    }
    let of_state = |state| rules.iter().find(|it| it.state == state && it.tainted);
    if let Some(suspended) = of_state(State::Suspended) {
        return Some(go_on(snapshot, &suspended.rule));
    }
    if let Some(dry) = of_state(State::Abandoned) {
        let name = &dry.rule;
        let say = format!(
            "turn the rule on again (dryRun: false in the file of {name}); or delete it, which takes off what it has added or adopted"
        );
        return Some(NextStep::new(say, PREVIEW));
    }
    if let Some(leader) = snapshot.idle().and(leader) {
        return Some(check_controller(leader));
    }
    let pauses = rules.iter();
    let pauses = pauses.filter_map(|it| snapshot.pause(&it.rule, &it.node));
    let mut opposed = pauses.filter(|it| it.reason != PauseReason::AbsenceNotLasted);
    if let Some(pause) = opposed.next() {
        let page = documentation::page("troubleshooting.md#a-taint-flaps");
        let see = format!(
            "kubectl get node {} -o yaml --show-managed-fields",
            pause.node_name
        );
        return Some(NextStep::new(
            format!("see what else writes the node ({page})"),
            see,
        ));
    }
    let is_stuck = |it: &RuleOnNode| snapshot.stuck(&it.rule, &it.node).is_some();
    if rules.iter().any(is_stuck) {
        let page = documentation::page("troubleshooting.md#forbidden-or-failednodes");
        let say = format!("let what refuses it admit the controller's writes ({page})");
        let see = "kubectl get validatingadmissionpolicies,validatingwebhookconfigurations";
        return Some(NextStep::new(say, see));
    }
    match rules.iter().find(|it| it.deleting) {
        Some(deleted) => Some(clean_up(leader, &deleted.rule)),
        None => of_obstacles(),
    }
}

/// Where to look for what the controller cannot parse.
fn see_object(object: &Broken) -> Option<NextStep> {
    let kind = object.watch.kind().to_lowercase();
    let ObjectKey { namespace, name } = &object.key;
    let within = match &**namespace {
        "" => String::new(),
        namespace => format!("-n {namespace} "),
    };
    let command = format!("kubectl {within}get {kind} {name} -o yaml");
    let say = "correct the field that cannot be parsed";
    (!name.is_empty()).then(|| NextStep::new(say, command))
}

fn check_controller(leader: &Leader) -> NextStep {
    let command = format!("kubectl -n {} get pods", leader.namespace);
    NextStep::new("check the controller", command)
}

/// How a rule that is being deleted comes to go.
pub(super) fn clean_up(leader: Option<&Leader>, rule: &str) -> NextStep {
    if let Some(leader) = leader {
        return check_controller(leader);
    }
    let page = documentation::page("troubleshooting.md#a-rule-is-stuck-terminating");
    NextStep::new(
        format!("start a controller, which removes the taint, or clean up by hand ({page})"),
        format!("kubectl get nodereadinessrule {rule} -o yaml"),
    )
}

/// How to release all nodes of a rule that holds each of them. The rule may be wrong, or the nodes new.
pub(super) fn way_out(cached: &CachedRule) -> Option<String> {
    let counts = cached.object.status.nodegate.as_ref()?;
    let holds_all = counts.matched_nodes > 1 && counts.held_nodes == counts.matched_nodes;
    let (rule, nodes) = (&cached.rule.name, counts.matched_nodes);
    holds_all.then(|| {
        format!(
            "rule/{rule} holds all {nodes} nodes that it selects: if it is the rule that is wrong, release them by \
             `kubectl delete nodereadinessrule {rule}`"
        )
    })
}

/// What a change to a rule's file would do.
const PREVIEW: &str = "kubectl nodegate preview -f FILE";

/// How to resume a rule that is suspended, or all rules if none of them holds every node that it selects.
pub(super) fn go_on(snapshot: &Snapshot, rule: &str) -> NextStep {
    let leader = snapshot.leader.as_ref();
    let Some(leader) = leader.filter(|leader| leader.suspends_all) else {
        let say = format!("resume rule/{rule} (spec.nodegate.suspend: false in its file)");
        return NextStep::new(say, PREVIEW);
    };
    let rules = snapshot.view.cached_rules().values();
    let holding_all = rules.filter(|it| way_out(it).is_some());
    let holding_all = holding_all.map(|it| &it.rule.name);
    if let Some(bad) = holding_all.min_by_key(|name| (***name != *rule, *name)) {
        let say = "delete the rule that holds all of its nodes, if it is wrong, before you resume all rules";
        return NextStep::new(say, format!("kubectl delete nodereadinessrule {bad}"));
    }
    let namespace = &leader.namespace;
    let command = format!("kubectl -n {namespace} annotate lease {LEASE} {SUSPEND_ALL}-");
    NextStep::new("resume all rules", command)
}

/// Everything other than rules that keeps pods off a node.
fn obstacles(node: &Node, rules: &RuleSet) -> Vec<Cause> {
    let stray: Vec<(&Taint, WhyStray)> = rules.stray(node).collect();
    let is_managed = |taint: &Taint| {
        rules.rules().iter().any(|rule| {
            let is_live = rule.live().is_some() || rule.deleting;
            let effect = taint.effect.parse();
            is_live && effect.is_ok_and(|effect| rule.is_about(&taint.key, effect))
        })
    };
    let taints = node.taints.iter();
    let taints = taints.filter(|taint| taint.effect != "PreferNoSchedule");
    let taints = taints.filter_map(|taint| {
        let Taint { key, effect, .. } = taint;
        let object = format!("taint/{key}:{effect}");
        match stray.iter().find(|(it, _)| *it == taint) {
            Some((_, why)) => {
                let cause = Cause::new(object, format!("no rule removes this taint: {why}"));
                Some(match why {
                    WhyStray::DryRun(rule) | WhyStray::Rejected(rule) => cause.then(
                        "see what the rule would do",
                        format!("kubectl nodegate explain rule/{rule}"),
                    ),
                    _ => cause.then(
                        "correct what gives nodes this taint, and remove it",
                        format!("kubectl taint node {} {key}:{effect}-", node.name),
                    ),
                })
            }
            None if is_managed(taint) => None,
            None if key == "node.kubernetes.io/unschedulable" => {
                let cause = Cause::new(object, "the node is cordoned");
                let command = format!("kubectl uncordon {}", node.name);
                Some(cause.then("allow pods again", command))
            }
            None => Some(Cause::new(object, of_others(key))),
        }
    });
    let of_node = |message: String| Cause::new(format!("node/{}", node.name), message);
    let going = "the node is being deleted: rules no longer apply to it";
    let going = node.deleting.then(|| of_node(going.into()));
    let ready = node.condition(KUBELETS_CONDITIONS[0]);
    let unready = ready.filter(|ready| ready.status != ConditionStatus::True);
    let unready = unready.map(|ready| {
        let why = [&ready.reason, &ready.message].into_iter();
        let why = why.filter(|text| !text.is_empty());
        let why: String = why.flat_map(|text| [": ", text]).collect();
        let cause = of_node(format!("the node's kubelet is not Ready{why}"));
        let command = format!("kubectl describe node {}", node.name);
        cause.then("see what the kubelet reports", command)
    });
    taints.chain(going).chain(unready).collect()
}

/// Whose taint it is that no rule removes.
fn of_others(key: &str) -> &'static str {
    match key {
        "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable" => {
            "Kubernetes keeps pods away while the kubelet is not Ready"
        }
        "node.cloudprovider.kubernetes.io/uninitialized" => {
            "the cloud provider has not initialized the node yet"
        }
        "karpenter.sh/unregistered" => "Karpenter has not registered the node yet",
        key if key.starts_with("node.kubernetes.io/") => {
            "Kubernetes keeps pods away while the node is short of a resource"
        }
        _ => "the taint of another component, which no rule removes",
    }
}

impl Render for NodeExplanation {
    const KIND: &'static str = "NodeExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let (look, word) = self.verdict.words();
        let more = match self.verdict {
            NodeVerdict::NotSelected => " by any rule",
            NodeVerdict::Stray => " with a rule's taint that no rule removes",
            NodeVerdict::Obstructed => " by any rule; something else keeps pods away",
            _ => "",
        };
        let head = Line::about(format!("node/{}", self.node));
        let mut head = head.with(look, word).plain(more);
        if self.verdict == NodeVerdict::Held {
            let age = self.since.map(|since| format!(" for {}", page.age(since)));
            let holding = self.rules.iter().filter(|rule| rule.holds());
            let count = match (holding.count(), self.rules.len()) {
                (0, _) => String::new(),
                (1, 1) => " by its rule".into(),
                (holding, all) => format!(" by {holding} of {all} rules"),
            };
            head = head.plain(age.unwrap_or_default() + &count);
        }
        let obstacles = self.obstacles.iter().map(|it| {
            let taint = it.object.strip_prefix("taint/");
            let taint = taint.map(|taint| format!("taint {taint}: "));
            let line = Line::new().poor("also: ");
            line.plain(taint.unwrap_or_default() + &it.message)
        });
        let rules = self.rules.iter().map(|rule| of_rule(rule, page));
        let tree = Branch::from(head).over(rules).over(obstacles);
        told(tree, self.next.as_ref(), &self.notes)
    }
}

fn of_rule(rule: &RuleOnNode, page: &Page) -> Branch {
    let line = rule.effect(Line::about(format!("rule/{}", rule.rule)), page);
    let line = line.faint(format!("  {} {}", rule.taint, rule.mode));
    let is_good = matches!(rule.state, State::NotHeld | State::WouldNotHold);
    let conditions = rule.conditions.iter();
    let conditions = conditions.filter(|it| page.wide || !is_good || !it.met || it.is_vacuous);
    Branch::from(line)
        .over(rule.remarks.iter().map(|remark| Line::new().faint(remark)))
        .over(conditions.map(|it| it.branch(page)))
}
