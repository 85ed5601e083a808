//! Draws the head, the nodes or an explanation, and the keys; and renders the fleet once as a table.

use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Drawn, Span};

use super::closed::{Closed, Closure, Fleet};
use super::state::{Opened, TopState};
use crate::cli::page::{Column, Line, Look, Page, Render, clipped};
use crate::cli::status::text;

/// Lines above the nodes: counts, leader, problem, and column heads.
const ABOVE: usize = 4;
/// Lines below the nodes: the keys.
const BELOW: usize = 1;

const KEYS: &str = "↑↓ move  PgUp/PgDn page  enter explain  s sort  / filter  esc show all  q quit";
const KEYS_OF_NODE: &str = "↑↓ scroll  r read again  esc back  ctrl-c quit";

/// How many nodes or explanation lines fit on a screen of this height.
pub(crate) fn page_length(height: u16) -> usize {
    usize::from(height).saturating_sub(ABOVE + BELOW).max(1)
}

/// Draws the current view.
pub(crate) fn draw(frame: &mut Frame<'_>, fleet: &Fleet, state: &TopState, colour: bool) {
    let area = frame.area();
    let page = Page {
        width: Some(area.width.into()),
        ..Page::plain(fleet.at)
    };
    let mut lines: Vec<(Line, bool)> = head(fleet, &page)
        .into_iter()
        .map(|line| (line, false))
        .collect();
    let room = page_length(area.height);
    match &state.opened {
        Some(opened) => lines.extend(explanation(opened, room)),
        None => lines.extend(nodes(fleet, state, &page, room)),
    }
    lines.truncate(ABOVE + room);
    let buffer = frame.buffer_mut();
    let mut put = |y: usize, line: &Line, is_marked: bool| {
        let Some(y) = u16::try_from(y).ok().filter(|y| *y < area.height) else {
            return;
        };
        let line = line.clone().clipped(area.width.into());
        let mut drawn = drawn(&line, colour);
        if is_marked {
            drawn = drawn.style(Modifier::REVERSED);
            buffer.set_style(
                ratatui::layout::Rect::new(0, y, area.width, 1),
                Modifier::REVERSED,
            );
        }
        buffer.set_line(0, y, &drawn, area.width);
    };
    for (y, (line, is_marked)) in lines.iter().enumerate() {
        put(y, line, *is_marked);
    }
    let keys = Line::new().faint(keys(state));
    put(usize::from(area.height).saturating_sub(1), &keys, false);
}

fn keys(state: &TopState) -> String {
    if state.is_typing {
        format!("filter: {}_  enter done  esc show all", state.filter)
    } else if state.opened.is_some() {
        KEYS_OF_NODE.into()
    } else {
        KEYS.into()
    }
}

/// Three lines: the counts, the leader, and the most important problem.
pub(super) fn head(fleet: &Fleet, page: &Page) -> [Line; 3] {
    let joining = match fleet.joining {
        0 => String::new(),
        count => format!("  ({count} joining)"),
    };
    let wrong = if let Some(problem) = &fleet.problem {
        let said = format!("not up to date: {problem}");
        Line::new().bad(said)
    } else if !fleet.suspended.is_empty() {
        let said = format!("suspended   {}", fleet.suspended.join(", "));
        Line::new().poor(said)
    } else if let Some(note) = fleet.notes.first() {
        Line::new().poor("note: ").plain(note)
    } else {
        Line::new()
    };
    [
        text::nodes(&fleet.nodes).plain(joining),
        text::leader(fleet.leader.as_ref(), fleet.leader_unknown.as_deref(), page),
        wrong,
    ]
}

pub(super) fn row(closed: &Closed, page: &Page) -> Vec<Line> {
    let look = match closed.state {
        Closure::Joining => Look::Poor,
        Closure::Held | Closure::Closing => Look::Bad,
        Closure::Opening => Look::Good,
    };
    let age = closed.since.map_or_else(|| "?".into(), |at| page.age(at));
    vec![
        Line::new().strong(&*closed.node),
        Line::new().with(look, closed.state.word()),
        age.into(),
        closed.rules.join(", ").into(),
        closed.why.as_str().into(),
    ]
}

const COLUMNS: [Column; 5] = [
    Column::new("NODE"),
    Column::new("STATE").goes(2),
    Column::new("FOR").goes(1),
    Column::new("BY").goes(3),
    Column::new("WHY").wraps(),
];

/// The column heads and the page with the selected node; the flag marks the selected line.
fn nodes(fleet: &Fleet, state: &TopState, page: &Page, room: usize) -> Vec<(Line, bool)> {
    let shown = state.shown(fleet);
    let place = state.place(&shown);
    let first = place - place % room;
    let on_page = shown.iter().skip(first).take(room);
    let rows: Vec<Vec<Line>> = on_page.map(|it| row(it, page)).collect();
    let lines = clipped(&COLUMNS, &rows, page.width.unwrap_or(usize::MAX));
    let mut lines: Vec<(Line, bool)> = lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| (line, index > 0 && first + index - 1 == place))
        .collect();
    let how = match (shown.len(), state.filter.as_str()) {
        (0, "") => "no node is closed".into(),
        (count, "") => format!("{count} closed, {}", state.sort.word()),
        (count, filter) => {
            let all = fleet.closed.len();
            format!(
                "{count} of {all} closed with {filter:?}, {}",
                state.sort.word()
            )
        }
    };
    if let Some((head, _)) = lines.first_mut() {
        *head = head.clone().faint(format!("   ({how})"));
    }
    lines
}

fn explanation(opened: &Opened, room: usize) -> Vec<(Line, bool)> {
    let head = Line::new().faint(format!("node/{}", opened.node));
    let mut lines = vec![(head, false)];
    match &opened.lines {
        Some(all) => {
            let shown = all.iter().skip(opened.first).take(room);
            lines.extend(shown.map(|line| (line.clone(), false)));
        }
        None => lines.push(("reading...".into(), false)),
    }
    lines
}

/// A line with or without colours, as ratatui draws it.
fn drawn(line: &Line, colour: bool) -> Drawn<'static> {
    let pieces = line.pieces().map(|(look, text)| {
        let style = match look {
            _ if !colour => Style::new(),
            Look::Plain => Style::new(),
            Look::Strong => Style::new().add_modifier(Modifier::BOLD),
            Look::Faint => Style::new().add_modifier(Modifier::DIM),
            Look::Good => Style::new().fg(Color::Green),
            Look::Poor => Style::new().fg(Color::Yellow),
            Look::Bad => Style::new().fg(Color::Red),
        };
        Span::styled(text, style)
    });
    pieces.collect()
}

impl Render for Fleet {
    const KIND: &'static str = "Fleet";

    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        for line in head(self, page).into_iter().filter(|it| !it.is_empty()) {
            page.line(&mut out, line);
        }
        out.push('\n');
        if self.closed.is_empty() {
            page.line(&mut out, Line::new().good("no node is closed"));
        } else {
            let rows: Vec<_> = self.closed.iter().map(|it| row(it, page)).collect();
            page.table(&mut out, &COLUMNS, &rows);
        }
        out
    }

    fn names(&self) -> Vec<String> {
        let closed = self.closed.iter();
        closed.map(|it| format!("node/{}", it.node)).collect()
    }
}
