//! Explanations as text.

use super::daemon_set::DaemonSetExplanation;
use super::finding::{Cause, ConditionOnNode};
use super::node::{NodeExplanation, NodeVerdict, Obstacle};
use super::pod::PodExplanation;
use super::rule::RuleExplanation;
use crate::cli::page::{Block, Branch, Line, NextStep, Page, Render, notes};
use crate::cli::rows::{RuleOnNode, State};
use crate::cli::status::RuleState;
use crate::wording::counted;

impl Render for NodeExplanation {
    const KIND: &'static str = "NodeExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        told(tree(self, page), self.next.as_ref(), &self.notes)
    }
}

fn tree(node: &NodeExplanation, page: &Page) -> Branch {
    let head = Line::new()
        .strong(format!("node/{}", node.node))
        .plain("  ");
    let held = || node.rules.iter().filter(|rule| rule.state.holds());
    let age = node
        .since
        .map_or_else(String::new, |since| format!(" for {}", page.age(since)));
    let head = match node.verdict {
        NodeVerdict::Held => {
            let count = match (held().count(), node.rules.len()) {
                (0, _) => String::new(),
                (1, 1) => " by its rule".into(),
                (holding, all) => format!(" by {holding} of {all} rules"),
            };
            head.bad("held").plain(format!("{age}{count}"))
        }
        NodeVerdict::Releasing => head.good("about to be released"),
        NodeVerdict::NotHeld => head.good("not held"),
        NodeVerdict::Stray => head
            .bad("tainted")
            .plain(" with a rule's taint that no rule removes"),
        NodeVerdict::Obstructed => head
            .poor("not held")
            .plain(" by any rule; something else keeps pods away"),
        NodeVerdict::NotSelected => head.good("not held").plain("; no rule selects it"),
        NodeVerdict::LeftAlone => head.bad("left as it is"),
        NodeVerdict::Deleting => head.poor("being deleted"),
    };
    let rules = node.rules.iter().map(|rule| of_rule(rule, page));
    let obstacles = node.obstacles.iter().map(of_obstacle);
    Branch::from(head).over(rules).over(obstacles)
}

impl Render for RuleExplanation {
    const KIND: &'static str = "RuleExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        told(whole_rule(self, page), self.next.as_ref(), &self.notes)
    }
}

impl Render for PodExplanation {
    const KIND: &'static str = "PodExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        told(whole_pod(self, page), self.next.as_ref(), &self.notes)
    }
}

impl Render for DaemonSetExplanation {
    const KIND: &'static str = "DaemonSetExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let head = Line::new().strong(format!("daemonset/{}", self.daemon_set));
        let head = head.faint(format!(" -n {}", self.namespace));
        let rules = self.rules.iter();
        let rules = rules.map(|rule| format!("rule/{rule} waits for it by name"));
        let none = || Line::mark(true).plain("no node is held because of it");
        let tree = Branch::from(head)
            .over(rules)
            .over(self.nodes.is_empty().then(none))
            .over(page.some(&self.nodes, |row| row.of_node(page, true)));
        told(tree, self.next.as_ref(), &self.notes)
    }
}

fn whole_rule(rule: &RuleExplanation, page: &Page) -> Branch {
    let status = &rule.status;
    let mode = status.mode.map_or("", |mode| mode.as_str());
    let head = Line::new()
        .strong(format!("rule/{}", status.rule))
        .plain("  ")
        .with(status.state.look(), status.state.word())
        .faint(format!("  {} {mode}", status.taint));
    let mut tree = Branch::from(head);
    if let Some(why) = &rule.rejection {
        tree.push(Line::mark(false).plain(why));
        return tree;
    }
    let waiting = match status.waiting {
        0 => String::new(),
        waiting => format!(", {waiting} of these waiting to be gated"),
    };
    let is_deleted = status.state == RuleState::Deleting;
    tree.push(if is_deleted {
        format!("its taint is still on {}", counted(status.held, "node"))
    } else {
        format!(
            "selects {} by {}: {} held, {} not held{waiting}",
            counted(status.matched, "node"),
            rule.selector,
            status.held,
            status.not_held,
        )
    });
    // The conditions of a rule that is being deleted no longer count.
    for condition in rule.conditions.iter().filter(|_| !is_deleted) {
        let line = Line::mark(condition.unmet == 0)
            .plain(format!("{} {}", condition.kind, condition.requirement));
        let of_it = status.lacks.iter();
        let of_it = of_it.filter(|lack| lack.condition == condition.kind);
        let below = of_it.map(|lack| format!("{} on {}", lack.reason, counted(lack.nodes, "node")));
        tree.push(Branch::from(line).over(below));
    }
    for published in &status.published {
        let line = Line::new()
            .poor(format!("{}: ", published.kind))
            .plain(&published.message);
        tree.push(line);
    }
    for remark in &status.remarks {
        tree.push(remark.as_str());
    }
    for failure in &rule.failures {
        let line = Line::new()
            .bad("failed ")
            .plain(format!("on node/{}: {}", failure.node, failure.message));
        tree.push(line);
    }
    tree.over(page.some(&rule.nodes, |row| row.of_node(page, false)))
}

