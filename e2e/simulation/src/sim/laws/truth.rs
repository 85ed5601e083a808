//! The truth about a rule's conditions on a node: a plain reading of the documentation (`docs/conditions.md`), with none of the
//! product's code, so that it does not share the product's bugs.
//!
//! The answer is `Maybe` where the documentation lets time decide (a pod older than its node, evidence from before a reboot, a
//! reporter's silence) or where it depends on what a process has observed.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use nodegate_core::api::{ConditionRequirement, ConditionStatus, RegateOn};
use nodegate_core::condition::CriticalComponentClass as Class;
use serde_json::Value;

use super::placement::{
    can_start, expects, expects_by, has, is_deleted, is_live, is_meant_by_what_it_is, is_of_class,
    may_still_be_meant, owns,
};
use super::recall::Recalled;
use super::rule::{OUR_TAINTS, Rule, TaintId, boot_id, is_in_maintenance};
use crate::sim::actors::ask::{annotations, items, text};
use crate::sim::actors::daemon_sets::REVISION;
use crate::sim::actors::placement::{controller, matches_labels};
use crate::sim::cluster::State;
use crate::sim::time::{Time, s, wall};

/// The pod's Ready condition, if it is `True`.
fn ready(pod: &Value) -> Option<&Value> {
    let mut conditions = pod["status"]["conditions"].as_array()?.iter();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    ready.filter(|ready| ready["status"] == "True")
}

/// Conditions about every `DaemonSet`: their pods are Ready, or there.
const ALL: &str = "daemonsets.nodegate.dev/all";
const SCHEDULED: &str = "daemonsets.nodegate.dev/scheduled";

/// For how long after a pod became available a node may be gated by what it was before: as long as evidence counts, and a write
/// takes.
const DECIDED_EARLIER: SignedDuration = SignedDuration::from_secs(30);

pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;

/// The most slices of one driver that count on one node.
const MAX_SLICES: usize = 1000;
/// How long after a Node was created an older pod's readiness does not count; for a while longer it may not, as observations
/// are late and times are in whole seconds.
const OLD_PODS: SignedDuration = SignedDuration::from_secs(60);
const OLD_PODS_SEEN_LATE: SignedDuration = SignedDuration::from_secs(30);
/// How long after a reboot pods that have been Ready since before it do not count.
const BOOT_PODS: Duration = Duration::from_secs(60);
/// How long after a reboot other evidence counts only if renewed.
const NOT_RENEWED: Duration = Duration::from_secs(6 * 60);
/// How long a driver's own pod must have been Ready after a reboot for the driver to count: 5 s, less rounding to whole
/// seconds.
const REGISTRATION: SignedDuration = SignedDuration::from_secs(4);
/// The longest delay of an observation.
const LATE: Duration = Duration::from_secs(30);
/// The keys of taints that go by themselves, with `*` at either end for any text.
const PASSING: [&str; 22] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.cluster.x-k8s.io/*",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "startup-taint.cluster-autoscaler.kubernetes.io/*",
    "ignore-taint.cluster-autoscaler.kubernetes.io/*",
    "karpenter.sh/*",
    "medik8s.io/*",
    "aws-node-termination-handler/*",
    "*/agent-not-ready",
    "*/not-ready",
    "*/not-ready-taint",
    "node.gardener.cloud/critical-components-not-ready",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    No,
    /// It depends on a process's observations, or on rounding to seconds.
    Maybe,
    Yes,
}

impl Answer {
    pub(super) fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        answers.into_iter().min().unwrap_or(Self::Yes)
    }

    fn any(answers: impl IntoIterator<Item = Self>) -> Self {
        answers.into_iter().max().unwrap_or(Self::No)
    }
}

/// The state of a condition's reporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Its report counts.
    Good,
    /// Its report may count, or may be taken for `Unknown`.
    Doubtful,
    /// Its report counts as `Unknown`.
    Silent,
}

