//! `status --watch`: the status redrawn on a terminal, and elsewhere a line for each change.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use terminal_size::{Height, terminal_size};
use tokio::time::timeout_at;

use super::access::{configured, page, source, write};
use crate::command::CommonArgs;
use crate::page::Render;
use crate::read::Live;
use crate::rows::{RuleOnNode, State, rows};
use crate::snapshot::Snapshot;
use crate::status::status;
use nodegate_cluster::process::told_to_stop;
use nodegate_core::text::printable;

/// Changes within this time are shown together.
const TOGETHER: Duration = Duration::from_millis(200);
/// The longest time between two evaluations, so that changes by time alone are seen.
const AT_LEAST: Duration = Duration::from_secs(5);

/// Follows the status until the reader is gone or the process is told to stop.
pub(super) async fn run(common: &CommonArgs) -> anyhow::Result<ExitCode> {
    let source = source(&common.access).await?;
    let mut live = Live::begin(&source, configured(&common.access)?).await?;
    let mut stop = std::pin::pin!(told_to_stop()?);
    let is_terminal = std::io::stdout().is_terminal();
    let mut held = BTreeMap::new();
    let mut told = None;
    loop {
        let (read, problem) = live.read();
        if !is_terminal && problem != told.as_ref() {
            let state = problem.map_or("up to date again", String::as_str);
            eprintln!("note: {}", printable(state));
            told = problem.cloned();
        }
        let text: String = if is_terminal {
            let mut status = status(read);
            let stale = problem.map(|problem| format!("not up to date: {problem}"));
            status.notes.extend(stale);
            let text = status.text(&page(common, read.at));
            let height: usize = terminal_size().map_or(24, |(_, Height(rows))| rows.into());
            let shown = text.lines().take(height.saturating_sub(1));
            let lines = shown.flat_map(|line| [line, "\u{1b}[K\n"]);
            let lines = ["\u{1b}[H"].into_iter().chain(lines);
            lines.chain(["\u{1b}[J"]).collect()
        } else {
            changes(&mut held, read)
        };
        if !write(&text)? {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            () = &mut stop => return Ok(ExitCode::SUCCESS),
            () = change(&mut live, Instant::now() + AT_LEAST) => {}
        }
    }
}

type Pair = (Arc<str>, Arc<str>);

/// A line for each taint of a rule that came, stays for another reason than before, or went: time, node, what, rule, why.
fn changes(held: &mut BTreeMap<Pair, RuleOnNode>, read: &Snapshot) -> String {
    let rows = rows(read).into_iter();
    let is_governed = |it: &RuleOnNode| it.holds() || it.state == State::Releasing;
    let rows = rows.filter(|it| it.tainted && is_governed(it));
    let now = rows.map(|it| ((it.node.clone(), it.rule.clone()), it));
    let now: BTreeMap<Pair, RuleOnNode> = now.collect();
    let at = read.at;
    let gone = held.keys().filter(|pair| !now.contains_key(*pair));
    let gone = gone.map(|(node, rule)| {
        let is_there = read.view.node(node).is_some();
        let what = if is_there { "released" } else { "gone" };
        format!("{at:.0} {node} {what} {rule}")
    });
    let news = now.iter().filter(|(pair, it)| {
        let before = held.get(*pair);
        before.is_none_or(|before| it.holds() && before.why != it.why)
    });
    let news = news.map(|((node, rule), it)| format!("{at:.0} {node} held {rule} {}", it.why));
    let lines = gone.chain(news).map(|line| printable(line) + "\n");
    let lines: String = lines.collect();
    *held = now;
    lines
}

/// Waits for a change, until this time at the latest, and for those that follow at once.
pub(super) async fn change(live: &mut Live<'_>, by: Instant) {
    // A timeout is fine.
    let _ = timeout_at(by.into(), live.changed()).await;
    let end = Instant::now() + TOGETHER;
    while Instant::now() < end && timeout_at(end.into(), live.changed()).await.is_ok() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use crate::testing::{GATE, at, node, rule};

    #[test]
    fn only_taints_that_were_seen_are_told() {
        let mut held = BTreeMap::new();
        let mut told = |node, second| {
            let scene = Scene::default().rule(&rule("r").waits_for("Net"));
            changes(&mut held, &scene.node(node).read(at(second)))
        };
        let tainted = || node("n").dated_taint(GATE, "NoSchedule");
        let met = || tainted().condition("Net", "True");
        let why = "Net is not reported (counts as Unknown, must be True)";
        let came = format!("2026-01-01T00:01:10Z n held r {why}\n");
        for (what, node, second, expected) in [
            ("to be gated", node("n"), 60, ""),
            (
                "met before it was",
                node("n").condition("Net", "True"),
                65,
                "",
            ),
            ("gated", tainted(), 70, &*came),
            ("the same", tainted(), 75, ""),
            ("to be released", met(), 80, ""),
            (
                "released",
                node("n").condition("Net", "True"),
                85,
                "2026-01-01T00:01:25Z n released r\n",
            ),
        ] {
            assert_eq!(told(node, second), expected, "{what}");
        }
    }
}
