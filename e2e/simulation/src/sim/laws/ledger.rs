//! What all laws look up, read once from the cluster's log: past rules, the pods of each node, and the facts of a node at any
//! revision.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;

use super::rule::Rule;
use super::truth::{Answer, Facts, time};
use super::{incidents, steps};
use crate::sim::actors::ask::{items, text};
use crate::sim::cluster::{Change, Cluster, State, Who};
use crate::sim::fault::{Fault, Incident};
use crate::sim::law::Moment;
use crate::sim::process::LONGEST_FLIGHT;
use crate::sim::time::{Time, s};
use crate::{Key, Kind};

/// The longest delay of an observation.
const LATE: Time = s(30);

#[derive(Debug, Clone)]
struct Version {
    revision: u64,
    /// The rule; `None` where it did not exist or was invalid.
    rule: Option<Arc<Rule>>,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// How many changes have been read.
    read: usize,
    rules: BTreeMap<Key, Vec<Version>>,
    /// The pods ever bound to a node of this name.
    pods: HashMap<String, Vec<Key>>,
    /// Every `DaemonSet` that ever existed.
    daemon_sets: Vec<Key>,
    renewals: Vec<Renewal>,
}

/// A node's condition was reported anew, and was as it was before.
#[derive(Debug)]
struct Renewal {
    at: Time,
    kind: String,
    node: Arc<Value>,
}

/// The revision of each kind of object in an observation of a node: each kind has its own watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glances {
    pub node: u64,
    pub csi_node: u64,
    pub pods: u64,
    pub daemon_sets: u64,
    pub rules: u64,
}

impl Glances {
    /// All kinds at this revision.
    pub(super) fn all(revision: u64) -> Self {
        Self {
            node: revision,
            csi_node: revision,
            pods: revision,
            daemon_sets: revision,
            rules: revision,
        }
    }
}

impl Ledger {
    /// Reads the changes since the last call.
    pub(crate) fn read(&mut self, cluster: &Cluster) {
        let changes = cluster.changes();
        for change in &changes[self.read..] {
            match change.key.kind {
                Kind::NodeReadinessRule => self.read_rule(change),
                Kind::Pod | Kind::ResourceSlice => self.read_of_node(change),
                Kind::Node => self.read_renewals(change),
                Kind::DaemonSet
                    if change.before.is_none() && !self.daemon_sets.contains(&change.key) =>
                {
                    self.daemon_sets.push(change.key.clone());
                }
                _ => {}
            }
        }
        self.read = changes.len();
    }

    fn read_rule(&mut self, change: &Change) {
        let bears = |object: &Value| {
            let metadata = &object["metadata"];
            let fields = ["uid", "deletionTimestamp", "finalizers"];
            (
                fields.map(|field| metadata.get(field).cloned()),
                object["spec"].clone(),
            )
        };
        if let (Some(before), Some(after)) = (&change.before, &change.after)
            && bears(before) == bears(after)
        {
            return;
        }
        let rule = change.after.as_ref().and_then(|rule| Rule::read(rule));
        self.rules
            .entry(change.key.clone())
            .or_default()
            .push(Version {
                revision: change.revision,
                rule: rule.map(Arc::new),
            });
    }

    fn read_renewals(&mut self, change: &Change) {
        let (Some(before), Some(after)) = (&change.before, &change.after) else {
            return;
        };
        let known = items(&before["status"]["conditions"]);
        for condition in items(&after["status"]["conditions"]) {
            let is = |field: &str, other: &Value| condition[field] == other[field];
            let is_renewed = |it: &Value| {
                is("type", it)
                    && is("status", it)
                    && is("lastTransitionTime", it)
                    && time(&it["lastHeartbeatTime"]) < time(&condition["lastHeartbeatTime"])
            };
            if known.iter().any(is_renewed) {
                self.renewals.push(Renewal {
                    at: change.at,
                    kind: text(&condition["type"]).to_owned(),
                    node: after.clone(),
                });
            }
        }
    }

    fn read_of_node(&mut self, change: &Change) {
        let node = |object: &Option<Arc<Value>>| {
            Some(object.as_ref()?["spec"]["nodeName"].as_str()?.to_owned())
        };
        if let Some(node) = node(&change.after) {
            let pods = self.pods.entry(node).or_default();
            if !pods.contains(&change.key) {
                pods.push(change.key.clone());
            }
        }
    }
}

impl<'a> Moment<'a> {
    /// The valid rules at this revision.
    pub(super) fn rules(&self, revision: u64) -> Vec<Arc<Rule>> {
        let as_of = |versions: &Vec<Version>| {
            let end = versions.partition_point(|version| version.revision <= revision);
            versions[..end]
                .last()
                .and_then(|version| version.rule.clone())
        };
        self.ledger.rules.values().filter_map(as_of).collect()
    }

    /// Every version of every rule that ever existed.
    pub(super) fn all_rules(&self) -> impl Iterator<Item = &'a Arc<Rule>> + use<'a> {
        let versions = self.ledger.rules.values().flatten();
        versions.filter_map(|version| version.rule.as_ref())
    }

