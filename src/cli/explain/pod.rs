//! Explains a pod: why it is not Ready; or, if it is unbound, which matching nodes are held, and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::finding::{Cause, of_unready};
use super::told;
use crate::page::{Block, Branch, Line, NextStep, Page, Render};
use crate::rows::{RuleOnNode, rows};
use crate::snapshot::{PendingPod, Snapshot, is_ready, node_of, phase};
use nodegate_core::object::{ObjectKey, Taint};
use nodegate_core::text::counted;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PodExplanation {
    pub namespace: String,
    pub pod: String,
    pub phase: String,
    /// The node it is bound to; empty if unbound.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Why it is not Ready; `None` if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Candidates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The nodes that match a pod's node selector and affinity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Candidates {
    pub nodes: usize,
    pub matching: usize,
    /// How many of the matching nodes have no taint that the pod does not tolerate.
    pub tolerated: usize,
    /// Matching nodes that rules hold, by rule.
    pub held: Vec<HeldNodes>,
    /// Matching nodes with other taints that the pod does not tolerate, by taint.
    pub repelled: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct HeldNodes {
    pub nodes: usize,
    /// The one that has been held longest.
    pub example: RuleOnNode,
}

pub(crate) fn explain_pod(snapshot: &Snapshot, pod: &PendingPod) -> PodExplanation {
    let object = &pod.unready.pod;
    let key = ObjectKey::of(&object.metadata);
    let is_bound = !node_of(object).is_empty();
    let has_ended = ["Succeeded", "Failed"].contains(&phase(object));
    let candidates = (!is_bound && !has_ended).then(|| candidates(snapshot, pod));
    let cause = (!is_ready(object) && !has_ended).then(|| of_unready(&pod.unready));
    let nowhere = candidates.as_ref().filter(|it| it.tolerated == 0);
    let next = match nowhere.and_then(|it| it.held.first()) {
        Some(held) => Some(NextStep::new(
            "see why the first of these nodes is held",
            format!("kubectl nodegate explain node/{}", held.example.node),
        )),
        None => cause.as_ref().and_then(|it| it.next.clone()),
    };
    PodExplanation {
        namespace: key.namespace.to_string(),
        pod: key.name.to_string(),
        phase: phase(object).to_owned(),
        node: node_of(object).to_owned(),
        cause,
        candidates,
        next,
        notes: snapshot.notes(),
    }
}

fn candidates(snapshot: &Snapshot, pod: &PendingPod) -> Candidates {
    let all = rows(snapshot);
    let mut found = Candidates::default();
    let mut held: BTreeMap<&Arc<str>, Vec<&RuleOnNode>> = BTreeMap::new();
    for node in snapshot.view.nodes() {
        found.nodes += 1;
        if node.deleting || !pod.asks_for(node) {
            continue;
        }
        found.matching += 1;
        let taints: Vec<&Taint> = pod.repelled_by(node).collect();
        found.tolerated += usize::from(taints.is_empty());
        let of_node = |it: &&RuleOnNode| it.node == node.name && it.tainted && it.state.is_unmet();
        for taint in taints {
            let taint = taint.to_string();
            let own = all.iter().filter(of_node).filter(|it| it.taint == taint);
            let own: Vec<&RuleOnNode> = own.collect();
            for it in &own {
                held.entry(&it.rule).or_default().push(it);
            }
            if own.is_empty() {
                *found.repelled.entry(taint).or_default() += 1;
            }
        }
    }
    let held = held.into_values().filter_map(|nodes| {
        let example = nodes.iter().min_by_key(|it| (it.since, &it.node))?;
        let mut example = (*example).clone();
        example.remarks.extend(snapshot.kept_out(&example.rule));
        Some(HeldNodes {
            nodes: nodes.len(),
            example,
        })
    });
    found.held = held.collect();
    found.held.sort_by_key(|it| std::cmp::Reverse(it.nodes));
    found
}

impl Render for PodExplanation {
    const KIND: &'static str = "PodExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let head = Line::new().strong(format!("pod/{}", self.pod));
        let head = head.faint(format!(" -n {}", self.namespace));
        let mut head = head.plain(format!("  {}", self.phase));
        if !self.node.is_empty() {
            head = head.plain(format!(" on node/{}", self.node));
        }
        // The scheduler's one sentence about the nodes repeats what follows for each node.
        let says_more = self.candidates.as_ref().is_some_and(|it| it.tolerated == 0);
        let cause = self.cause.iter().filter(|_| page.wide || !says_more);
        let fine = || Line::mark(true).plain("no problems found");
        let tree = Branch::from(head)
            .over(cause.map(|cause| cause.branch(page)))
            .over(self.cause.is_none().then(fine))
            .over(self.candidates.as_ref().map(Candidates::branch));
        told(tree, self.next.as_ref(), &self.notes)
    }
}

impl Candidates {
    fn branch(&self) -> Branch {
        let tolerated = match self.tolerated {
            0 => "none of them".to_owned(),
            all if all == self.matching => "all of them".to_owned(),
            some => format!("{some} of them"),
        };
        let nodes = counted(self.nodes, "node");
        let head = match (self.nodes, self.matching) {
            (0, _) => "there are no nodes".to_owned(),
            (_, 0) => format!("none of {nodes} matches its node selector and affinity"),
            (_, matching) => {
                let verb = if matching == 1 { "matches" } else { "match" };
                format!(
                    "{matching} of {nodes} {verb} its node selector and affinity; it tolerates the taints of {tolerated}"
                )
            }
        };
        let held = self.held.iter().map(|HeldNodes { nodes, example }| {
            let line = Line::new().bad(counted(*nodes, "node")).plain(" held by ");
            let line = line.strong(format!("rule/{}", example.rule));
            let line = line.plain(format!(", such as node/{}: {}", example.node, example.why));
            Branch::from(line).over(example.remarks.iter().map(String::as_str))
        });
        let repelled = self.repelled.iter().map(|(taint, count)| {
            let why = format!(" with taint {taint}, which it does not tolerate and no rule holds");
            Line::new().poor(counted(*count, "node")).plain(why)
        });
        Branch::from(head).over(held).over(repelled)
    }
}
