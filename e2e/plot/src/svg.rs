//! Charts as SVG: panels in a grid, each with a title, a legend, axes and curves, for light and dark backgrounds.

use std::fmt::Write as _;

use crate::chart::{Axis, Chart, Series, Style};
use crate::legend::{GAP, Legend, SAMPLE};
use crate::number;

/// The plot's place within its panel, in pixels; around it are title, legend, tick texts and labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

/// The size of a panel drawn by [`draw`], and its plot.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 340.0;
const FRAME: Frame = Frame {
    left: 66.0,
    top: 84.0,
    right: WIDTH - 30.0,
    bottom: HEIGHT - 48.0,
};

/// The font size of [`draw`], and an approximate character width.
const FONT: f64 = 12.0;
const CHARACTER: f64 = 6.8;

/// The line spacing of the legend in [`draw`].
const LINE: f64 = 18.0;

/// The number of colours. Further curves are dashed.
const COLOURS: usize = 6;

/// Colours that colour-blind readers can distinguish (after Okabe and Ito), dark enough for a white background, and light
/// enough for a dark one.
const THEME: &str = "<style>\n\
    text{fill:#222}.ground{fill:#fff}.grid{stroke:#ddd}.panel{fill:#fff;stroke:#d0d7de}.faint{fill:#667}\n\
    .c0{color:#0072b2}.c1{color:#d55e00}.c2{color:#009e73}.c3{color:#a0508a}.c4{color:#b58900}.c5{color:#444}\n\
    @media (prefers-color-scheme:dark){\n\
    text{fill:#d8dee4}.ground{fill:#0d1117}.grid{stroke:#30363d}.panel{fill:#151b23;stroke:#30363d}.faint{fill:#9198a1}\n\
    .c0{color:#56b4e9}.c1{color:#f0883e}.c2{color:#3fb98a}.c3{color:#d38bc0}.c4{color:#e0b040}.c5{color:#bbb}}\n\
    </style>\n";

/// Draws charts in a grid with this many columns.
pub fn draw(charts: &[Chart], columns: usize) -> String {
    let columns = columns.clamp(1, charts.len().max(1));
    let rows = charts.len().div_ceil(columns);
    let mut svg = String::new();
    for (index, chart) in charts.iter().enumerate() {
        let x = WIDTH * number(index % columns);
        let y = HEIGHT * number(index / columns);
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        panel(&mut svg, chart);
        svg.push_str("</g>\n");
    }
    document(WIDTH * number(columns), HEIGHT * number(rows), FONT, &svg)
}

/// An SVG document of this size, with this content and font size.
pub fn document(width: f64, height: f64, font: f64, content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"{font}\">\n{THEME}<rect class=\"ground\" width=\"{width}\" \
         height=\"{height}\"/>\n{content}</svg>\n"
    )
}

fn panel(svg: &mut String, chart: &Chart) {
    text(
        svg,
        (FRAME.left, 22.0),
        "start",
        "font-size=\"14\" font-weight=\"600\"",
        &chart.title,
    );
    let lines = Legend::new(
        &chart.series,
        WIDTH - GAP - FRAME.left,
        CHARACTER,
        usize::MAX,
    );
    legend(svg, (FRAME.left, 44.0), LINE, &lines, &chart.series);
    plot(svg, FRAME, chart);
}

pub fn plot(svg: &mut String, frame: Frame, chart: &Chart) {
    horizontal(svg, frame, &chart.x);
    vertical(svg, frame, &chart.y);
    for series in &chart.series {
        curve(svg, frame, chart, series);
    }
}

/// Draws a legend: `at` is its first line of text, `apart` the line spacing.
pub fn legend(svg: &mut String, at: (f64, f64), apart: f64, legend: &Legend, series: &[Series]) {
    let (left, mut y) = at;
    for line in &legend.lines {
        for entry in line {
            let series = &series[entry.series];
            let x = left + entry.x;
            let (end, middle) = (x + SAMPLE, y - 4.0);
            let _ = writeln!(
                svg,
                "<line class=\"{}\" x1=\"{x:.1}\" y1=\"{middle:.1}\" x2=\"{end:.1}\" y2=\"{middle:.1}\" stroke=\"currentColor\" \
                 stroke-width=\"2\"{}/>",
                colour_of(series),
                dashes(series)
            );
            text(svg, (end + GAP, y), "start", "", &legend.name(series));
        }
        y += apart;
    }
    if legend.left_out > 0 {
        let more = format!("and {} more", legend.left_out);
        text(svg, (left, y), "start", "class=\"faint\"", &more);
    }
}

/// The CSS class of its colour.
fn colour_of(series: &Series) -> String {
    format!("c{}", series.colour % COLOURS)
}

fn horizontal(svg: &mut String, frame: Frame, axis: &Axis) {
    for tick in &axis.ticks {
        let x = left_of(frame, axis, *tick);
        grid_line(svg, (x, frame.top), (x, frame.bottom));
        let below = (x, frame.bottom + 17.0);
        text(svg, below, "middle", "", &axis.unit.text(*tick));
    }
    let middle = frame.left.midpoint(frame.right);
    label(svg, (middle, frame.bottom + 38.0), "", &axis.label);
}

