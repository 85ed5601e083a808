//! Bar charts of durations, as inline SVG.

use super::html::Html;
use crate::cli::timeline::{Spread, StageKind, Start, length};

/// The width of a drawing, in SVG units.
const WIDTH: f64 = 900.0;
/// Where bars begin: names are on the left.
const LEFT: f64 = 330.0;
/// Where bars end: times are on the right.
const RIGHT: f64 = 780.0;
/// The height of a row.
const LINE: f64 = 20.0;

struct Bar {
    name: String,
    class: &'static str,
    from: f64,
    to: f64,
    time: String,
}

pub(super) fn of_start(start: &Start) -> Html {
    let times = start.stages.iter().filter_map(|stage| stage.seconds);
    let begun = times.fold(0.0, f64::min);
    let whole = (start.seconds - begun).max(0.001);
    let part = |seconds: f64| (seconds - begun) / whole;
    let bars = start.stages.iter().map(|stage| {
        let end = stage.seconds.unwrap_or(start.seconds);
        let is_condition = stage.kind == StageKind::Condition;
        Bar {
            name: if is_condition {
                stage.condition.clone()
            } else {
                stage.kind.words().into()
            },
            class: match stage.seconds {
                None => "bad",
                Some(_) if stage.last => "poor",
                Some(_) if is_condition => "good",
                Some(_) => "mark",
            },
            from: if is_condition { part(0.0) } else { part(end) },
            to: part(end),
            time: match stage.seconds {
                Some(seconds) => length(seconds),
                None => "not yet".into(),
            },
        }
    });
    draw(bars.collect())
}

/// How long conditions take: p50, p90 and maximum.
pub(super) fn of_spreads(spreads: &[&Spread]) -> Html {
    let whole = spreads
        .iter()
        .map(|spread| spread.max)
        .fold(0.001, f64::max);
    let bars = spreads.iter().flat_map(|spread| {
        let name = if spread.condition.is_empty() {
            format!("{}: opened", spread.rule)
        } else {
            format!("{}: {}", spread.rule, spread.condition)
        };
        [
            (name, "good", spread.p50, "p50"),
            (String::new(), "poor", spread.p90, "p90"),
            (String::new(), "bad", spread.max, "max"),
        ]
        .map(|(name, class, seconds, word)| Bar {
            name,
            class,
            from: 0.0,
            to: seconds / whole,
            time: format!("{word} {}", length(seconds)),
        })
    });
    draw(bars.collect())
}

#[allow(clippy::cast_precision_loss, reason = "there are not that many lines")]
fn draw(bars: Vec<Bar>) -> Html {
    let height = bars.len() as f64 * LINE;
    let lines = bars.into_iter().enumerate().map(|(index, bar)| {
        let top = index as f64 * LINE;
        let x = |part: f64| LEFT + part.clamp(0.0, 1.0) * (RIGHT - LEFT);
        let (from, to) = (x(bar.from), x(bar.to));
        let text = |text: &str, x: f64, anchor: &str| {
            let (x, y) = (number(x), number(top + 14.0));
            Html::text(text).within("text", &[("x", &x), ("y", &y), ("text-anchor", anchor)])
        };
        let width = number((to - from).max(2.0));
        let (from, top) = (number(from), number(top + 4.0));
        let height = number(LINE - 8.0);
        let rect = Html::default().within(
            "rect",
            &[
                ("class", bar.class),
                ("x", &from),
                ("y", &top),
                ("width", &width),
                ("height", &height),
                ("rx", "2"),
            ],
        );
        let name = shortened(&bar.name);
        let title = Html::text(&format!("{} {}", bar.name, bar.time)).within("title", &[]);
        let line = title.with(text(&name, LEFT - 8.0, "end")).with(rect);
        line.with(text(&bar.time, RIGHT + 8.0, "start"))
            .within("g", &[])
    });
    let lines: Html = lines.collect();
    let frame = format!("0 0 {} {}", number(WIDTH), number(height));
    lines.within(
        "svg",
        &[
            ("viewBox", &frame),
            ("role", "img"),
            ("xmlns", "http://www.w3.org/2000/svg"),
        ],
    )
}

/// A name that fits beside a bar; its title has the full name.
fn shortened(name: &str) -> String {
    const FITS: usize = 46;
    let count = name.chars().count();
    if count <= FITS {
        return name.into();
    }
    let end: String = name.chars().skip(count - FITS + 1).collect();
    format!("…{end}")
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}
