//! Writes are bounded, whoever interferes.
//!
//! | what one process does to one object | at most |
//! |---|---|
//! | puts a taint on, or lifts it, that somebody else has put back or taken off each time | 10 times a minute: three at once, then after pauses of 5 s at first, each twice as long as the last one or a little shorter (`engine::turns::contention`) |
//! | writes that are refused | 40 in 10 s: tries come after pauses of 50 ms at first, each twice as long, and anew for each cause |
//! | writes that change nothing, where no other process has written the object within a minute | 5 a minute: an answer may be lost |
//! | writes in all | 15 in 10 s, and two for each change by others that bears on it |

use std::collections::{BTreeMap, VecDeque};

use super::ledger::Shared;
use super::rule::TaintId;
use super::{NodeWrite, longest_age, ours, seconds};
use crate::sim::Who;
use crate::sim::cluster::{Change, Write};
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};
use crate::{Key, Kind, Request};

const MINUTE: Time = s(60);
const SHORT: Time = s(10);

/// The law.
pub struct Writes {
    ledger: Shared,
    /// When what was last done to a taint of a node was done once more, by the same process.
    repeated: BTreeMap<(Process, String, TaintId), (bool, Times)>,
    refused: BTreeMap<(Process, Key), Times>,
    idle: BTreeMap<(Process, Key), Times>,
    all: BTreeMap<(Process, Key), Times>,
    /// When each process last wrote each object.
    last: BTreeMap<(Process, Key), Time>,
    /// What has been changed that bears on a node or a rule, by whom, and on which node; `None` for all.
    others: VecDeque<(Time, Who, Option<String>)>,
}

/// An instance, and since when its process runs: another process knows nothing of what was done before it.
type Process = (usize, Option<Time>);
/// When something was done.
type Times = VecDeque<Time>;

impl Writes {
    /// The law, by these ledger.
    #[must_use]
    pub fn new(ledger: &Shared) -> Self {
        Self {
            ledger: ledger.clone(),
            repeated: BTreeMap::new(),
            refused: BTreeMap::new(),
            idle: BTreeMap::new(),
            all: BTreeMap::new(),
            last: BTreeMap::new(),
            others: VecDeque::new(),
        }
    }

    fn note_change(&mut self, change: &Change) {
        if matches!(change.key.kind, Kind::Lease | Kind::Event) {
            return;
        }
        let node = match change.key.kind {
            Kind::Node | Kind::CsiNode => Some(change.key.name.clone()),
            Kind::Pod => {
                let pod = change.after.as_ref().or(change.before.as_ref());
                let node = pod.and_then(|pod| pod["spec"]["nodeName"].as_str());
                Some(node.unwrap_or_default().to_owned())
            }
            _ => None,
        };
        self.others.push_back((change.at, change.who, node));
    }

    fn note_taints(&mut self, moment: &Moment<'_>, write: &NodeWrite<'_>) -> Result<(), String> {
        let at = write.change.at;
        let added = write.added().map(|taint| (taint, true));
        for (taint, is_added) in added.chain(write.lifted().map(|taint| (taint, false))) {
            let process = process(moment, write.instance);
            let key = (process, write.node().to_owned(), taint.clone());
            let (last, times) = self
                .repeated
                .entry(key)
                .or_insert((!is_added, Times::new()));
            if *last != is_added {
                *last = is_added;
                times.clear();
                continue;
            }
            if count(times, at, MINUTE) > 10 {
                let what = if is_added { "put on" } else { "lifted" };
                return Err(format!(
                    "instance {} {what} {taint} again and again on node {}, more than 10 times in the minute before {}",
                    write.instance,
                    write.node(),
                    seconds(at),
                ));
            }
        }
        Ok(())
    }

