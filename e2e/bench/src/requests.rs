//! The controller's requests, from the API server's audit log, which records no other client.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use serde::Deserialize;
use testkit::nodegate::audit::GrowingLog;

/// The number of requests by verb and resource, such as `patch nodes/status`; failed ones with their status code, such as
/// `patch nodes -> 422`.
pub(crate) type Counts = BTreeMap<String, u64>;

/// Counts the requests of an audit log as it grows.
#[derive(Debug)]
pub(crate) struct Requests {
    log: GrowingLog,
    counts: Counts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    verb: &'a str,
    stage: &'a str,
    object_ref: Option<ObjectRef<'a>>,
    response_status: Option<Status>,
}

#[derive(Deserialize)]
struct ObjectRef<'a> {
    resource: Option<&'a str>,
    subresource: Option<&'a str>,
}

#[derive(Deserialize)]
struct Status {
    code: Option<u16>,
}

impl Requests {
    /// Reads this log from its beginning.
    pub(crate) fn of(log: PathBuf) -> Self {
        Self {
            log: GrowingLog::of(log),
            counts: Counts::new(),
        }
    }

    /// All requests so far.
    pub(crate) fn so_far(&mut self) -> Result<&Counts> {
        count(&self.log.news()?, &mut self.counts);
        Ok(&self.counts)
    }
}

/// The requests in `after` that are not in `before`, an earlier count of the same log.
pub(crate) fn since(before: &Counts, after: &Counts) -> Counts {
    after
        .iter()
        .map(|(name, count)| (name, count - before.get(name).unwrap_or(&0)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.clone(), count))
        .collect()
}

/// How many of them are writes.
pub(crate) fn writes(counts: &Counts) -> u64 {
    let reads = ["get ", "list ", "watch "];
    let is_read = |name: &str| reads.iter().any(|read| name.starts_with(read));
    let writes = counts.iter().filter(|(name, _)| !is_read(name));
    writes.map(|(_, count)| count).sum()
}

fn count(lines: &str, counts: &mut Counts) {
    for line in lines.lines() {
        let Ok(event) = serde_json::from_str::<Event<'_>>(line) else {
            continue;
        };
        // A watch counts when it starts, as its end may be far away.
        let stage = match event.verb {
            "watch" => "ResponseStarted",
            _ => "ResponseComplete",
        };
        if event.stage == stage {
            *counts.entry(name(&event)).or_default() += 1;
        }
    }
}

fn name(event: &Event<'_>) -> String {
    let object = event.object_ref.as_ref();
    let resource = object.and_then(|object| object.resource).unwrap_or("-");
    let mut name = format!("{} {resource}", event.verb);
    if let Some(subresource) = object.and_then(|object| object.subresource) {
        name = format!("{name}/{subresource}");
    }
    let status = event.response_status.as_ref();
    match status.and_then(|status| status.code) {
        Some(code) if code >= 400 => format!("{name} -> {code}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_once_and_a_watch_when_it_begins() {
        let line = |verb: &str, stage: &str, code: u16| {
            format!(
                r#"{{"verb":"{verb}","stage":"{stage}","objectRef":{{"resource":"nodes"}},"responseStatus":{{"code":{code}}}}}"#
            )
        };
        let log = [
            line("list", "ResponseComplete", 200),
            line("watch", "ResponseStarted", 200),
            line("watch", "ResponseComplete", 200),
            line("patch", "ResponseComplete", 200),
            line("patch", "ResponseComplete", 422),
            "not JSON".to_owned(),
        ];
        let mut counts = Counts::new();
        count(&log.join("\n"), &mut counts);
        let expected = [
            "list nodes",
            "patch nodes",
            "patch nodes -> 422",
            "watch nodes",
        ];
        assert_eq!(counts, expected.map(|name| (name.to_owned(), 1)).into());
        assert_eq!(writes(&counts), 2);
    }

    #[test]
    fn what_has_not_grown_is_left_out() {
        let counts = |patches, lists| {
            Counts::from([
                ("patch nodes".to_owned(), patches),
                ("list nodes".to_owned(), lists),
            ])
        };
        let grown = since(&counts(3, 2), &counts(5, 2));
        assert_eq!(grown, Counts::from([("patch nodes".to_owned(), 2)]));
    }
}
