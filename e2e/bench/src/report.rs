//! The results, as a line for each phase on the screen and as tables in Markdown. Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::measure::{Spread, number};
use crate::overview::overview;
use crate::plan::Phase;
use crate::results::{Outcome, Results, Run};
use crate::table::{
    Quantile, Table, Value, count, figure, head, kibibytes, mebibytes, milliseconds, ratio,
    seconds, whole,
};
use crate::targets::{TARGETS, conditions, events, precise, taints};

pub(crate) fn line(outcome: &Outcome) -> String {
    let mut text = format!("{}: {}", outcome.phase.name(), wall(outcome));
    if let Some(latencies) = &outcome.latencies {
        let _ = write!(
            text,
            ", p50 {}, p99 {}, max {}",
            milliseconds(latencies.p50),
            milliseconds(latencies.p99),
            milliseconds(latencies.max)
        );
    }
    let _ = write!(
        text,
        ", CPU {:.3} s, {:.0} MiB, {} writes",
        outcome.cpu,
        outcome.peak_memory,
        outcome.writes()
    );
    for trouble in troubles(outcome) {
        let _ = write!(text, "\n  WRONG: {trouble}");
    }
    text
}

/// All results as a page.
pub fn markdown(results: &Results) -> String {
    let runs = results.runs.iter();
    let versions: BTreeSet<&str> = runs.map(|run| run.kubernetes.as_str()).collect();
    let kubernetes = Vec::from_iter(versions).join(" and ");
    let mut page = format!(
        "# Results\n\nMade by `make bench`; see [Performance](README.md) for what is measured and how. The figures are in \
         [results.json](results.json) too.\n\n{} on Kubernetes {}, {}.\n\n",
        results.controller, kubernetes, results.machine
    );
    let most = results.sizes().map(<[Run]>::len).max();
    if most > Some(1) {
        page.push_str(
            "Measured several times: what stands first is the median of the runs, in brackets the least and the most.\n\n",
        );
    }
    page.push_str(&overview(results));
    page.push_str(&targets(results));
    for runs in results.sizes() {
        if runs.iter().any(|run| !run.outcomes.is_empty()) {
            page.push_str(&details(runs));
        }
    }
    page
}

/// Nodegate's targets, with one column for each number of nodes.
fn targets(results: &Results) -> String {
    let mut table = Table::new(head("target".to_owned(), results));
    for target in TARGETS {
        let cells = results.sizes().map(|runs| {
            let measured = Spread::of(runs.iter().filter_map(|run| target.measured(run)));
            measured.map_or_else(String::new, |spread| {
                let text = figure(runs, &|run| target.measured(run), ratio).unwrap_or_default();
                if target.is_met(runs[0].nodes, spread.median) {
                    text
                } else {
                    format!("**{text}**")
                }
            })
        });
        table.row([target.what.to_owned()].into_iter().chain(cells));
    }
    format!(
        "\n## Targets\n\nWhat misses its target is **bold**.\n\n{}",
        table.text
    )
}

/// All phases of the runs with one number of nodes.
fn details(runs: &[Run]) -> String {
    let at_once: BTreeSet<usize> = runs.iter().map(|run| run.at_once).collect();
    let at_once: Vec<String> = at_once.iter().map(usize::to_string).collect();
    let mut text = format!(
        "\n## {} nodes\n\nThe limits are those of {} writes at a time.\n\n",
        count(runs[0].nodes),
        at_once.join(" or ")
    );
    let phases: BTreeSet<Phase> = runs
        .iter()
        .flat_map(|run| run.outcomes.iter().map(|outcome| outcome.phase))
        .collect();
    let head = "phase,changes,wall,limit,p50,p90,p99,max,CPU,API server's CPU,peak memory";
    let mut table = Table::new(head.split(',').map(str::to_owned));
    for phase in &phases {
        let cell = |format: fn(f64) -> String, value: &dyn Fn(&Outcome) -> Option<f64>| {
            let value: Value<'_> = &|run| value(run.outcome(*phase)?);
            figure(runs, value, format).unwrap_or_default()
        };
        let quantile = |quantile: Quantile| {
            cell(milliseconds, &|outcome| {
                outcome.latencies.as_ref().map(quantile)
            })
        };
        table.row([
            phase.name().to_owned(),
            cell(whole, &|outcome| Some(number(outcome.changes))),
            cell(seconds, &|outcome| Some(outcome.wall)),
            cell(seconds, &|outcome| Some(outcome.limit.as_ref()?.wall)),
            quantile(|latencies| latencies.p50),
            quantile(|latencies| latencies.p90),
            quantile(|latencies| latencies.p99),
            quantile(|latencies| latencies.max),
            cell(seconds, &|outcome| Some(outcome.cpu)),
            cell(seconds, &|outcome| outcome.api_server_cpu),
            cell(mebibytes, &|outcome| Some(outcome.peak_memory)),
        ]);
    }
    text.push_str(&table.text);
    text.push_str("\nThe controller's requests:\n\n");
    let kinds = [
        "taints",
        "node conditions",
        "events",
        "rules",
        "other writes",
        "lists",
        "watches",
        "failed",
    ];
    let mut table = Table::new(["phase"].iter().chain(&kinds).map(|&kind| kind.to_owned()));
    for phase in &phases {
        let cells = (0..kinds.len()).map(|kind| {
            let value: Value<'_> = &|run| Some(requests(run.outcome(*phase)?)[kind]);
            figure(runs, value, whole).unwrap_or_default()
        });
        table.row([phase.name().to_owned()].into_iter().chain(cells));
    }
    text.push_str(&table.text);
    let outcomes = || runs.iter().flat_map(|run| &run.outcomes);
    if outcomes().any(|outcome| outcome.bytes.is_some()) {
        text.push_str("\nOver the wire, with TLS:\n\n");
        let head = ["phase", "sent", "received", "for each change"].map(str::to_owned);
        let mut table = Table::new(head);
        for phase in &phases {
            let cells = (0..3).map(|way| {
                let value: Value<'_> = &|run| bytes(run.outcome(*phase)?)?[way];
                figure(runs, value, kibibytes).unwrap_or_default()
            });
            table.row([phase.name().to_owned()].into_iter().chain(cells));
        }
        text.push_str(&table.text);
    }
    for outcome in outcomes() {
        for trouble in troubles(outcome) {
            let _ = write!(text, "\n**{}**: {trouble}\n", outcome.phase.name());
        }
    }
    text
}