    fn note_write(
        &mut self,
        moment: &Moment<'_>,
        instance: usize,
        write: &Write,
    ) -> Result<(), String> {
        let Some(key) = target(&write.request) else {
            return Ok(());
        };
        let who = (process(moment, instance), key.clone());
        let (at, age) = (write.at, longest_age(moment));
        let tell = |what: &str| {
            let at = seconds(at);
            Err(format!(
                "instance {instance}: {what} before {at}, to {key}; the last one: {:?}",
                write.request
            ))
        };
        if write.code >= 400 && count(self.refused.entry(who.clone()).or_default(), at, SHORT) > 40
        {
            return tell("more than 40 refused writes in the 10 s");
        }
        self.last.insert(who.clone(), at);
        let is_others = |it: &(Process, Key)| it.0 != who.0 && it.1 == *key;
        let mut others = self.last.iter().filter(|(it, _)| is_others(it));
        let is_alone = others.all(|(_, last)| *last + MINUTE < at);
        let is_idle = write.code < 300 && write.changes.is_empty() && is_alone;
        if is_idle && count(self.idle.entry(who.clone()).or_default(), at, MINUTE) > 5 {
            return tell("more than 5 writes that changed nothing in the minute");
        }
        let all = count(self.all.entry(who).or_default(), at, SHORT);
        if all > 15 {
            let others = self.others.iter().rev();
            let recent = others.take_while(|(when, ..)| *when + SHORT + age >= at);
            let bears = |node: &Option<String>| {
                node.is_none() || key.kind != Kind::Node || node.as_ref() == Some(&key.name)
            };
            // Who believes that he leads as well undoes what is done.
            let is_others = |who: Who| who != Who::Nodegate(instance);
            let others = recent.filter(|(_, who, node)| is_others(*who) && bears(node));
            let others = others.count();
            if all > 15 + 2 * others {
                return tell(&format!("{all} writes in the 10 s"));
            }
        }
        Ok(())
    }
}

impl Law for Writes {
    fn name(&self) -> &'static str {
        "writes are bounded"
    }

    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        self.ledger.borrow_mut().read(moment);
        for change in moment.new_changes() {
            self.note_change(change);
        }
        for write in NodeWrite::new(moment) {
            self.note_taints(moment, &write)?;
        }
        for (instance, write) in ours(moment) {
            self.note_write(moment, instance, write)?;
        }
        Ok(())
    }
}

fn process(moment: &Moment<'_>, instance: usize) -> Process {
    let report = moment.instances.get(instance);
    (instance, report.and_then(|report| report.runs_since))
}

/// Notes that something was done, and counts how often that was so in the time before.
fn count(times: &mut Times, at: Time, window: Time) -> usize {
    times.push_back(at);
    while times.front().is_some_and(|first| *first + window < at) {
        times.pop_front();
    }
    times.len()
}

/// The object that a write is to, where writes to it are counted.
pub(super) fn target(request: &Request) -> Option<&Key> {
    let (Request::Patch { key, .. } | Request::Delete { key, .. }) = request else {
        return None;
    };
    matches!(
        key.kind,
        Kind::Node | Kind::NodeReadinessRule | Kind::NodeClaim
    )
    .then_some(key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::laws::testing::{Story, node, rule, taint};

    fn judge(story: &Story) -> Result<(), String> {
        story.judge(|ledger| Box::new(Writes::new(ledger)))
    }

    #[test]
    fn a_fight_over_a_taint_has_pauses() {
        for (pause, fine) in [(10, true), (1, false)] {
            let mut story = Story::default();
            story.create(rule(&json!({})));
            story.create(node("n"));
            for round in 0..40 {
                story.at(round * pause);
                story.patch_by_nodegate("n", &json!({ "spec": { "taints": [taint()] } }));
                story.patch_node("n", &json!({ "spec": { "taints": null } }));
            }
            assert_eq!(judge(&story).is_ok(), fine, "{pause}");
        }
    }

    #[test]
    fn nothing_is_written_again_and_again() {
        for (times, fine) in [(3, true), (10, false)] {
            let mut story = Story::default();
            story.create(node("n"));
            for round in 0..times {
                story.at(round);
                story.patch_by_nodegate("n", &json!({ "spec": { "taints": null } }));
            }
            assert_eq!(judge(&story).is_ok(), fine, "{times}");
        }
    }

    #[test]
    fn writes_follow_changes() {
        for (others, fine) in [(true, true), (false, false)] {
            let mut story = Story::default();
            story.create(node("n"));
            for round in 0..50 {
                story.at(round / 10);
                if others {
                    story.report("n", "Net", if round % 2 == 0 { "True" } else { "False" });
                }
                let annotations = json!({ "nodegate.dev/x": round.to_string() });
                story
                    .patch_by_nodegate("n", &json!({ "metadata": { "annotations": annotations } }));
            }
            assert_eq!(judge(&story).is_ok(), fine, "{others}");
        }
    }
}
