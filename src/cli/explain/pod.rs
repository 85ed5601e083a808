//! Explains a pod: why it is not Ready; or, if it is unbound, which matching nodes are closed, and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::finding::{Cause, of_diagnosis};
use crate::cli::fleet::{OnNode, fleet};
use crate::cli::page::NextStep;
use crate::cli::snapshot::{Snapshot, Specimen};
use crate::object::Taint;

/// Why a pod is not running or not Ready.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
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
    /// The nodes that match an unbound pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Candidates>,
    /// What to do next, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The nodes that match a pod's node selector and affinity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Candidates {
    pub nodes: usize,
    pub asked_for: usize,
    pub open: usize,
    /// Matching nodes that rules keep closed, by rule.
    pub closed: Vec<ClosedNodes>,
    /// Matching nodes with other taints that the pod does not tolerate, by taint.
    pub repelled: BTreeMap<String, usize>,
}

/// Nodes that one rule keeps closed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClosedNodes {
    pub rule: Arc<str>,
    pub nodes: usize,
    /// The node among them that has been closed longest.
    pub example: Arc<str>,
    pub why: String,
}

pub(crate) fn explain_pod(snapshot: &Snapshot, pod: &Specimen) -> PodExplanation {
    let diagnosis = &pod.diagnosis;
    let is_bound = !diagnosis.node.is_empty();
    let has_ended = ["Succeeded", "Failed"].contains(&&*diagnosis.phase);
    let candidates = (!is_bound && !has_ended).then(|| candidates(snapshot, pod));
    let cause = (!diagnosis.ready.0 && !has_ended).then(|| of_diagnosis(diagnosis));
    let closed = candidates.as_ref().and_then(|it| it.closed.first());
    let is_open = candidates.as_ref().is_some_and(|it| it.open > 0);
    let next = match closed.filter(|_| !is_open) {
        Some(closed) => Some(NextStep::new(
            "see why the first of these nodes is closed",
            format!("kubectl nodegate explain node/{}", closed.example),
        )),
        None => cause.as_ref().and_then(|it| it.next.clone()),
    };
    PodExplanation {
        namespace: diagnosis.key.namespace.to_string(),
        pod: diagnosis.key.name.to_string(),
        phase: diagnosis.phase.clone(),
        node: diagnosis.node.clone(),
        cause,
        candidates,
        next,
        notes: snapshot.notes(),
    }
}

fn candidates(snapshot: &Snapshot, pod: &Specimen) -> Candidates {
    let all = fleet(snapshot);
    let mut found = Candidates::default();
    let mut closed: BTreeMap<&Arc<str>, Vec<&OnNode>> = BTreeMap::new();
    for node in snapshot.view.nodes() {
        found.nodes += 1;
        if node.deleting || !pod.asks_for(node) {
            continue;
        }
        found.asked_for += 1;
        let taints: Vec<&Taint> = pod.repelled_by(node).collect();
        if taints.is_empty() {
            found.open += 1;
            continue;
        }
        let holding = all
            .iter()
            .filter(|it| it.node == node.name && it.tainted && it.state.is_unmet());
        let own: Vec<&OnNode> = holding
            .filter(|it| taints.iter().any(|taint| is_of(taint, it, snapshot)))
            .collect();
        let others = taints
            .iter()
            .filter(|taint| !own.iter().any(|it| is_of(taint, it, snapshot)));
        for taint in others {
            let name = format!("{}:{}", taint.key, taint.effect);
            *found.repelled.entry(name).or_default() += 1;
        }
        for it in own {
            closed.entry(&it.rule).or_default().push(it);
        }
    }
    found.closed = closed
        .into_iter()
        .filter_map(|(rule, nodes)| {
            let example = nodes.iter().min_by_key(|it| (it.since, &it.node))?;
            Some(ClosedNodes {
                rule: rule.clone(),
                nodes: nodes.len(),
                example: example.node.clone(),
                why: example.why.clone(),
            })
        })
        .collect();
    found.closed.sort_by_key(|it| std::cmp::Reverse(it.nodes));
    found
}

/// Whether this taint is the rule's.
fn is_of(taint: &Taint, it: &OnNode, snapshot: &Snapshot) -> bool {
    let cached = snapshot.view.cached_rules().get(&it.rule);
    let effect = taint.effect.parse();
    cached.is_some_and(|it| effect.is_ok_and(|effect| it.rule.is_about(&taint.key, effect)))
}
