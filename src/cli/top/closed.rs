//! The closed nodes at one time with a summary of the fleet, and its changes as lines: time, node, change, rule, reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::cli::fleet::{Lack, OnNode, fleet};
use crate::cli::fleet::{State as Standing, clock};
use crate::cli::page::age;
use crate::cli::snapshot::{Gap, ResourceKind, Snapshot};
use crate::cli::status::{LeaderStatus, NodeCounts, RuleState};

/// A node closed within this time of its creation counts as closed since creation.
const AT_BIRTH: SignedDuration = SignedDuration::from_mins(1);

/// The fleet at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fleet {
    pub at: Timestamp,
    /// How many nodes are in which state.
    pub nodes: NodeCounts,
    /// How many held nodes have been closed since their creation.
    pub joining: usize,
    /// The leader; `None` without a Lease, and if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<LeaderStatus>,
    /// Why it is unknown whether a controller leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_unknown: Option<String>,
    pub suspended: Vec<Arc<str>>,
    /// The closed nodes, longest first.
    pub closed: Vec<Closed>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Closed {
    pub node: Arc<str>,
    pub state: Closure,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The rules that close it, the longest first.
    pub rules: Vec<Arc<str>>,
    /// The controller's message about the first of these rules.
    pub why: String,
    /// What it lacks, by rule.
    #[serde(skip)]
    pub lacks: BTreeMap<Arc<str>, WhyClosed>,
}

/// What a node lacks for a rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WhyClosed {
    pub since: Option<Timestamp>,
    pub what: Vec<Lack>,
    /// The controller's message.
    pub why: String,
}

/// The kind of closure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Closure {
    Joining,
    /// Held after having been open.
    Held,
    Closing,
    Opening,
}

impl Closure {
    /// The state as a word for people.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Held => "held",
            Self::Closing => "closing",
            Self::Opening => "opening",
        }
    }
}

impl Fleet {
    /// `problem`: why the snapshot is not current.
    pub(crate) fn of(snapshot: &Snapshot, problem: Option<String>) -> Self {
        let all = fleet(snapshot);
        let closed = closed(snapshot, &all);
        let joining = closed.iter().filter(|it| it.state == Closure::Joining);
        let rules = snapshot.view.cached_rules().values();
        let suspended = rules.filter(|it| RuleState::of(&it.rule) == RuleState::Suspended);
        let mut suspended: Vec<_> = suspended.map(|it| it.rule.name.clone()).collect();
        suspended.sort();
        Self {
            at: snapshot.at,
            nodes: NodeCounts::of(snapshot, &all),
            joining: joining.count(),
            leader: (snapshot.leader.as_ref()).map(|it| LeaderStatus::of(it, snapshot)),
            leader_unknown: snapshot.gap(ResourceKind::Leases).map(Gap::refusal),
            suspended,
            closed,
            notes: snapshot.notes(),
            problem,
        }
    }
}

/// The nodes that rules close, longest first.
fn closed(snapshot: &Snapshot, all: &[OnNode]) -> Vec<Closed> {
    let mut nodes: BTreeMap<&Arc<str>, Vec<&OnNode>> = BTreeMap::new();
    for it in all {
        if it.state.holds() || it.state == Standing::Opening {
            nodes.entry(&it.node).or_default().push(it);
        }
    }
    let mut closed: Vec<Closed> = nodes
        .into_iter()
        .filter_map(|(node, mut by)| {
            // Unknown times come last.
            by.sort_by_key(|it| (it.state == Standing::Opening, it.since.is_none(), it.since));
            let first = by.first()?;
            let created = snapshot.view.node(node).and_then(|it| it.node.created);
            let lacks = by.iter().map(|it| {
                let lacking = WhyClosed {
                    since: it.since,
                    what: it.lacks.clone(),
                    why: it.why.clone(),
                };
                (it.rule.clone(), lacking)
            });
            Some(Closed {
                node: node.clone(),
                state: match first.state {
                    Standing::Opening => Closure::Opening,
                    Standing::Closing => Closure::Closing,
                    _ if is_since_birth(first.since, created) => Closure::Joining,
                    _ => Closure::Held,
                },
                since: first.since,
                rules: by.iter().map(|it| it.rule.clone()).collect(),
                why: first.why.clone(),
                lacks: lacks.collect(),
            })
        })
        .collect();
    closed.sort_by(|a, b| {
        let key = |it: &Closed| (it.since.is_none(), it.since);
        key(a).cmp(&key(b)).then_with(|| a.node.cmp(&b.node))
    });
    closed
}

fn is_since_birth(since: Option<Timestamp>, created: Option<Timestamp>) -> bool {
    let both = since.zip(created);
    both.is_some_and(|(since, created)| since.duration_since(created) <= AT_BIRTH)
}

/// The reason for a held node that is about to open.
const MET: &str = "its conditions are met";

/// The changes reported so far: why each rule holds each node.
#[derive(Debug, Default)]
pub(crate) struct ToldChanges(BTreeMap<(Arc<str>, Arc<str>), WhyClosed>);

impl ToldChanges {
    /// A line for each change since the last call; the first call has one for each rule that holds a node. A node that stays
    /// held has another line if it now lacks something else. `is_there`: whether a node of this name exists.
    pub(crate) fn lines(&mut self, fleet: &Fleet, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let at = clock(fleet.at);
        let mut now = BTreeMap::new();
        for closed in &fleet.closed {
            for (rule, lacking) in &closed.lacks {
                now.insert((closed.node.clone(), rule.clone()), lacking.clone());
            }
        }
        let mut lines = Vec::new();
        for ((node, rule), before) in &self.0 {
            if !now.contains_key(&(node.clone(), rule.clone())) {
                let word = if is_there(node) { "opened" } else { "gone" };
                let after = before
                    .since
                    .map_or_else(String::new, |since| after(fleet.at, since));
                lines.push(format!("{at} {node} {word} {rule}{after}"));
            }
        }
        for ((node, rule), lacking) in &now {
            let told = self.0.get(&(node.clone(), rule.clone()));
            let is_met = lacking.what.is_empty();
            if told.is_none_or(|told| !is_met && told.what != lacking.what) {
                let why = if is_met { MET } else { &lacking.why };
                lines.push(format!("{at} {node} held {rule} {why}"));
            }
        }
        self.0 = now;
        lines
    }
}

fn after(now: Timestamp, since: Timestamp) -> String {
    format!(" after {}", age(now, since))
}