/// The number of requests of each kind: taints, conditions, events, rules, other writes, lists, watches, failures.
fn requests(outcome: &Outcome) -> [f64; 8] {
    let with = |verb: &str, resource: &str| {
        let requests = outcome.requests.iter();
        requests
            .filter(|(name, _)| name.starts_with(verb) && name.contains(resource))
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    let rules = with("patch ", "nodereadinessrules") + with("update ", "nodereadinessrules");
    let known = [taints(outcome), conditions(outcome), events(outcome), rules];
    let other = outcome.writes() - known.iter().sum::<u64>();
    let [taints, conditions, events, rules] = known;
    [
        taints,
        conditions,
        events,
        rules,
        other,
        with("list ", ""),
        with("watch ", ""),
        with("", " -> "),
    ]
    .map(precise)
}

/// KiB sent, received, and both per change, if counted.
fn bytes(outcome: &Outcome) -> Option<[Option<f64>; 3]> {
    let bytes = outcome.bytes?;
    let [sent, received] = [bytes.sent, bytes.received].map(|bytes| precise(bytes) / 1024.0);
    let each = (outcome.changes > 0).then(|| (sent + received) / number(outcome.changes));
    Some([Some(sent), Some(received), each])
}

/// The problems of a phase.
fn troubles(outcome: &Outcome) -> Vec<String> {
    let missed = (outcome.missed > 0).then(|| {
        format!(
            "{} of {} changes were not seen in time",
            outcome.missed, outcome.changes
        )
    });
    missed
        .into_iter()
        .chain(outcome.faults.iter().cloned())
        .collect()
}

/// The duration of a phase, and its ratio to the limit.
fn wall(outcome: &Outcome) -> String {
    let wall = seconds(outcome.wall);
    match (&outcome.limit, outcome.over_limit()) {
        (Some(limit), Some(ratio)) if ratio.is_finite() => match &limit.latencies {
            None => format!("{wall} ({ratio:.2} x {})", seconds(limit.wall)),
            Some(limit) => format!("{wall} (p99 {ratio:.2} x {})", milliseconds(limit.p99)),
        },
        (Some(_), _) => format!("over {wall}"),
        (None, _) => wall,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::outcome;

    #[test]
    fn a_phase_is_compared_with_its_limit_only_where_it_ended() {
        let outcome = |phase, missed| Outcome {
            missed,
            wall: 1.5,
            ..outcome(phase, &[("patch nodes", 9), ("list pods", 1)])
        };
        assert_eq!(wall(&outcome(Phase::Gate, 0)), "1.50 s (1.50 x 1.00 s)");
        assert_eq!(wall(&outcome(Phase::Gate, 1)), "over 1.50 s");
        assert_eq!(wall(&outcome(Phase::Single, 0)), "1.50 s");
        assert_eq!(
            line(&outcome(Phase::Delete, 2)),
            "delete: over 1.50 s, CPU 0.020 s, 41 MiB, 9 writes\n  WRONG: 2 of 10 changes were not seen in time"
        );
        assert_eq!(
            requests(&outcome(Phase::Gate, 0)).map(whole).join(" "),
            "9 0 0 0 0 1 0 0"
        );
    }
}