fn vertical(svg: &mut String, frame: Frame, axis: &Axis) {
    for tick in &axis.ticks {
        let y = top_of(frame, axis, *tick);
        grid_line(svg, (frame.left, y), (frame.right, y));
        let beside = (frame.left - 7.0, y + 4.0);
        text(svg, beside, "end", "", &axis.unit.text(*tick));
    }
    let middle = frame.top.midpoint(frame.bottom);
    let x = frame.left - 50.0;
    let turned = format!("transform=\"rotate(-90 {x} {middle})\"");
    label(svg, (x, middle), &turned, &axis.label);
}

/// The label of an axis, unless it is empty.
fn label(svg: &mut String, at: (f64, f64), attributes: &str, content: &str) {
    if !content.is_empty() {
        text(svg, at, "middle", attributes, content);
    }
}

fn curve(svg: &mut String, frame: Frame, chart: &Chart, series: &Series) {
    let colour = colour_of(series);
    for (x, least, most) in &series.ranges {
        let x = left_of(frame, &chart.x, *x);
        let [bottom, top] = [least, most].map(|value| top_of(frame, &chart.y, *value));
        let _ = writeln!(
            svg,
            "<line class=\"{colour}\" x1=\"{x:.1}\" y1=\"{bottom:.1}\" x2=\"{x:.1}\" y2=\"{top:.1}\" stroke=\"currentColor\" \
             stroke-width=\"6\" stroke-opacity=\"0.25\"/>"
        );
    }
    let mut path = String::new();
    let mut height = frame.bottom;
    let mut is_down = false;
    for (x, y) in &series.points {
        if y.is_nan() {
            is_down = false;
            continue;
        }
        let (x, y) = (left_of(frame, &chart.x, *x), top_of(frame, &chart.y, *y));
        let command = if is_down { 'L' } else { 'M' };
        let _ = match series.style {
            Style::Steps => write!(path, "{command}{x:.1} {height:.1}L{x:.1} {y:.1}"),
            // A lone point becomes a dot.
            Style::Line if !is_down => write!(path, "M{x:.1} {y:.1}h0"),
            _ => write!(path, "{command}{x:.1} {y:.1}"),
        };
        is_down = true;
        if series.style == Style::Marks {
            let _ = writeln!(
                svg,
                "<circle class=\"{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"currentColor\"/>"
            );
        }
        height = y;
    }
    let _ = writeln!(
        svg,
        "<path class=\"{colour}\" d=\"{path}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"{}\" \
         stroke-linejoin=\"round\" stroke-linecap=\"round\"{}/>",
        if series.style == Style::Line {
            1.5
        } else {
            2.0
        },
        dashes(series)
    );
}

fn dashes(series: &Series) -> &'static str {
    match series.style {
        Style::Dashed => " stroke-dasharray=\"5 4\"",
        Style::Line if series.colour >= COLOURS => " stroke-dasharray=\"3 4\"",
        Style::Line | Style::Steps | Style::Marks => "",
    }
}

fn left_of(frame: Frame, axis: &Axis, value: f64) -> f64 {
    frame.left + axis.place(value) * (frame.right - frame.left)
}

fn top_of(frame: Frame, axis: &Axis, value: f64) -> f64 {
    frame.bottom - axis.place(value) * (frame.bottom - frame.top)
}

fn grid_line(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line class=\"grid\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// Writes a text with its start, middle or end at this place.
pub fn text(svg: &mut String, at: (f64, f64), anchor: &str, attributes: &str, content: &str) {
    let content = escape(content);
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" {attributes}>{content}</text>",
        at.0, at.1
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(style: Style) -> Chart {
        Chart {
            title: "CPU & memory < 1".to_owned(),
            x: Axis::linear("nodes", [10.0]),
            y: Axis::linear("seconds", [1.0]),
            series: vec![Series {
                name: "gate".to_owned(),
                colour: 0,
                points: vec![(0.0, 0.0), (10.0, 1.0)],
                ranges: vec![(10.0, 0.5, 1.0)],
                style,
            }],
        }
    }

    #[test]
    fn what_is_written_is_escaped_and_axes_are_labelled() {
        let svg = draw(&[chart(Style::Marks)], 2);
        for text in [
            "CPU &amp; memory &lt; 1",
            ">nodes</text>",
            ">seconds</text>",
            ">gate</text>",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn a_curve_goes_from_corner_to_corner() {
        let svg = draw(&[chart(Style::Dashed)], 1);
        assert!(svg.contains("d=\"M66.0 292.0L450.0 84.0\""), "{svg}");
        assert!(svg.contains("stroke-dasharray"), "{svg}");
        let range = "x1=\"450.0\" y1=\"188.0\" x2=\"450.0\" y2=\"84.0\"";
        assert!(svg.contains(range), "{svg}");
    }

    #[test]
    fn a_long_legend_goes_on_in_the_next_line() {
        let mut chart = chart(Style::Marks);
        chart.series = [0, 1, 2]
            .map(|colour| Series {
                name: "a name of thirty characters, so".to_owned(),
                colour,
                ..chart.series[0].clone()
            })
            .into();
        let svg = draw(&[chart], 1);
        for line in ["y=\"44.0\"", "y=\"62.0\"", "y=\"80.0\""] {
            assert_eq!(svg.matches(line).count(), 1, "{line}: {svg}");
        }
    }

    #[test]
    fn panels_stand_in_a_grid() {
        let svg = draw(
            &[
                chart(Style::Steps),
                chart(Style::Steps),
                chart(Style::Steps),
            ],
            2,
        );
        assert!(svg.contains("viewBox=\"0 0 960 680\""), "{svg}");
        assert!(svg.contains("translate(0 340)"), "{svg}");
    }
}
