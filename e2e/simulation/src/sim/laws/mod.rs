//! The laws, one a file, and what they look up. `truth`, `placement` and `rule` read the documentation with none of the
//! product's code.

mod absences;
mod agreement;
mod bootstrap;
mod claims;
mod deletion;
mod disruption;
mod end;
mod first_gating;
mod foreign;
mod forgery;
mod futile;
mod gatings;
mod leadership;
pub(super) mod ledger;
mod placement;
mod reactions;
mod recall;
mod release_time;
mod removals;
pub(super) mod rule;
mod settling;
#[cfg(test)]
mod testing;
mod truth;
mod within_a_minute;
mod workload;
mod writes;

use nodegate_core::api::names::BOOTSTRAP_COMPLETED_PREFIX;
use nodegate_core::condition::CriticalComponentClass;
use nodegate_engine::MAX_AGE;
use serde_json::Value;

use self::rule::TaintId;
use super::actors::ask::is_going;
use super::cluster::{Change, Who};
use super::fault::{Fault, Incident};
use super::law::{Law, Moment};
use super::time::{Time, s};
use crate::Kind;

#[rustfmt::skip]
pub fn all() -> Laws {
    vec![
        ("every removal is justified", Box::new(removals::Removals)),
        ("release waits for no limit", Box::new(release_time::ReleaseTime)),
        ("release waits for the settle period", Box::new(settling::Settling)),
        ("every gating is justified", Box::new(gatings::Gatings)),
        ("an absence that has not lasted changes nothing", Box::new(absences::Absences)),
        ("a completed bootstrap is never gated again", Box::new(bootstrap::Bootstrap)),
        ("what is others' stays as it is", Box::new(foreign::Foreign)),
        ("nobody's taint is removed on an annotation's word", Box::new(forgery::Forgery)),
        ("who reacts to the taint is gated ever less often", Box::new(reactions::Reactions::default())),
        ("a guarded rule gates no more nodes than its rates allow", Box::new(disruption::Disruption::default())),
        ("a rule that comes into force gates no more nodes in use than its limit", Box::new(first_gating::FirstGating::default())),
        ("a rule gates no more nodes that come under it within a minute than its limit", Box::new(within_a_minute::WithinAMinute::default())),
        ("a joining node runs no workload", Box::new(workload::Workload)),
        ("a deleted rule goes when its nodes are clean", Box::new(deletion::Deletion)),
        ("no claim of a node is deleted that was ever released", Box::new(claims::Claims)),
        ("what does not help is not repeated for ever", Box::new(futile::Futile::default())),
        ("writes are bounded", Box::new(writes::Writes::default())),
        ("only a leader writes, and one thing at a time", Box::new(leadership::Leadership)),
        ("at the end everything is as the rules say", Box::new(end::End)),
        ("the command line agrees with the controller", Box::new(agreement::Agreement)),
    ]
}

/// What must never happen, or must hold in the end, by short sentences about behaviour.
pub type Laws = Vec<(&'static str, Box<dyn Law>)>;

/// The maximum age of the evidence behind a write when it is carried out: a watch's view counts for [`MAX_AGE`], and a write is
/// given up after 10 s. Evidence from before a suspension during which the clock was set back is older by that, which the process
/// cannot detect.
fn longest_age(moment: &Moment<'_>) -> Time {
    const WRITE: Time = s(10);
    let late = incidents(moment).map(|(what, at, lasts)| match what {
        Incident::Suspend(instance) if is_set_back(moment, instance, (at, at + lasts)) => lasts,
        _ => Time::ZERO,
    });
    MAX_AGE + WRITE + late.max().unwrap_or_default()
}

/// What goes wrong at certain times: what, when, and for how long.
fn incidents(moment: &Moment<'_>) -> impl Iterator<Item = (Incident, Time, Time)> {
    moment.faults.iter().filter_map(Fault::timed)
}

/// Whether an instance's clock is set back in this time.
fn is_set_back(moment: &Moment<'_>, whose: usize, (from, to): (Time, Time)) -> bool {
    incidents(moment).any(|(what, at, _)| {
        matches!(what, Incident::ClockStep(instance, by)
            if instance == whose && by < 0 && (from..=to).contains(&at))
    })
}

/// How far a wall clock may be from the cluster's; recorded deadlines follow it.
fn steps(moment: &Moment<'_>) -> Time {
    let steps = incidents(moment).map(|(what, ..)| match what {
        Incident::ClockStep(_, by) => s(by.unsigned_abs()),
        _ => Time::ZERO,
    });
    steps.sum()
}

struct NodeWrite<'a> {
    /// The number of the instance that made it.
    instance: usize,
    change: &'a Change,
    before: &'a Value,
    after: &'a Value,
}

