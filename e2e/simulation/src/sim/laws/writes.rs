//! Writes are bounded, whatever others do. For each process and object:
//!
//! | writes | at most |
//! |---|---|
//! | adding or removing a taint that somebody else reverses each time | 10 a minute: three at once, then after pauses that double from 5 s (`engine::attempt`) |
//! | refused writes | 40 in 10 s: retries pause from 50 ms, doubling, and start over for each cause |
//! | writes without effect, if no other process wrote the object within a minute | 5 a minute: an answer may be lost |
//! | all writes | 15 in 10 s, and two for each relevant change by others |

use std::collections::{BTreeMap, VecDeque};

use super::rule::TaintId;
use super::{NodeWrite, Process, longest_age, process, seconds};
use crate::sim::cluster::{Change, Who, Write};
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};
use crate::{Key, Kind, Request};

const MINUTE: Time = s(60);
const SHORT: Time = s(10);

#[derive(Default)]
pub(super) struct Writes {
    /// Repeated changes of the same taint on the same node by the same process: the last direction, and the times.
    repeated: BTreeMap<(Process, String, TaintId), (bool, Times)>,
    refused: BTreeMap<(Process, Key), Times>,
    idle: BTreeMap<(Process, Key), Times>,
    all: BTreeMap<(Process, Key), Times>,
    /// When each process last wrote each object.
    last: BTreeMap<(Process, Key), Time>,
    /// Changes relevant to a node or a rule: when, by whom, and on which node; `None` for all nodes.
    others: VecDeque<(Time, Who, Option<String>)>,
}

type Times = VecDeque<Time>;

impl Writes {
    fn note_change(&mut self, change: &Change) {
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
        for (taint, is_added) in added.chain(write.removed().map(|taint| (taint, false))) {
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
                let what = if is_added { "put on" } else { "removed" };
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
            // Another instance that believes it leads also reverses changes.
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
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for change in moment.new_changes {
            self.note_change(change);
        }
        for write in NodeWrite::new(moment) {
            self.note_taints(moment, &write)?;
        }
        for write in moment.new_writes {
            if let Who::Nodegate(instance) = write.who {
                self.note_write(moment, instance, write)?;
            }
        }
        Ok(())
    }
}

/// Records an event and returns how many fall into the window.
fn count(times: &mut Times, at: Time, window: Time) -> usize {
    times.push_back(at);
    while times.front().is_some_and(|first| *first + window < at) {
        times.pop_front();
    }
    times.len()
}

/// The written object, if writes to it are bounded.
pub(super) fn target(request: &Request) -> Option<&Key> {
    let key = request.key();
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
    use crate::sim::laws::testing::{Story, node};

    #[test]
    fn nothing_is_written_again_and_again() {
        for (times, fine) in [(3, true), (10, false)] {
            let mut story = Story::default();
            story.create(node("n"));
            for round in 0..times {
                story.at(round);
                story.patch_by_nodegate("n", json!({ "spec": { "taints": null } }));
            }
            story.judged(&mut Writes::default(), fine, times);
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
                story.patch_by_nodegate("n", json!({ "metadata": { "annotations": annotations } }));
            }
            story.judged(&mut Writes::default(), fine, others);
        }
    }
}