    /// Every state of each `DaemonSet` that ever existed, by its key.
    pub(super) fn daemon_sets(&self) -> impl Iterator<Item = &'a [State]> + use<'a> {
        let cluster = self.cluster;
        let keys = self.ledger.daemon_sets.iter();
        keys.map(move |key| cluster.history(key))
    }

    /// The revisions after `after` and up to `until` that changed something relevant to a node, by kind: the node, its
    /// `CSINode`, its pods, `DaemonSet`s, rules.
    pub(super) fn turns(&self, node: &str, after: u64, until: u64) -> [Vec<u64>; 5] {
        let of = |key: &Key| -> Vec<u64> {
            let states = self.cluster.history(key);
            let first = states.partition_point(|state| state.revision <= after);
            let states = states[first..].iter().map(|state| state.revision);
            states.take_while(|revision| *revision <= until).collect()
        };
        let of_all = |keys: &[Key]| keys.iter().flat_map(of).collect::<Vec<_>>();
        let rules = self.ledger.rules.values().flatten();
        let rules = rules.map(|version| version.revision);
        let mut turns = [
            of(&Key::cluster(Kind::Node, node)),
            of(&Key::cluster(Kind::CsiNode, node)),
            of_all(self.ledger.pods.get(node).map_or(&[], Vec::as_slice)),
            of_all(&self.ledger.daemon_sets),
            rules.filter(|it| *it > after && *it <= until).collect(),
        ];
        for turns in &mut turns {
            turns.sort_unstable();
        }
        turns
    }

    /// The same of all kinds, in order, and when each came.
    pub(super) fn all_turns(&self, node: &str, after: u64, until: u64) -> Vec<(u64, Time)> {
        let mut turns = self.turns(node, after, until).concat();
        turns.sort_unstable();
        let changes = self.cluster.changes();
        let turns = turns.into_iter().map(|revision| {
            let index = changes.partition_point(|change| change.revision < revision);
            (revision, changes[index].at)
        });
        turns.collect()
    }

    /// Evaluates `ask` on the facts of a node at these revisions; `None` where the node did not exist.
    pub(super) fn ask<T>(
        &self,
        node: &str,
        glances: Glances,
        at: Time,
        ask: impl FnOnce(&Facts<'_>) -> T,
    ) -> Option<T> {
        let states = self.cluster.history(&Key::cluster(Kind::Node, node));
        let states = up_to(states, glances.node);
        let found = states.last()?.object.as_ref()?;
        let csi_nodes = self.cluster.history(&Key::cluster(Kind::CsiNode, node));
        let csi_node = up_to(csi_nodes, glances.csi_node).last();
        let keys = self.ledger.pods.get(node).map_or(&[][..], Vec::as_slice);
        let of_node = |kind| -> Vec<_> {
            let keys = keys.iter().filter(|key| key.kind == kind);
            let objects = keys.filter_map(|key| object(self, key, glances.pods));
            let objects = objects.filter(|it| it["spec"]["nodeName"] == *node);
            objects.cloned().collect()
        };
        let (pods, slices) = (of_node(Kind::Pod), of_node(Kind::ResourceSlice));
        let daemon_sets = self.ledger.daemon_sets.iter();
        let daemon_sets = daemon_sets.filter_map(|key| object(self, key, glances.daemon_sets));
        let daemon_sets: Vec<_> = daemon_sets.cloned().collect();
        let are_renewed =
            |rule: &Rule, kind: &str| self.are_renewed(rule, kind, (glances.node, at));
        Some(ask(&Facts {
            at,
            node: found,
            states,
            csi_node: csi_node.and_then(|it| it.object.as_deref()),
            csi_node_since: csi_node.map_or(Time::ZERO, |it| it.at),
            pods: &pods,
            slices: &slices,
            daemon_sets: &daemon_sets,
            recalled: None,
            rules: &self.rules(glances.rules),
            suspends_all: suspends_all(self, at),
            classes: &self.settings.classes,
            sees_since: sees_since(self),
            steps: SignedDuration::try_from(steps(self)).unwrap_or(SignedDuration::MAX),
            ahead: ahead(self),
            begun: begun(self),
            are_renewed: &are_renewed,
        }))
    }

    /// Whether reports of this type are renewed on a node of the rule: one was seen to be, or is later than its transition. Perhaps
    /// if that was seen lately, by an earlier process, or elsewhere.
    fn are_renewed(&self, rule: &Rule, kind: &str, (revision, at): (u64, Time)) -> Answer {
        let seen = at.saturating_sub(LATE);
        let (now, then) = (self.cluster.as_of(revision), self.cluster.at(seen));
        let begun = begun(self);
        let renewals = self.ledger.renewals.iter();
        let renewals = renewals.filter(|it| it.at <= at && it.kind == kind);
        let renewals = renewals.map(|it| {
            let is_sure = it.at <= seen && it.at >= begun && rule.selects(&it.node);
            if is_sure { Answer::Yes } else { Answer::Maybe }
        });
        let showing = now.objects(Kind::Node);
        let showing = showing.filter(|(_, node)| shows_renewal(node, kind));
        let showing = showing.map(|(key, node)| {
            let did = then.get(key).is_some_and(|it| shows_renewal(it, kind));
            if did && rule.selects(node) {
                Answer::Yes
            } else {
                Answer::Maybe
            }
        });
        renewals.chain(showing).max().unwrap_or(Answer::No)
    }

    /// Whether something held for a node in this time: at one revision, or with each kind of object at a revision of its own,
    /// since each has its own watch. With too many combinations it is assumed to have held.
    pub(super) fn was_ever(
        &self,
        node: &str,
        (from, to): (Time, Time),
        before: u64,
        mut is_so: impl FnMut(&Facts<'_>) -> bool,
    ) -> bool {
        const MOST: usize = 5000;
        let first = self.cluster.at(from).revision();
        let until = before.saturating_sub(1).max(first);
        let turns = self.turns(node, first, until);
        let mut all: Vec<u64> = turns.iter().flatten().copied().chain([first]).collect();
        all.sort_unstable();
        let mut asked = |glances| self.ask(node, glances, to, &mut is_so).unwrap_or(false);
        if all
            .iter()
            .rev()
            .any(|revision| asked(Glances::all(*revision)))
        {
            return true;
        }
        if turns.iter().map(|turns| turns.len() + 1).product::<usize>() > MOST {
            return true;
        }
        let with_first = |turns: &[u64]| {
            std::iter::once(first)
                .chain(turns.iter().copied())
                .collect::<Vec<_>>()
        };
        let [nodes, csi_nodes, pods, daemon_sets, rules] = turns.map(|turns| with_first(&turns));
        for node in &nodes {
            for csi_node in &csi_nodes {
                for pods in &pods {
                    for daemon_sets in &daemon_sets {
                        for rules in &rules {
                            let glances = Glances {
                                node: *node,
                                csi_node: *csi_node,
                                pods: *pods,
                                daemon_sets: *daemon_sets,
                                rules: *rules,
                            };
                            if asked(glances) {
                                return true;
                            }
                        }
                    }
                }
            }
        }
        false
    }
}

/// Whether all rules are suspended, and have been for longer than a write is under way.
fn suspends_all(moment: &Moment<'_>, at: Time) -> bool {
    let scenario = moment.scenario;
    scenario.suspends_all(at) && scenario.suspends_all(at.saturating_sub(LONGEST_FLIGHT))
}

fn object<'m>(moment: &Moment<'m>, key: &Key, revision: u64) -> Option<&'m Arc<Value>> {
    up_to(moment.cluster.history(key), revision)
        .last()?
        .object
        .as_ref()
}

