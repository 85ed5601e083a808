//! The history of a schedule, for people to read.

use std::fmt;

use serde_json::{Value, json};

use super::cluster::{Change, Who, Write};
use super::run::Outcome;
use super::time::Time;

/// Prints a line for each change, each write without effect and each note, by time.
pub struct Trace<'a>(pub &'a Outcome);

impl fmt::Display for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { cluster, notes, .. } = self.0;
        let mut lines: Vec<(Time, String)> = notes.clone();
        lines.extend(cluster.changes().iter().map(|it| (it.at, change(it))));
        let idle = cluster.writes().iter().filter(|it| it.changes.is_empty());
        lines.extend(idle.map(|it| (it.at, write(it))));
        lines.sort_by_key(|(at, _)| *at);
        for (at, line) in lines {
            writeln!(f, "{:>9.3} {line}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

fn name(who: Who) -> String {
    match who {
        Who::Actor(name) => name.to_owned(),
        Who::Nodegate(instance) => format!("instance {instance}"),
    }
}

fn change(change: &Change) -> String {
    let (who, key) = (name(change.who), &change.key);
    let without_version = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        object
    };
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            let patch = json_patch::diff(&without_version(before), &without_version(after));
            format!("{who}: {key} {} {}", change.revision, json!(patch))
        }
        (None, Some(after)) => format!("{who}: {key} {} is made {after}", change.revision),
        (_, None) => format!("{who}: {key} {} is gone", change.revision),
    }
}

fn write(write: &Write) -> String {
    format!(
        "{}: {} for {:?}",
        name(write.who),
        write.code,
        write.request
    )
}