/// Everything relevant to one node at one moment.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub at: Time,
    pub node: &'a Value,
    /// Every state of the node up to this one.
    pub states: &'a [State],
    pub csi_node: Option<&'a Value>,
    /// Since when the `CSINode` is unchanged.
    pub csi_node_since: Time,
    pub pods: &'a [Arc<Value>],
    pub slices: &'a [Arc<Value>],
    pub daemon_sets: &'a [Arc<Value>],
    /// What counts as there beside what is; `None` for nothing.
    pub recalled: Option<&'a Recalled>,
    /// All valid rules.
    pub rules: &'a [Arc<Rule>],
    pub suspends_all: bool,
    pub classes: &'a [Class],
    /// Since when a leader has been synced, if relevant: its conclusions depend on how long it has watched.
    pub sees_since: Option<Time>,
    /// How far a wall clock may be from the cluster's.
    pub steps: SignedDuration,
    /// How far the stepped clock is now ahead of the cluster's; negative where it is behind.
    pub ahead: SignedDuration,
    /// When a process last started to watch, resumed, or had its clock set.
    pub begun: Time,
    /// Whether reports of this type are renewed on a node of the rule.
    pub are_renewed: &'a dyn Fn(&Rule, &str) -> Answer,
}

impl Facts<'_> {
    /// The answer where this counts as there as well.
    pub(super) fn recalling<T>(&self, recalled: &Recalled, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        ask(&Facts {
            daemon_sets: &recalled.daemon_sets,
            recalled: Some(recalled),
            ..*self
        })
    }

    pub(super) fn suspends(&self, rule: &Rule) -> bool {
        self.suspends_all || rule.ours.suspend || rule.is_pruned
    }

    pub(super) fn met(&self, rule: &Rule) -> Answer {
        let answers = rule.spec.conditions.iter().map(|it| self.is_met(rule, it));
        if rule.is_any_of() {
            Answer::any(answers)
        } else {
            Answer::all(answers)
        }
    }

    /// The answer as if these `DaemonSet`s, each by its namespace and name, and their pods were not there.
    fn without<T>(&self, left_out: &[String], ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        let is_left_out = |namespace: &Value, name: &Value| {
            let path = path(namespace, name);
            left_out.contains(&path)
        };
        let (gone, daemon_sets): (Vec<_>, Vec<_>) = self
            .daemon_sets
            .iter()
            .cloned()
            .partition(|it| is_left_out(&it["metadata"]["namespace"], &it["metadata"]["name"]));
        let is_gone = |pod: &Value| match controller(pod) {
            Some(owner) => {
                owner["kind"] == "DaemonSet"
                    && is_left_out(&pod["metadata"]["namespace"], &owner["name"])
            }
            None => gone.iter().any(|it| owns(it, pod)),
        };
        let pods = self.pods.iter().filter(|pod| !is_gone(pod)).cloned();
        ask(&Facts {
            daemon_sets: &daemon_sets,
            pods: &pods.collect::<Vec<_>>(),
            ..*self
        })
    }

    /// The `DaemonSet` that a rule waits for by its name, if it waits for nothing else.
    pub(super) fn named_by(&self, rule: &Rule) -> Option<&Value> {
        let [condition] = &rule.spec.conditions[..] else {
            return None;
        };
        let name = condition.type_.strip_prefix("daemonset.nodegate.dev/")?;
        let (namespace, name) = name.split_once('.')?;
        let mut daemon_sets = self.daemon_sets.iter().map(|it| &**it);
        daemon_sets.find(|it| is_named(it, namespace, name) && !is_deleted(it))
    }

    /// Whether a pod of the `DaemonSet` is Ready on the node.
    pub(super) fn runs(&self, daemon_set: &Value) -> bool {
        let mut pods = self.pods.iter();
        pods.any(|pod| is_live(pod) && owns(daemon_set, pod) && ready(pod).is_some())
    }

    /// Whether a pod is there of each revision with which the bootstrap under this rule was completed. True of a rule that does
    /// not go by them.
    pub(super) fn keeps_revisions(&self, rule: &Rule) -> bool {
        let recorded = rule.recorded_on(self.node);
        let recorded = recorded.filter(|_| rule.ours.regate_on.contains(&RegateOn::Revision));
        let revisions = recorded.and_then(|it| it["revisions"].as_object().cloned());
        let mut revisions = revisions.into_iter().flatten();
        revisions.all(|(daemon_set, revision)| {
            let is_it = |namespace: &Value, name: &Value| path(namespace, name) == daemon_set;
            self.pods.iter().any(|pod| {
                let metadata = &pod["metadata"];
                let is_its = match controller(pod) {
                    Some(owner) => is_it(&metadata["namespace"], &owner["name"]),
                    None => self.daemon_sets.iter().any(|it| {
                        is_it(&it["metadata"]["namespace"], &it["metadata"]["name"])
                            && owns(it, pod)
                    }),
                };
                is_its && is_live(pod) && metadata["labels"][REVISION] == revision
            })
        })
    }

    /// Whether the node has been in maintenance since its bootstrap under this rule was recorded, and is no longer, whatever the
    /// record says of it. False of a rule that does not go by that.
    pub(super) fn is_back_from_maintenance(&self, rule: &Rule) -> bool {
        if !rule.ours.regate_on.contains(&RegateOn::Maintenance) || is_in_maintenance(self.node) {
            return false;
        }
        let recorded = rule.recorded_on(self.node);
        let since = self.since(|node| rule.recorded_on(node));
        let mut states = self.states.iter().filter(|state| state.at >= since);
        recorded.is_some() && states.any(|it| it.object.as_deref().is_some_and(is_in_maintenance))
    }

    /// The state of each of the rule's conditions, in words.
    pub(super) fn why(&self, rule: &Rule) -> String {
        let conditions = rule.spec.conditions.iter().map(|it| {
            let met = match self.is_met(rule, it) {
                Answer::No => "not",
                Answer::Maybe => "perhaps",
                Answer::Yes => "",
            };
            format!("{} {met} {}", it.type_, it.required_status)
        });
        conditions.collect::<Vec<_>>().join(", ")
    }

    fn is_met(&self, rule: &Rule, asked: &ConditionRequirement) -> Answer {
        match &asked.nodegate {
            Some(ours) if !ours.except.is_empty() => {
                self.without(&ours.except, |facts| facts.counts_as_met(rule, asked))
            }
            _ => self.counts_as_met(rule, asked),
        }
    }

    /// Whether a condition that leaves out nothing more is met.
    fn counts_as_met(&self, rule: &Rule, asked: &ConditionRequirement) -> Answer {
        let is = |status: &str| Answer::of(status == asked.required_status.as_str());
        // Synthesized conditions are `True` or `False`.
        let synthesized = |answer: Answer| match (asked.required_status, answer) {
            (ConditionStatus::Unknown, _) | (ConditionStatus::False, Answer::Yes) => Answer::No,
            (ConditionStatus::True, answer) => answer,
            (ConditionStatus::False, Answer::No) => Answer::Yes,
            (ConditionStatus::False, Answer::Maybe) => Answer::Maybe,
        };
        // They are `Unknown` while a `DaemonSet` is left out by labels that may still come.
        let of_components = |answer: Answer, coming: Answer| match coming.min(answer) {
            Answer::No => synthesized(answer),
            Answer::Maybe => synthesized(answer).min(Answer::Maybe),
            Answer::Yes => is("Unknown"),
        };
        let kind = &*asked.type_;
        if let Some(driver) = kind.strip_prefix("csidriver.nodegate.dev/") {
            let registered = self.is_registered(driver, false);
            let registered = self.after_reboot(rule, driver, registered);
            return synthesized(registered.min(self.is_healthy(driver)));
        }
        if let Some(resource) = kind.strip_prefix("resource.nodegate.dev/") {
            let number = |value: &Value| value.as_str().and_then(|it| it.parse::<i64>().ok());
            let amount = number(&self.node["status"]["allocatable"][resource]).unwrap_or(0);
            let ours = asked.nodegate.clone().unwrap_or_default();
            let minimum = match &ours.minimum_from_label {
                Some(label) => self.label(label).and_then(number),
                None => Some(ours.minimum.unwrap_or(1)),
            };
            return match minimum {
                Some(minimum) => synthesized(Answer::of(amount >= minimum)),
                None => Answer::No,
            };
        }
        if let Some(label) = kind.strip_prefix("label.nodegate.dev/") {
            let values = asked.nodegate.clone().unwrap_or_default().values;
            let value = self.node["metadata"]["labels"][label].as_str();
            let counts = |value: &str| values.is_empty() || values.iter().any(|it| it == value);
            return synthesized(Answer::of(value.is_some_and(counts)));
        }
        if let Some(name) = kind.strip_prefix("daemonset.nodegate.dev/") {
            return match name.split_once('.') {
                Some((namespace, name)) => {
                    let coming = self.is_coming(|it| is_named(it, namespace, name), |_| false);
                    of_components(self.is_daemon_set_ready(rule, namespace, name), coming)
                }
                None => is(asked.default_status.unwrap_or_default().as_str()),
            };
        }
        if [ALL, SCHEDULED].contains(&kind) {
            let coming = self.is_coming(counts_for_all, |it| [ALL, SCHEDULED].contains(&it));
            return of_components(self.are_all_there(rule, kind == ALL), coming);
        }
        if let Some(check) = kind.strip_prefix("check.nodegate.dev/") {
            let (namespace, name) = check.split_once('.').unwrap_or_default();
            return synthesized(self.has_passed(rule, namespace, name));
        }
        if let Some(driver) = kind.strip_prefix("resourceslice.nodegate.dev/") {
            return synthesized(self.are_published(driver));
        }
        for class in self.classes {
            let Some(question) = kind.strip_prefix(&*class.condition_prefix) else {
                continue;
            };
            let answer = match question {
                "CriticalDaemonSetsScheduled" => self.are_scheduled(class),
                "CriticalPodsReady" => self.are_ready(rule, class),
                "CSIDriversRegistered" => return synthesized(self.are_registered(rule, class)),
                "CriticalComponentsReady" => self
                    .are_ready(rule, class)
                    .min(self.are_registered(rule, class)),
                _ => return is(asked.default_status.unwrap_or_default().as_str()),
            };
            let prefix = &*class.condition_prefix;
            let coming = self.is_coming(|it| is_of_class(class, it), |it| it.starts_with(prefix));
            return of_components(answer, coming);
        }
        let mut conditions = items(&self.node["status"]["conditions"]).iter();
        match conditions.find(|condition| condition["type"] == kind) {
            None => is(asked.default_status.unwrap_or_default().as_str()),
            Some(condition) => {
                let reason = text(&condition["reason"]);
                let reasons = asked.nodegate.iter().flat_map(|ours| &ours.reasons);
                let reasons: Vec<&String> = reasons.collect();
                let is_accepted = reasons.is_empty() || reasons.iter().any(|it| *it == reason);
                let status = text(&condition["status"]);
                let said = is(if is_accepted { status } else { "Unknown" });
                match self.word(rule, kind) {
                    Word::Good => said,
                    Word::Silent => is("Unknown"),
                    Word::Doubtful if said == is("Unknown") => said,
                    Word::Doubtful => Answer::Maybe,
                }
            }
        }
    }

    /// A label of the node, as it is or else as it is recalled.
    fn label(&self, key: &str) -> Option<&Value> {
        let mut recalled = self.recalled.into_iter().flat_map(|it| &it.labels);
        let now = self.node["metadata"]["labels"].get(key);
        now.or_else(|| recalled.find_map(|labels| labels.get(key)))
    }

    /// Whether labels may still come by which one of these `DaemonSet`s is meant for the node, and can start under the rules with
    /// conditions of these types.
    fn is_coming(
        &self,
        counts: impl Fn(&Value) -> bool,
        asks: impl Fn(&str) -> bool + Copy,
    ) -> Answer {
        let daemon_sets = self.daemon_sets.iter().filter(|it| counts(it));
        Answer::any(
            daemon_sets.map(|it| may_still_be_meant(self, it).min(can_start(self, it, asks))),
        )
    }

    /// Whether a `DaemonSet` that a rule names has a Ready pod on the node; or has no pod there, and is not meant for it by what the
    /// node is.
    fn is_daemon_set_ready(&self, rule: &Rule, namespace: &str, name: &str) -> Answer {
        let mut there = self.daemon_sets.iter();
        let is_it = |it: &&Arc<Value>| is_named(it, namespace, name) && !is_deleted(it);
        let Some(daemon_set) = there.find(is_it) else {
            return Answer::No;
        };
        let own = self.pods.iter().filter(|pod| {
            is_live(pod)
                && owns(daemon_set, pod)
                && matches_labels(&daemon_set["spec"]["selector"], &pod["metadata"]["labels"])
        });
        let own = own.map(|pod| self.is_available(rule, daemon_set, pod));
        let own: Vec<_> = own.collect();
        if own.is_empty() && !is_meant_by_what_it_is(self, daemon_set) {
            return Answer::Yes;
        }
        Answer::any(own)
    }

    /// Whether every `DaemonSet` that matches the node has a pod there, which has to be Ready where it is asked for `as_ready`; less
    /// those that are to be ignored.
    fn are_all_there(&self, rule: &Rule, as_ready: bool) -> Answer {
        let daemon_sets = self.daemon_sets.iter().filter(|it| counts_for_all(it));
        Answer::all(daemon_sets.map(|daemon_set| {
            let own = self.pods.iter();
            let own = own.filter(|pod| is_live(pod) && owns(daemon_set, pod));
            let is_there = Answer::any(own.map(|pod| {
                if as_ready {
                    self.is_available(rule, daemon_set, pod)
                } else {
                    Answer::Yes
                }
            }));
            match expects_by(self, daemon_set, |it| [ALL, SCHEDULED].contains(&it)) {
                Answer::Yes => is_there,
                Answer::Maybe => is_there.max(Answer::Maybe),
                Answer::No => Answer::Yes,
            }
        }))
    }

    /// Whether the newest pod of the check has succeeded, among those that are not older than the node. Under a rule that gates
    /// rebooted nodes, when a process learned of the boot decides which count.
    fn has_passed(&self, rule: &Rule, namespace: &str, name: &str) -> Answer {
        let created = |object: &Value| time(&object["metadata"]["creationTimestamp"]);
        let runs = self.pods.iter().filter(|pod| {
            let metadata = &pod["metadata"];
            metadata["namespace"] == *namespace
                && metadata["labels"]["nodegate.dev/check"] == *name
                && created(pod) >= created(self.node)
        });
        let newest = runs.max_by_key(|pod| (created(pod), pod["metadata"]["name"].to_string()));
        let answer = Answer::of(newest.is_some_and(|pod| pod["status"]["phase"] == "Succeeded"));
        match self.relevant_boot(rule) {
            Some(_) => answer.min(Answer::Maybe),
            None => answer,
        }
    }

    /// Whether each pool of the driver is complete in its newest generation, with a device, and with none that is tainted; and
    /// there are not too many slices.
    fn are_published(&self, driver: &str) -> Answer {
        let slices = self.slices.iter().map(|slice| &slice["spec"]);
        let slices: Vec<_> = slices.filter(|spec| spec["driver"] == *driver).collect();
        if slices.len() > MAX_SLICES {
            return Answer::No;
        }
        let newest = |spec: &&&Value| {
            let pool = &spec["pool"];
            slices.iter().all(|it| {
                it["pool"]["name"] != pool["name"]
                    || it["pool"]["generation"].as_i64() <= pool["generation"].as_i64()
            })
        };
        let current: Vec<_> = slices.iter().filter(newest).collect();
        let is_complete = |spec: &&&Value| {
            let of_pool = current.iter();
            let of_pool = of_pool.filter(|it| it["pool"]["name"] == spec["pool"]["name"]);
            Some(of_pool.count() as u64) == spec["pool"]["resourceSliceCount"].as_u64()
        };
        let mut devices = current.iter().flat_map(|it| items(&it["devices"]));
        let is_free = |device: &Value| {
            let taints = device["taints"].as_array();
            taints.is_none_or(|taints| taints.iter().all(|it| it["effect"] == "None"))
        };
        let complete = current.iter().copied().all(|it| is_complete(&it));
        let has_device = devices.clone().next().is_some();
        Answer::of(complete && has_device && devices.all(is_free))
    }

    /// The state of a condition's reporter under a rule.
    fn word(&self, rule: &Rule, kind: &str) -> Word {
        let written = self.since(|node| reported(node, kind));
        if let Some(boot) = self.relevant_boot(rule)
            && written <= boot.max(self.begun)
        {
            return match self.at.saturating_sub(boot) {
                passed
                    if written <= boot
                        && passed < NOT_RENEWED
                        && self.is_known_to_have_rebooted(rule) =>
                {
                    Word::Silent
                }
                _ => Word::Doubtful,
            };
        }
        let Some(timeout) = rule.heartbeat_timeout() else {
            return Word::Good;
        };
        let may_be_silent = (self.are_renewed)(rule, kind);
        if may_be_silent == Answer::No {
            return Word::Good;
        }
        // A held node stays held until its reporter is heard. For another, a process that has begun to watch waits a
        // full timeout.
        let since = if rule.taint().is_on(self.node) {
            Some(written)
        } else {
            self.sees_since.map(|since| since.max(written))
        };
        // A process that starts with a wrong clock cannot detect that.
        let age = SignedDuration::try_from(self.at.saturating_sub(written)).unwrap_or_default();
        let looks_recent = (age + self.ahead).unsigned_abs() <= timeout + LATE;
        if self.at < written + timeout {
            Word::Good
        } else if !self.ahead.is_zero() && looks_recent {
            Word::Doubtful
        } else if may_be_silent == Answer::Yes
            && since.is_some_and(|since| self.at >= since + timeout + LATE)
        {
            Word::Silent
        } else {
            Word::Doubtful
        }
    }

    /// Since when something about this very node is unchanged.
    fn since<T: PartialEq>(&self, what: impl Fn(&Value) -> T) -> Time {
        let now = what(self.node);
        let uid = &self.node["metadata"]["uid"];
        let is_same = |state: &&State| {
            let node = state.object.as_ref();
            node.is_some_and(|node| node["metadata"]["uid"] == *uid && what(node) == now)
        };
        let same = self.states.iter().rev().take_while(is_same);
        same.last().map_or(self.at, |state| state.at)
    }

    /// When the node rebooted, if the rule still depends on it.
    fn relevant_boot(&self, rule: &Rule) -> Option<Time> {
        if !rule.ours.regate_on.contains(&RegateOn::Reboot) {
            return None;
        }
        let boot = self.since(|node| boot_id(node).to_owned());
        let first = self.since(|_| ());
        // A process counts from its first observation of the boot, which for a new process is its start.
        let is_recent = |since: Time| self.at < since + NOT_RENEWED + LATE;
        let is_relevant =
            is_recent(boot) || is_recent(self.begun) || rule.heartbeat_timeout().is_some();
        (boot > first && is_relevant).then_some(boot)
    }

    /// Whether the node's own annotations record a bootstrap completed in another boot.
    fn is_known_to_have_rebooted(&self, rule: &Rule) -> bool {
        rule.recorded_on(self.node).is_some() && !rule.is_completed_on(self.node)
    }

    /// A registered driver may date from before a reboot, and then does not count.
    fn after_reboot(&self, rule: &Rule, driver: &str, answer: Answer) -> Answer {
        let Some(boot) = self.relevant_boot(rule) else {
            return answer;
        };
        let is_own = |pod: &Arc<Value>, class: &Class| {
            let mut waits_for = annotations(pod, &class.csi_annotation_prefix);
            waits_for.any(|(_, it)| it == driver)
        };
        let mut own = self
            .classes
            .iter()
            .flat_map(|class| self.pods(class).filter(|pod| is_own(pod, class)));
        let proves = |pod: &&Arc<Value>| {
            let since = ready(pod).and_then(|ready| time(&ready["lastTransitionTime"]));
            let has_settled =
                |since| wall(self.at).duration_since(since) + self.steps >= REGISTRATION;
            since.is_none_or(has_settled) && self.is_ready(rule, pod) != Answer::No
        };
        let mut is_renewed = || self.csi_node_since > boot || own.any(|pod| proves(&pod));
        if self.at < boot + NOT_RENEWED && self.is_known_to_have_rebooted(rule) && !is_renewed() {
            return Answer::No;
        }
        answer.min(Answer::Maybe)
    }

    /// The class's live pods on the node.
    fn pods(&self, class: &Class) -> impl Iterator<Item = &Arc<Value>> {
        let own = self.pods.iter().filter(|pod| is_live(pod));
        own.filter(move |pod| has(class, pod))
    }

    fn are_scheduled(&self, class: &Class) -> Answer {
        Answer::all(self.daemon_sets.iter().map(|daemon_set| {
            let has_pod = self.pods(class).any(|pod| owns(daemon_set, pod));
            match expects(self, class, daemon_set) {
                _ if has_pod => Answer::Yes,
                Answer::Yes => Answer::No,
                Answer::Maybe => Answer::Maybe,
                Answer::No => Answer::Yes,
            }
        }))
    }

    fn are_ready(&self, rule: &Rule, class: &Class) -> Answer {
        let expected: Vec<(&Value, Answer)> = self
            .daemon_sets
            .iter()
            .map(|it| (&**it, expects(self, class, it)))
            .collect();
        let of_daemon_sets = expected
            .iter()
            .filter(|(_, expected)| *expected != Answer::No);
        let of_daemon_sets = of_daemon_sets.map(|(daemon_set, expected)| {
            let own = self.pods(class).filter(|pod| owns(daemon_set, pod));
            let words = own.map(|pod| self.is_available(rule, daemon_set, pod));
            let words: Vec<Answer> = words.collect();
            let one_is = Answer::any(words.iter().copied());
            let all_are = Answer::all(words);
            match expected {
                Answer::Maybe if one_is != all_are => Answer::Maybe,
                _ => one_is,
            }
        });
        let is_covered = |pod: &Value| {
            let mut expected = expected.iter();
            expected.any(|(daemon_set, expected)| *expected != Answer::No && owns(daemon_set, pod))
        };
        let others = self.pods(class).filter(|pod| !is_covered(pod));
        let others = others.map(|pod| {
            let mut labelled = self.daemon_sets.iter().filter(|it| has(class, it));
            let owner = labelled.find(|daemon_set| owns(daemon_set, pod));
            owner.map_or_else(
                || self.is_ready(rule, pod),
                |daemon_set| self.is_available(rule, daemon_set, pod),
            )
        });
        self.are_scheduled(class)
            .min(Answer::all(of_daemon_sets.chain(others)))
    }

    /// Whether a pod of a `DaemonSet` has been Ready for as long as that asks for.
    fn is_available(&self, rule: &Rule, daemon_set: &Value, pod: &Value) -> Answer {
        let wait = daemon_set["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
        let wait = SignedDuration::from_secs(wait);
        let since = ready(pod).and_then(|ready| time(&ready["lastTransitionTime"]));
        let answer = match since.map(|since| wall(self.at).duration_since(since)) {
            _ if wait.is_zero() => Answer::Yes,
            None => Answer::No,
            // By any clock.
            Some(been) if been + self.steps < wait => Answer::No,
            Some(been) if been - self.steps < wait + DECIDED_EARLIER => Answer::Maybe,
            Some(_) => Answer::Yes,
        };
        answer.min(self.is_ready(rule, pod))
    }

    /// Whether a pod is Ready, if its report counts.
    fn is_ready(&self, rule: &Rule, pod: &Value) -> Answer {
        let Some(ready) = ready(pod) else {
            return Answer::No;
        };
        let created = time(&self.node["metadata"]["creationTimestamp"]);
        let since = time(&ready["lastTransitionTime"]);
        let is_older = created
            .zip(since)
            .filter(|(created, since)| since < created);
        let age = is_older.map(|(created, _)| wall(self.at).duration_since(created));
        let answer = match age {
            // By any clock.
            Some(age) if age + self.steps < OLD_PODS && self.steps.is_zero() => Answer::No,
            Some(age) if age - self.steps < OLD_PODS + OLD_PODS_SEEN_LATE => Answer::Maybe,
            _ => Answer::Yes,
        };
        match self.relevant_boot(rule) {
            None => answer,
            Some(boot) if since.is_some_and(|since| since >= wall(boot.max(self.begun))) => answer,
            // A process that observed the new boot later may take the pod for older, and the pod's time is in whole seconds.
            Some(boot) if since.is_some_and(|since| since >= wall(s(boot.as_secs()))) => {
                Answer::Maybe
            }
            Some(boot) if self.at < boot + BOOT_PODS && self.is_known_to_have_rebooted(rule) => {
                Answer::No
            }
            Some(_) => Answer::Maybe,
        }
    }

    fn are_registered(&self, rule: &Rule, class: &Class) -> Answer {
        let pods = self.pods(class);
        let drivers = pods.flat_map(|pod| annotations(pod, &class.csi_annotation_prefix));
        let drivers = drivers.map(|(_, driver)| driver);
        Answer::all(drivers.map(|driver| {
            let registered = self.is_registered(driver, class.require_csi_allocatable);
            self.after_reboot(rule, driver, registered)
        }))
    }

    /// The `CSINode`, unless it is that of an earlier node of the same name.
    fn own_csi_node(&self) -> Option<&Value> {
        let uid = &self.node["metadata"]["uid"];
        self.csi_node.filter(|csi_node| {
            let owners = items(&csi_node["metadata"]["ownerReferences"]).iter();
            let mut owners = owners.filter(|it| it["kind"] == "Node").peekable();
            owners.peek().is_none() || owners.any(|owner| owner["uid"] == *uid)
        })
    }

    /// Whether the driver reports nothing wrong with its storage.
    fn is_healthy(&self, driver: &str) -> Answer {
        let csi_node = self.own_csi_node();
        let reports = csi_node.map_or(&[][..], |it| items(&it["status"]["storageHealth"]));
        let own = reports.iter().find(|it| it["name"] == driver);
        Answer::of(own.is_none_or(|it| items(&it["healthConditions"]).is_empty()))
    }

    fn is_registered(&self, driver: &str, with_count: bool) -> Answer {
        let csi_node = self.own_csi_node();
        let drivers = csi_node.map_or(&[][..], |it| items(&it["spec"]["drivers"]));
        Answer::of(drivers.iter().any(|it| {
            it["name"] == driver && (!with_count || it["allocatable"]["count"].is_number())
        }))
    }

    /// Whether a taint of the node will go by itself: one that matches a pattern, or that of a rule in force. A taint under our own
    /// prefix that no such rule names may be about to be removed.
    pub(super) fn is_passing(&self, taint: &TaintId) -> Answer {
        let key = taint.key.as_str();
        let matches = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => key.ends_with(end),
            (_, Some(start)) => key.starts_with(start),
            _ => key == pattern,
        };
        let is_managed = || {
            let mut rules = self.rules.iter();
            rules.any(|rule| rule.is_about(taint) && !rule.spec.dry_run)
        };
        match PASSING.into_iter().any(matches) || is_managed() {
            true => Answer::Yes,
            false if key.starts_with(OUR_TAINTS) => Answer::Maybe,
            false => Answer::No,
        }
    }
}

/// How rules and records name an object.
fn path(namespace: &Value, name: &Value) -> String {
    format!("{}/{}", text(namespace), text(name))
}

fn is_named(daemon_set: &Value, namespace: &str, name: &str) -> bool {
    let metadata = &daemon_set["metadata"];
    metadata["namespace"] == *namespace && metadata["name"] == *name
}

/// Whether rules that wait for every `DaemonSet` wait for this one.
fn counts_for_all(daemon_set: &Value) -> bool {
    daemon_set["metadata"]["labels"]["nodegate.dev/ignore"] != "true"
}

/// A node's condition, with the times of its report.
fn reported(node: &Value, kind: &str) -> Option<[Value; 3]> {
    let mut conditions = items(&node["status"]["conditions"]).iter();
    let condition = conditions.find(|condition| condition["type"] == kind)?;
    Some(
        ["status", "lastHeartbeatTime", "lastTransitionTime"].map(|field| condition[field].clone()),
    )
}
