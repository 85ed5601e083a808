//! A recording as an SVG that CSS animates: each piece of text appears at its time, and lines scroll as in a terminal. It
//! repeats after a while; readers who prefer no motion get its end.

use std::fmt::Write as _;
use std::time::Duration;

use super::terminal::{COLUMNS, ROWS, Terminal};

/// The size of a character, and the margins.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 19.0;
const MARGIN: f64 = 16.0;
const BAR: f64 = 30.0;
/// How long the end is shown.
const REST: Duration = Duration::from_secs(6);

/// A part of a line with one style that appears at one time.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    at: Duration,
    row: usize,
    column: usize,
    look: &'static str,
    text: String,
}

pub(super) fn draw(terminal: &Terminal) -> String {
    let (pieces, scrolls) = pieces(terminal.events());
    let length = terminal.end() + REST;
    let percent = |at: Duration| 100.0 * at.as_secs_f64() / length.as_secs_f64();
    let (width, height) = (
        f64::from(COLUMNS) * WIDTH + 2.0 * MARGIN,
        f64::from(ROWS) * HEIGHT + 2.0 * MARGIN + BAR,
    );
    let mut times: Vec<Duration> = pieces.iter().map(|piece| piece.at).collect();
    times.dedup();
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"kubectl nodegate status, explain and timeline in a terminal\">\n\
         <style>\n\
         text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d7dde8;white-space:pre}}\n\
         .b{{font-weight:700;fill:#fff}}.f{{fill:#8b95a7}}.g{{fill:#6fcf97}}.p{{fill:#e8b04b}}.r{{fill:#f2776b}}\n\
         g g,.s{{animation:{:.2}s step-end infinite}}\n",
        length.as_secs_f64()
    );
    for (number, at) in times.iter().enumerate() {
        let percent = percent(*at);
        let _ = writeln!(
            out,
            "@keyframes k{number}{{0%{{opacity:0}}{percent:.3}%{{opacity:1}}}}.k{number}{{animation-name:k{number}}}"
        );
    }
    out.push_str("@keyframes up{0%{transform:none}");
    let mut last = 0;
    for (at, rows) in scrolls {
        last = rows;
        let _ = write!(
            out,
            "{:.3}%{{transform:translateY({}px)}}",
            percent(at),
            offset(rows)
        );
    }
    let up = offset(last);
    let _ = write!(
        out,
        "100%{{transform:translateY({up}px)}}}}\n.s{{animation-name:up;transform:translateY({up}px)}}\n\
         @media (prefers-reduced-motion:reduce){{g g,.s{{animation:none}}}}\n\
         </style>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"10\" fill=\"#14181f\"/>\n\
         <circle cx=\"22\" cy=\"20\" r=\"6\" fill=\"#f2776b\"/><circle cx=\"42\" cy=\"20\" r=\"6\" fill=\"#e8b04b\"/>\
         <circle cx=\"62\" cy=\"20\" r=\"6\" fill=\"#6fcf97\"/>\n\
         <svg x=\"{MARGIN}\" y=\"{}\" width=\"{:.0}\" height=\"{:.0}\">\n<g class=\"s\">\n",
        MARGIN + BAR - 4.0,
        f64::from(COLUMNS) * WIDTH,
        f64::from(ROWS) * HEIGHT + 4.0,
    );
    for (number, at) in times.iter().enumerate() {
        let _ = write!(out, "<g class=\"k{number}\">");
        for piece in pieces.iter().filter(|piece| piece.at == *at) {
            write_piece(&mut out, piece);
        }
        out.push_str("</g>\n");
    }
    out.push_str("</g>\n</svg>\n</svg>\n");
    out
}

#[expect(
    clippy::cast_precision_loss,
    reason = "there are some hundred lines at most"
)]
fn write_piece(out: &mut String, piece: &Piece) {
    let columns = piece.text.chars().count();
    let (x, y) = (
        piece.column as f64 * WIDTH,
        (piece.row as f64 + 0.8) * HEIGHT,
    );
    let class = match piece.look {
        "" => String::new(),
        look => format!(" class=\"{look}\""),
    };
    // Keeps the columns aligned in any font.
    let length = columns as f64 * WIDTH;
    let mut text = String::new();
    for character in piece.text.chars() {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            character => text.push(character),
        }
    }
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"{class}>{text}</text>"
    );
}

/// How far the lines have scrolled with this many above the first visible one.
#[expect(
    clippy::cast_precision_loss,
    reason = "there are some hundred lines at most"
)]
fn offset(rows: usize) -> f64 {
    -(rows as f64) * HEIGHT
}

/// The pieces, and the times of scrolling with the number of lines above the first visible one.
fn pieces(events: &[(Duration, String)]) -> (Vec<Piece>, Vec<(Duration, usize)>) {
    let (mut pieces, mut scrolls) = (Vec::new(), Vec::new());
    let (mut row, mut column, mut look) = (0, 0, "");
    for (at, text) in events {
        let mut rest = text.as_str();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("\r\n") {
                (row, column, rest) = (row + 1, 0, after);
                continue;
            }
            if let Some(after) = rest.strip_prefix("\u{1b}[")
                && let Some((code, after)) = after.split_once('m')
            {
                look = match code {
                    "1" => "b",
                    "2" => "f",
                    "32" => "g",
                    "33" => "p",
                    "31" => "r",
                    _ => "",
                };
                rest = after;
                continue;
            }
            let end = rest.find(['\r', '\u{1b}']).unwrap_or(rest.len()).max(1);
            let (line, after) = rest.split_at(end);
            place(&mut pieces, *at, row, column, look, line);
            (column, rest) = (column + line.chars().count(), after);
        }
        let above = (row + 1).saturating_sub(usize::from(ROWS));
        if above > scrolls.last().map_or(0, |(_, above)| *above) {
            scrolls.push((*at, above));
        }
    }
    (pieces, scrolls)
}

/// Places a text, word by word where wide gaps separate them.
fn place(
    pieces: &mut Vec<Piece>,
    at: Duration,
    row: usize,
    column: usize,
    look: &'static str,
    line: &str,
) {
    let mut column = column;
    for word in line.split_inclusive("  ") {
        let text = word.trim_start();
        let indent = word.chars().count() - text.chars().count();
        let shown = text.trim_end();
        if !shown.is_empty() {
            pieces.push(Piece {
                at,
                row,
                column: column + indent,
                look,
                text: shown.to_owned(),
            });
        }
        column += word.chars().count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_where_a_terminal_has_it() {
        let at = Duration::from_secs;
        let events = [
            (at(1), "\u{1b}[32m$\u{1b}[0m ".to_owned()),
            (at(2), "ls\r\n".to_owned()),
            (at(3), "a   <b>\r\n".to_owned()),
        ];
        let (pieces, scrolls) = pieces(&events);
        let pieces: Vec<_> = pieces
            .iter()
            .map(|it| (it.at, it.row, it.column, it.look, it.text.as_str()))
            .collect();
        assert_eq!(
            pieces,
            [
                (at(1), 0, 0, "g", "$"),
                (at(2), 0, 2, "", "ls"),
                (at(3), 1, 0, "", "a"),
                (at(3), 1, 4, "", "<b>"),
            ]
        );
        assert!(scrolls.is_empty());
    }

    #[test]
    fn lines_move_up_where_the_terminal_is_full() {
        let line = (Duration::from_secs(1), "x\r\n".to_owned());
        let events = vec![line; usize::from(ROWS) + 2];
        let (_, scrolls) = pieces(&events);
        assert_eq!(scrolls.last().map(|it| it.1), Some(3));
    }
}