/// The states up to this revision.
fn up_to(states: &[State], revision: u64) -> &[State] {
    &states[..states.partition_point(|state| state.revision <= revision)]
}

/// Since when a leading instance has synced. Known only after the last fault.
fn sees_since(moment: &Moment<'_>) -> Option<Time> {
    let calm_since = moment.calm_since;
    if moment.cluster.now() < calm_since {
        return None;
    }
    let leaders = moment.instances.iter().filter_map(|it| {
        let led = it.leads_since?;
        Some(led.max(it.synced_since?).max(it.runs_since?))
    });
    leaders.max().map(|since| since.max(calm_since))
}

/// How far the instance's wall clock is ahead by now.
pub(super) fn ahead(moment: &Moment<'_>) -> SignedDuration {
    let now = moment.cluster.now();
    let steps = incidents(moment).filter_map(|(what, at, _)| match what {
        Incident::ClockStep(_, by) if at <= now => Some(by),
        _ => None,
    });
    SignedDuration::from_secs(steps.sum())
}

/// When a process last started to measure times: after a start, an interruption or a clock step.
fn begun(moment: &Moment<'_>) -> Time {
    let now = moment.cluster.now();
    let begins_anew = |fault: &&Fault| {
        fault.timed().is_some_and(|(what, ..)| {
            !matches!(
                what,
                Incident::Stop(_)
                    | Incident::TwoLeaders
                    | Incident::LeaseDeleted
                    | Incident::Expired(_)
                    | Incident::SilentDeath(_)
            )
        })
    };
    let anew = moment.faults.iter().filter(begins_anew);
    let anew = anew.filter_map(Fault::ends);
    let anew = anew.filter(|at| *at <= now);
    // A process cannot time changes that its first list already contains.
    let shown = |since: Time| since + s(5);
    let instances = moment.instances.iter();
    let began = instances.filter_map(|it| it.synced_since.or(it.runs_since).map(shown));
    anew.chain(began).max().unwrap_or_default()
}

/// Whether a condition of this type is later than its transition.
fn shows_renewal(node: &Value, kind: &str) -> bool {
    let mut conditions = items(&node["status"]["conditions"]).iter();
    conditions.any(|it| {
        let since = time(&it["lastTransitionTime"]);
        let beat = time(&it["lastHeartbeatTime"]);
        it["type"] == *kind
            && since.zip(beat).is_some_and(|(since, beat)| {
                beat.duration_since(since) > SignedDuration::from_secs(1)
            })
    })
}

pub(super) fn is_ours(who: Who) -> bool {
    matches!(who, Who::Nodegate(_))
}