fn whole_pod(pod: &PodExplanation, page: &Page) -> Branch {
    let mut head = Line::new()
        .strong(format!("pod/{}", pod.pod))
        .faint(format!(" -n {}", pod.namespace))
        .plain(format!("  {}", pod.phase));
    if !pod.node.is_empty() {
        head = head.plain(format!(" on node/{}", pod.node));
    }
    let mut tree = Branch::from(head);
    let says_more = pod.candidates.as_ref().is_some_and(|it| it.tolerated == 0);
    match &pod.cause {
        // The scheduler's one sentence about the nodes repeats what follows for each node.
        Some(_) if says_more && !page.wide => {}
        Some(cause) => tree.push(of_cause(cause, page)),
        None => {
            let line = Line::mark(true);
            tree.push(line.plain("no problems found"));
        }
    }
    let Some(candidates) = &pod.candidates else {
        return tree;
    };
    let mut nodes = Branch::from(match (candidates.nodes, candidates.matching) {
        (0, _) => "there are no nodes".to_owned(),
        (all, 0) => format!(
            "none of {} matches its node selector and affinity",
            counted(all, "node")
        ),
        (all, matching) => format!(
            "{matching} of {} {} its node selector and affinity; it tolerates the taints of {}",
            counted(all, "node"),
            if matching == 1 { "matches" } else { "match" },
            match candidates.tolerated {
                0 => "none of them".to_owned(),
                all if all == matching => "all of them".to_owned(),
                some => format!("{some} of them"),
            },
        ),
    });
    for held in &candidates.held {
        let line = Line::new()
            .bad(counted(held.nodes, "node"))
            .plain(" held by ")
            .strong(format!("rule/{}", held.example.rule))
            .plain(format!(
                ", such as node/{}: {}",
                held.example.node, held.example.why
            ));
        nodes.push(line);
    }
    for (taint, count) in &candidates.repelled {
        let line = Line::new().poor(counted(*count, "node")).plain(format!(
            " with taint {taint}, which it does not tolerate and no rule holds"
        ));
        nodes.push(line);
    }
    tree.push(nodes);
    tree
}

fn of_rule(rule: &RuleOnNode, page: &Page) -> Branch {
    let line = Line::new()
        .strong(format!("rule/{}", rule.rule))
        .plain("  ");
    let line = rule.effect(line, page);
    let line = line.faint(format!("  {} {}", rule.taint, rule.mode));
    let is_good = matches!(rule.state, State::NotHeld | State::WouldNotHold);
    let remarks = rule.remarks.iter();
    let remarks = remarks.map(|remark| Line::new().faint(remark));
    let conditions = rule.conditions.iter();
    let conditions = conditions
        .filter(|it| page.wide || !is_good || !it.met || it.is_vacuous)
        .map(|condition| of_condition(condition, page));
    Branch::from(line).over(remarks).over(conditions)
}

fn of_condition(condition: &ConditionOnNode, page: &Page) -> Branch {
    let ConditionOnNode { kind, message, .. } = condition;
    let line = Line::mark(condition.met);
    let mut line = if message.starts_with(&**kind) {
        line.plain(message)
    } else {
        let line = line.plain(format!("{kind} is {}", condition.status.as_str()));
        match message.as_str() {
            "" => line,
            message => line.plain(format!(": {message}")),
        }
    };
    if let Some(since) = condition.since {
        line = line.faint(format!(" ({})", page.age(since)));
    }
    let unknown = condition.unknown.iter().map(|gap| Line::new().poor(gap));
    Branch::from(line)
        .over(unknown)
        .over(condition.causes.iter().map(|cause| of_cause(cause, page)))
}

fn of_cause(cause: &Cause, page: &Page) -> Branch {
    let mut line = Line::new().strong(&cause.object);
    if !cause.namespace.is_empty() && !cause.object.starts_with("event/") {
        line = line.faint(format!(" -n {}", cause.namespace));
    }
    line = line.plain(format!("  {}", cause.message));
    if let Some(since) = cause.since {
        line = line.faint(format!(" ({})", page.age(since)));
    }
    Branch::from(line).over(cause.causes.iter().map(|cause| of_cause(cause, page)))
}

fn of_obstacle(obstacle: &Obstacle) -> Branch {
    let line = Line::new().poor("also: ");
    let line = if obstacle.taint.is_empty() {
        line.plain(&obstacle.message)
    } else {
        line.plain(format!("taint {}: {}", obstacle.taint, obstacle.message))
    };
    Branch::from(line)
}

/// The tree, the notes and the next step.
fn told(tree: Branch, next: Option<&NextStep>, about: &[String]) -> Vec<Block> {
    let next = next.map(|next| Line::from(next).into());
    let tree = [tree.into()].into_iter();
    tree.chain(notes(about)).chain(next).collect()
}
