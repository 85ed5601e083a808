//! Timelines as text.

use super::Timeline;
use super::bar::{bar, length};
use super::spread::Spread;
use super::start::{StageKind, Start, StartStage};
use crate::cli::page::{Column, Line, Look, Page, Render};
use crate::wording::counted;

/// The assumed width of a page that does not wrap.
const WIDTH: usize = 100;
/// The minimum and maximum width of a bar.
const BAR: (usize, usize) = (8, 60);

const CONDITIONS: [Column; 8] = [
    Column::new("RULE").goes(1),
    Column::new("CONDITION"),
    Column::new("NODES").goes(2),
    Column::new("P50").goes(4),
    Column::new("P90"),
    Column::new("MAX").goes(3),
    Column::new("LAST ON").goes(5),
    Column::new("DELAY"),
];
const STARTS: [Column; 5] = [
    Column::new("NODE"),
    Column::new("RULE").goes(1),
    Column::new("TOOK"),
    Column::new("").goes(2),
    Column::new("LAST CONDITION").wraps(),
];
/// Its rows have no heads.
const STAGES: [Column; 3] = [
    Column::new(""),
    Column::new("").goes(1),
    Column::new("").wraps(),
];

impl Render for Timeline {
    const KIND: &'static str = "Timeline";

    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        match self.node {
            Some(_) => {
                for start in &self.starts {
                    of_start(start, page, &mut out);
                }
            }
            None => of_fleet(self, page, &mut out),
        }
        page.notes(&mut out, &self.notes);
        out
    }

    fn names(&self) -> Vec<String> {
        if let Some(node) = &self.node {
            return vec![format!("node/{node}")];
        }
        let starts = self.starts.iter();
        starts.map(|start| format!("node/{}", start.node)).collect()
    }
}

/// A node's start, one row for each stage.
fn of_start(start: &Start, page: &Page, out: &mut String) {
    let head = Line::new()
        .strong(format!("node/{}", start.node))
        .plain("  ");
    let took = length(start.seconds);
    let head = match start.opened {
        Some(_) => head.good("opened").plain(format!(" after {took}")),
        None => head.bad("held").plain(format!(" for {took} so far")),
    };
    let head = head.plain(" under ");
    page.line(out, head.strong(format!("rule/{}", start.rule)));
    let begun = start
        .stages
        .iter()
        .filter_map(|stage| stage.seconds)
        .fold(0.0, f64::min);
    let width = bar_width(
        page,
        start.stages.iter().map(|stage| name(stage).chars().count()),
    );
    let whole = (start.seconds - begun).max(0.001);
    let part = |seconds: f64| (seconds - begun) / whole;
    let rows: Vec<Vec<Line>> = start
        .stages
        .iter()
        .map(|stage| {
            let end = stage.seconds.unwrap_or(start.seconds);
            let bar = match stage.kind {
                StageKind::Condition => bar(part(0.0), part(end), width),
                _ => bar(part(end), part(end), width),
            };
            let (look, time) = match (stage.seconds, stage.kind) {
                (None, StageKind::Opened) => (Look::Plain, "not yet".into()),
                (None, _) => (Look::Bad, format!("not yet, after {}", length(end))),
                (Some(seconds), StageKind::Condition) if stage.last => {
                    (Look::Poor, format!("{}, the last", length(seconds)))
                }
                (Some(seconds), StageKind::Condition) => (Look::Good, length(seconds)),
                (Some(seconds), _) => (Look::Plain, length(seconds)),
            };
            let bar = match (stage.seconds, stage.kind) {
                (None, StageKind::Opened) => String::new(),
                _ => bar,
            };
            vec![
                Line::from("  ".to_owned() + name(stage)),
                Line::new().with(look, bar),
                time.into(),
            ]
        })
        .collect();
    page.table(out, &STAGES, &rows);
    if start.left_out > 0 {
        let line = format!("  and {} conditions that were met earlier", start.left_out);
        page.line(out, Line::new().faint(line));
    }
}

fn name(stage: &StartStage) -> &str {
    match stage.kind {
        StageKind::Condition => &stage.condition,
        kind => kind.words(),
    }
}

/// The width that is left for bars beside these names and the times.
fn bar_width(page: &Page, names: impl Iterator<Item = usize>) -> usize {
    const BESIDE: usize = 26;
    let width = page.width.unwrap_or(WIDTH);
    let names = names.max().unwrap_or_default();
    width.saturating_sub(names + BESIDE).clamp(BAR.0, BAR.1)
}

/// The whole fleet: conditions with their delay, and the slowest starts.
fn of_fleet(timeline: &Timeline, page: &Page, out: &mut String) {
    let Timeline { recorded, held, .. } = timeline;
    let mut head = Line::new().plain(format!("{} on record", counted(*recorded, "start")));
    if *held > 0 {
        head = head.plain(", ").bad(format!("{held} not ended yet"));
    }
    page.line(out, head);
    if timeline.starts.is_empty() {
        return;
    }
    out.push('\n');
    let rows: Vec<_> = timeline.conditions.iter().map(of_spread).collect();
    page.table(out, &CONDITIONS, &rows);
    out.push('\n');
    let names = timeline.starts.iter().map(|start| {
        let last = start.last().map_or(0, |last| last.condition.len());
        start.node.len() + start.rule.len() + last
    });
    let width = bar_width(page, names);
    let whole = timeline
        .starts
        .first()
        .map_or(0.0, |start| start.seconds)
        .max(0.001);
    let rows: Vec<_> = timeline
        .starts
        .iter()
        .map(|start| {
            let look = start.opened.map_or(Look::Bad, |_| Look::Plain);
            let last = start.last().map_or("", |last| &last.condition);
            vec![
                Line::new().strong(&start.node),
                start.rule.as_str().into(),
                length(start.seconds).into(),
                Line::new().with(look, bar(0.0, start.seconds / whole, width)),
                match start.opened {
                    Some(_) => last.into(),
                    None => Line::new().bad("held by ").plain(last),
                },
            ]
        })
        .collect();
    page.table(out, &STARTS, &rows);
}

fn of_spread(spread: &Spread) -> Vec<Line> {
    let is_whole = spread.condition.is_empty();
    let condition = if is_whole {
        Line::new().faint("opened")
    } else {
        spread.condition.as_str().into()
    };
    let nodes = match spread.waiting {
        0 => spread.nodes.to_string(),
        waiting => format!("{} (+{waiting} waiting)", spread.nodes),
    };
    let delay = match spread.delay {
        _ if is_whole => Line::new(),
        delay if delay >= 1.0 => Line::new().poor(length(delay)),
        delay => length(delay).into(),
    };
    let last = if is_whole {
        String::new()
    } else {
        spread.last.to_string()
    };
    let time = |seconds: f64| match spread.nodes {
        0 => Line::from("-"),
        _ => length(seconds).into(),
    };
    vec![
        spread.rule.as_str().into(),
        condition,
        nodes.into(),
        time(spread.p50),
        time(spread.p90),
        time(spread.max),
        last.into(),
        delay,
    ]
}
