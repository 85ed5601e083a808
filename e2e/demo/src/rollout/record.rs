//! The observed history of one node: when it was gated, by which rules, and what it waited for.

use k8s_openapi::api::core::v1::Node;

use super::cast::GATES;
use crate::stage::{Moment, Period, Revision, condition, seconds};
use nodegate_testbed::sights;

/// A period in which a node had a rule's taint.
#[derive(Debug, Clone)]
pub struct Gating {
    pub period: Period,
    /// What the node waited for last, in Nodegate's words.
    pub waited_for: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct NodeRecord {
    /// Its Ready condition.
    pub ready: bool,
    /// The rules whose taint it has.
    pub held_by: Vec<&'static str>,
    /// What it waits for, in Nodegate's words: the message of the condition of the first of those rules.
    pub waits_for: Option<String>,
    /// The periods in which it was held; the last one may still last.
    pub gatings: Vec<Gating>,
    pub cni_pod: Option<String>,
    /// When the CNI pod was first Ready.
    pub cni_ready: Option<Revision>,
    /// Whether the pod of its CSI driver has been Ready.
    pub csi_ready: bool,
    /// When its CSI driver was registered: the revision, and the time of the request.
    pub registered: Option<Moment>,
}

impl NodeRecord {
    /// Whether it has a rule's taint.
    pub fn is_held(&self) -> bool {
        !self.held_by.is_empty()
    }

    /// Whether it had a rule's taint at this revision.
    pub fn was_held_at(&self, revision: Revision) -> bool {
        let mut gatings = self.gatings.iter();
        gatings.any(|gating| gating.period.includes(revision))
    }

    /// Records the node's current state; returns notable changes.
    pub fn see(&mut self, node: &Node, moment: Moment) -> Vec<String> {
        let mut news = Vec::new();
        let ready = condition(node, "Ready").is_some_and(|it| it.status == "True");
        if self.ready != ready {
            self.ready = ready;
            let not = if ready { "" } else { "not " };
            news.push(format!("is {not}Ready"));
        }
        self.see_gates(node, moment, &mut news);
        self.see_wait(node, &mut news);
        news
    }

    fn see_gates(&mut self, node: &Node, moment: Moment, news: &mut Vec<String>) {
        let held_by = GATES
            .iter()
            .filter(|gate| sights::count_taints(node, gate.taint) > 0)
            .map(|gate| gate.rule)
            .collect();
        let was = std::mem::replace(&mut self.held_by, held_by);
        let added = self.held_by.iter().filter(|rule| !was.contains(rule));
        news.extend(added.map(|rule| format!("gated by rule {rule}")));
        if was.is_empty() && self.is_held() {
            let (gated, released) = (moment, None);
            self.gatings.push(Gating {
                period: Period { gated, released },
                waited_for: None,
            });
        } else if self.is_held() {
            let removed = was.iter().filter(|rule| !self.held_by.contains(rule));
            news.extend(removed.map(|rule| format!("taint of rule {rule} removed")));
        } else if let Some(gating) = self.gatings.last_mut().filter(|_| !was.is_empty()) {
            gating.period.released = Some(moment);
            let lasted = seconds(gating.period.lasted(moment.at));
            news.push(format!("RELEASED after {lasted}"));
        }
    }

    fn see_wait(&mut self, node: &Node, news: &mut Vec<String>) {
        let mut gates = GATES.iter();
        let gate = gates.find(|gate| self.held_by.contains(&gate.rule));
        let waits_for = gate
            .and_then(|gate| condition(node, gate.condition))
            .filter(|condition| condition.status != "True")
            .map(|condition| condition.message.clone().unwrap_or_default());
        if waits_for == self.waits_for {
            return;
        }
        self.waits_for.clone_from(&waits_for);
        let Some(what) = waits_for else { return };
        news.push(format!("waits: {what}"));
        if let Some(gating) = self.gatings.last_mut() {
            gating.waited_for = Some(what);
        }
    }
}
