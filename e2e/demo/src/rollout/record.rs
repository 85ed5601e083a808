//! The observed history of one node: when it was closed, by which rules, and what it waited for.

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use super::cast::{GATES, Gate};
use crate::stage::{Moment, Revision, seconds};

/// A period in which a node had a rule's taint.
#[derive(Debug, Clone)]
pub struct Gating {
    pub closed: Moment,
    pub opened: Option<Moment>,
    /// What the node waited for last, in Nodegate's words.
    pub waited_for: Option<String>,
}

impl Gating {
    /// Its length so far.
    #[must_use]
    pub fn lasted(&self, now: Duration) -> Duration {
        let end = self.opened.map_or(now, |opened| opened.at);
        end.saturating_sub(self.closed.at)
    }
}

#[derive(Debug, Clone, Default)]
pub struct NodeRecord {
    /// Its Ready condition.
    pub ready: bool,
    /// The rules whose taint it has.
    pub closed_by: Vec<&'static str>,
    /// What it waits for, in Nodegate's words: the message of the condition of the first of those rules.
    pub waits_for: Option<String>,
    /// The periods in which it was closed; the last one may still last.
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
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.closed_by.is_empty()
    }

    /// Whether it had a rule's taint at this revision.
    #[must_use]
    pub fn was_closed_at(&self, revision: Revision) -> bool {
        self.gatings.iter().any(|gating| {
            gating.closed.revision <= revision
                && gating
                    .opened
                    .is_none_or(|opened| opened.revision > revision)
        })
    }
}

/// A change of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    Joined,
    Ready(bool),
    /// It got a rule's taint.
    Closed(&'static str),
    /// It lost a rule's taint, but still has another one.
    Lifted(&'static str),
    /// It lost its last rule's taint, after this time.
    Opened(Duration),
    /// It now waits for something else.
    WaitsFor(String),
    Registered,
    Bound(String),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined => f.write_str("joins"),
            Self::Ready(true) => f.write_str("is Ready"),
            Self::Ready(false) => f.write_str("is not Ready"),
            Self::Closed(rule) => write!(f, "closed by rule {rule}"),
            Self::Lifted(rule) => write!(f, "taint of rule {rule} lifted"),
            Self::Opened(after) => write!(f, "OPEN after {}", seconds(*after)),
            Self::WaitsFor(what) => write!(f, "waits: {what}"),
            Self::Registered => f.write_str("kubelet registers the CSI driver"),
            Self::Bound(pod) => write!(f, "workload pod {pod} lands here"),
        }
    }
}

impl NodeRecord {
    /// Records the node's current state.
    pub fn see(&mut self, node: &Node, moment: Moment) -> Vec<News> {
        let mut news = Vec::new();
        let ready = condition(node, "Ready").is_some_and(|(status, _)| status == "True");
        if self.ready != ready {
            self.ready = ready;
            news.push(News::Ready(ready));
        }
        self.see_gates(node, moment, &mut news);
        self.see_wait(node, &mut news);
        news
    }

    fn see_gates(&mut self, node: &Node, moment: Moment, news: &mut Vec<News>) {
        let was: Vec<&str> = std::mem::take(&mut self.closed_by);
        let is_there = |gate: &&Gate| {
            let spec = node.spec.as_ref();
            let mut taints = spec
                .into_iter()
                .flat_map(|spec| spec.taints.iter().flatten());
            taints.any(|taint| taint.key == gate.taint)
        };
        self.closed_by = GATES
            .iter()
            .filter(is_there)
            .map(|gate| gate.rule)
            .collect();
        let added = self.closed_by.iter().filter(|rule| !was.contains(rule));
        news.extend(added.map(|rule| News::Closed(rule)));
        match (was.is_empty(), self.closed_by.is_empty()) {
            (true, false) => self.gatings.push(Gating {
                closed: moment,
                opened: None,
                waited_for: None,
            }),
            (false, true) => {
                if let Some(gating) = self.gatings.last_mut() {
                    gating.opened = Some(moment);
                    news.push(News::Opened(gating.lasted(moment.at)));
                }
            }
            (true, true) | (false, false) => {
                let lifted = GATES.iter().map(|gate| gate.rule);
                let lifted =
                    lifted.filter(|rule| was.contains(rule) && !self.closed_by.contains(rule));
                news.extend(lifted.map(News::Lifted));
            }
        }
    }

    fn see_wait(&mut self, node: &Node, news: &mut Vec<News>) {
        let gate = GATES
            .iter()
            .find(|gate| self.closed_by.contains(&gate.rule));
        let waits_for = gate
            .and_then(|gate| condition(node, gate.condition))
            .filter(|(status, _)| *status != "True")
            .map(|(_, message)| message.to_owned());
        if waits_for == self.waits_for {
            return;
        }
        self.waits_for.clone_from(&waits_for);
        let Some(what) = waits_for else { return };
        if let Some(gating) = self.gatings.last_mut() {
            gating.waited_for = Some(what.clone());
        }
        news.push(News::WaitsFor(what));
    }
}

/// The status and message of a condition.
fn condition<'a>(node: &'a Node, condition_type: &str) -> Option<(&'a str, &'a str)> {
    let status = node.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|condition| condition.type_ == condition_type)?;
    let message = condition.message.as_deref().unwrap_or_default();
    Some((&condition.status, message))
}
