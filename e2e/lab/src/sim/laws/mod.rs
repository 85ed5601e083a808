//! The laws, one a file.
//!
//! ```text
//! lifts        every lift, and every bootstrap put on record, is justified by what was true a short time before
//! closings     every taint that is put on is, too, and a grace period is kept
//! bootstrap    what has been completed is not closed again, and stays on record
//! foreign      what is others' stays as it is
//! forgery      nobody's taint is lifted on an annotation's word
//! disruption   a guarded rule closes no more nodes than its rates allow
//! workload     a joining node runs no workload before its time
//! deletion     a deleted rule goes when its nodes are clean
//! claims       no claim of a node is deleted that was ever open, and not too many are
//! writes       writes are bounded, whoever interferes
//! leadership   one write at a time to a node, and none by whoever does not lead
//! agreement    at the end the command line makes of every node what has been made of it
//! end          at the end every node is as the rules say, and nothing is written any more
//!
//! ledger        what all of them look up: what was true of a node, and when
//! truth        what is true of a rule's conditions on a node, by the documentation
//! placement    which DaemonSets are waited for, by the documentation
//! rule         a rule, by the documentation
//! ```

mod agreement;
mod bootstrap;
mod claims;
mod closings;
mod deletion;
mod disruption;
mod end;
mod foreign;
mod forgery;
mod leadership;
mod ledger;
mod lifts;
mod placement;
pub(super) mod rule;
#[cfg(test)]
mod testing;
mod truth;
mod workload;
mod writes;

use nodegate::engine::MAX_AGE;
use serde_json::Value;

pub use self::agreement::Agreement;
use self::ledger::Shared;
use self::rule::TaintId;
use super::cluster::{Change, Write};
use super::fault::Fault;
use super::law::Moment;
use super::time::{Time, s};
use super::{Law, Who};
use crate::Kind;

/// All of them, for one schedule.
#[must_use]
pub fn all() -> Vec<Box<dyn Law>> {
    let ledger = Shared::default();
    vec![
        Box::new(lifts::Lifts::new(&ledger)),
        Box::new(closings::Closings::new(&ledger)),
        Box::new(bootstrap::Bootstrap::new(&ledger)),
        Box::new(foreign::Foreign::new(&ledger)),
        Box::new(forgery::Forgery::new(&ledger)),
        Box::new(disruption::Disruption::new(&ledger)),
        Box::new(workload::Workload::new(&ledger)),
        Box::new(deletion::Deletion::new(&ledger)),
        Box::new(claims::Claims::new(&ledger)),
        Box::new(writes::Writes::new(&ledger)),
        Box::new(leadership::Leadership),
        Box::new(end::End::new(&ledger)),
        Box::new(Agreement),
    ]
}

/// How old what a write goes by may be when it is carried out: what a watch has shown counts for [`MAX_AGE`] (a last look for
/// less, 10 s), and a write is given up 10 s after it was begun. What was seen before a suspension during which the clock was set
/// back is older by that: nothing tells of it.
fn longest_age(moment: &Moment<'_>) -> Time {
    const WRITE: Time = s(10);
    let late = moment.faults.iter().map(|fault| match fault {
        Fault::Suspend {
            instance,
            at,
            lasts,
        } if is_set_back(moment, *instance, (*at, *at + *lasts)) => *lasts,
        _ => Time::ZERO,
    });
    MAX_AGE + WRITE + late.max().unwrap_or_default()
}

/// Whether an instance's clock is set back in this time.
fn is_set_back(moment: &Moment<'_>, whose: usize, (from, to): (Time, Time)) -> bool {
    moment.faults.iter().any(|fault| {
        matches!(fault, Fault::ClockStep { instance, at, by }
            if *instance == whose && *by < 0 && (from..=to).contains(at))
    })
}

/// How far a wall clock may be from the cluster's: deadlines are on record by it.
fn steps(moment: &Moment<'_>) -> Time {
    let steps = moment.faults.iter().map(|fault| match fault {
        Fault::ClockStep { by, .. } => s(by.unsigned_abs()),
        _ => Time::ZERO,
    });
    steps.sum()
}

/// A change that Nodegate has made to a node.
struct NodeWrite<'a> {
    /// Its number among the instances.
    instance: usize,
    change: &'a Change,
    before: &'a Value,
    after: &'a Value,
}

impl<'a> NodeWrite<'a> {
    /// Those that have not been judged.
    fn new(moment: &Moment<'a>) -> impl Iterator<Item = Self> + use<'a> {
        moment.new_changes().iter().filter_map(|change| {
            let Who::Nodegate(instance) = change.who else {
                return None;
            };
            Some(Self {
                instance,
                before: change
                    .before
                    .as_ref()
                    .filter(|_| change.key.kind == Kind::Node)?,
                after: change.after.as_ref()?,
                change,
            })
        })
    }

    /// The node's name.
    fn node(&self) -> &'a str {
        &self.change.key.name
    }

    /// The taints that it has taken away.
    fn lifted(&self) -> impl Iterator<Item = TaintId> + use<'a> {
        gone(self.before, self.after)
    }

    /// The taints that it has put on.
    fn added(&self) -> impl Iterator<Item = TaintId> + use<'a> {
        gone(self.after, self.before)
    }

    /// The annotations that are new, or speak of another boot now: each key, and the boot that it speaks of.
    fn noted(&self) -> impl Iterator<Item = (&'a str, Option<String>)> + use<'a> {
        let before = &self.before["metadata"]["annotations"];
        let after = self.after["metadata"]["annotations"].as_object();
        let boot = |value: &Value| -> Option<String> {
            let value: Value = serde_json::from_str(value.as_str()?).ok()?;
            Some(value["boot-id"].as_str()?.to_owned())
        };
        let notes = after.into_iter().flatten();
        let notes = notes.map(move |(key, value)| (key.as_str(), boot(value)));
        notes.filter(move |(key, spoken_of)| match before.get(key) {
            None => true,
            Some(known) => boot(known).is_some_and(|known| Some(known) != *spoken_of),
        })
    }

    /// The annotations that it has taken away.
    fn forgotten(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let after = &self.after["metadata"]["annotations"];
        let before = self.before["metadata"]["annotations"].as_object();
        let gone = before
            .into_iter()
            .flatten()
            .filter(|(key, _)| after.get(key).is_none());
        gone.map(|(key, _)| key.as_str())
    }
}

/// The taints of one node that the other has not.
fn gone<'a>(before: &'a Value, after: &'a Value) -> impl Iterator<Item = TaintId> + use<'a> {
    TaintId::all(before)
        .map(|(taint, _)| taint)
        .filter(|taint| !taint.is_on(after))
}

/// A time as laws print it.
fn seconds(time: Time) -> String {
    format!("{:.3}s", time.as_secs_f64())
}

/// The requests of instances that have not been judged.
fn ours<'a>(moment: &Moment<'a>) -> impl Iterator<Item = (usize, &'a Write)> + use<'a> {
    moment
        .new_writes()
        .iter()
        .filter_map(|write| match write.who {
            Who::Nodegate(instance) => Some((instance, write)),
            Who::Actor(_) => None,
        })
}