impl<'a> NodeWrite<'a> {
    fn new(moment: &Moment<'a>) -> impl Iterator<Item = Self> + use<'a> {
        moment.new_changes.iter().filter_map(|change| {
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

    fn node(&self) -> &'a str {
        &self.change.key.name
    }

    fn removed(&self) -> impl Iterator<Item = TaintId> + use<'a> {
        gone(self.before, self.after)
    }

    fn added(&self) -> impl Iterator<Item = TaintId> + use<'a> {
        gone(self.after, self.before)
    }

    /// The annotations that are new, name another boot, or are no longer from before a maintenance: each key, and its boot.
    fn noted(&self) -> impl Iterator<Item = (&'a str, Option<String>)> + use<'a> {
        let before = &self.before["metadata"]["annotations"];
        let after = self.after["metadata"]["annotations"].as_object();
        let read = |value: &Value| -> Value {
            let value = value.as_str().and_then(|it| serde_json::from_str(it).ok());
            value.unwrap_or_default()
        };
        let notes = after.into_iter().flatten();
        let notes = notes.map(move |(key, value)| (key.as_str(), read(value)));
        let notes = notes.filter(move |(key, is)| {
            before.get(key).map(read).is_none_or(|was| {
                was["boot-id"].is_string() && was["boot-id"] != is["boot-id"]
                    || was["maintenance"] == true && is["maintenance"] != true
            })
        });
        notes.map(|(key, is)| (key, is["boot-id"].as_str().map(str::to_owned)))
    }

    /// Those of completed bootstraps: each key, the rule's UID in it, and the boot.
    fn completed(&self) -> impl Iterator<Item = (&'a str, &'a str, Option<String>)> + use<'a> {
        let noted = self.noted();
        noted.filter_map(|(key, boot)| {
            Some((key, key.strip_prefix(BOOTSTRAP_COMPLETED_PREFIX)?, boot))
        })
    }

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

/// The taints of `before` that `after` lacks.
fn gone<'a>(before: &'a Value, after: &'a Value) -> impl Iterator<Item = TaintId> + use<'a> {
    TaintId::all(before)
        .map(|(taint, _)| taint)
        .filter(|taint| !taint.is_on(after))
}

/// Whether Nodegate makes conditions of this type itself.
fn is_synthesized(kind: &str, classes: &[CriticalComponentClass]) -> bool {
    const SOURCES: [&str; 7] = [
        "check",
        "csidriver",
        "daemonset",
        "daemonsets",
        "label",
        "resource",
        "resourceslice",
    ];
    let source = kind.split_once(".nodegate.dev/");
    let mut classes = classes.iter();
    source.is_some_and(|(source, _)| SOURCES.contains(&source))
        || classes.any(|class| kind.starts_with(&class.condition_prefix))
}

/// Whether the change begins a deletion.
fn is_deleted(change: &Change) -> bool {
    !change.before.as_deref().is_some_and(is_going) && change.after.as_deref().is_none_or(is_going)
}

/// Formats a time for the laws' messages.
fn seconds(time: Time) -> String {
    format!("{:.3}s", time.as_secs_f64())
}

/// A process: its instance, and since when it runs and leads. A new one knows nothing of what an earlier one did.
type Process = (usize, Option<Time>, Option<Time>);

fn process(moment: &Moment<'_>, instance: usize) -> Process {
    let report = moment.instances.get(instance);
    let since = report.map(|it| (it.runs_since, it.leads_since));
    let (runs, leads) = since.unwrap_or_default();
    (instance, runs, leads)
}
