//! The page about events.

use std::fmt::Write;

use crate::markdown::{GENERATED, cell};
use nodegate_engine::notice::Topic;

/// The page, with a row for each topic.
pub(crate) fn page(topics: &[&Topic]) -> String {
    let mut text = format!(
        "# Events\n\n{GENERATED}\n\
         Events are in the namespace `default`, as those of all cluster-scoped objects are (`kubectl -n default get events`), \
         reported by `node-readiness-controller`; they are posted behind the writes of taints, and dropped under overload: \
         [Status, events, logs and metrics](../observing.md#events).\n\n\
         `regarding` is the object that an event is about; the old API calls it `involvedObject`. `related` is the rule in \
         `NodeHeld`, `AddTaintError` and `RemoveTaintError`, and empty in all others, whose note names the rule where there is one.\n\n\
         | reason | regarding | type | action | when |\n|---|---|---|---|---|\n"
    );
    let mut topics = topics.to_vec();
    topics.sort_by_key(|topic| (topic.reason, topic.on));
    for topic in topics {
        let Topic {
            reason,
            action,
            kind,
            on,
            when,
        } = topic;
        let when = cell(when);
        writeln!(text, "| `{reason}` | {on} | {kind} | `{action}` | {when} |")
            .expect("a text takes all that is written to it");
    }
    text
}
