//! Charts as SVG: panels in a grid, each with a title, a legend, axes and curves. Pure.

use std::fmt::Write as _;

use crate::chart::{Axis, Chart, Series, Style, tick_text};
use crate::measure::number;

/// The size of a panel, in pixels.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 340.0;

/// What surrounds the plot in its panel: title and legend above, tick texts and labels left and below.
const TOP: f64 = 84.0;
const RIGHT: f64 = 30.0;
const BOTTOM: f64 = 48.0;
const LEFT: f64 = 66.0;

/// How wide a character is, about, in the legend.
const CHARACTER: f64 = 6.8;

/// How far apart the legend's lines are.
const LINE: f64 = 18.0;

/// The length of a line in the legend, and the gap behind it and behind its text.
const SAMPLE: f64 = 16.0;
const GAP: f64 = 5.0;

/// Colours that can be told apart by the colour-blind too (after Okabe and Ito), dark enough for a white ground.
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#a0508a", "#b58900", "#444444",
];

/// Draws charts beside and below each other, so many in a row.
#[must_use]
pub fn draw(charts: &[Chart], columns: usize) -> String {
    let columns = columns.clamp(1, charts.len().max(1));
    let rows = charts.len().div_ceil(columns);
    let (width, height) = (WIDTH * number(columns), HEIGHT * number(rows));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#222222\">\n<rect width=\"{width}\" \
         height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (index, chart) in charts.iter().enumerate() {
        let x = WIDTH * number(index % columns);
        let y = HEIGHT * number(index / columns);
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        panel(&mut svg, chart);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, chart: &Chart) {
    text(
        svg,
        (LEFT, 22.0),
        "start",
        "font-size=\"14\" font-weight=\"600\"",
        &chart.title,
    );
    legend(svg, &chart.series);
    horizontal(svg, &chart.x);
    vertical(svg, &chart.y);
    for series in &chart.series {
        curve(svg, chart, series);
    }
}

/// What each curve is called, in as many lines as that takes, of which there is room for two.
fn legend(svg: &mut String, series: &[Series]) {
    let (mut x, mut y) = (LEFT, 44.0);
    for series in series {
        let colour = colour_of(series);
        let width = SAMPLE + GAP + CHARACTER * number(series.name.chars().count());
        if x > LEFT && x + width > WIDTH - GAP {
            (x, y) = (LEFT, y + LINE);
        }
        let (end, line) = (x + SAMPLE, y - 4.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{line}\" x2=\"{end:.1}\" y2=\"{line}\" stroke=\"{colour}\" stroke-width=\"2\"{}/>",
            dashes(series.style)
        );
        text(svg, (end + GAP, y), "start", "", &series.name);
        x += width + 2.0 * GAP;
    }
}

fn colour_of(series: &Series) -> &'static str {
    COLOURS[series.colour % COLOURS.len()]
}

fn horizontal(svg: &mut String, axis: &Axis) {
    for tick in &axis.ticks {
        let x = left_of(axis, *tick);
        grid_line(svg, (x, TOP), (x, HEIGHT - BOTTOM));
        text(
            svg,
            (x, HEIGHT - BOTTOM + 17.0),
            "middle",
            "",
            &tick_text(*tick),
        );
    }
    let middle = LEFT.midpoint(WIDTH - RIGHT);
    text(svg, (middle, HEIGHT - 10.0), "middle", "", &axis.label);
}

fn vertical(svg: &mut String, axis: &Axis) {
    for tick in &axis.ticks {
        let y = top_of(axis, *tick);
        grid_line(svg, (LEFT, y), (WIDTH - RIGHT, y));
        text(svg, (LEFT - 7.0, y + 4.0), "end", "", &tick_text(*tick));
    }
    let middle = TOP.midpoint(HEIGHT - BOTTOM);
    let turned = format!("transform=\"rotate(-90 16 {middle})\"");
    text(svg, (16.0, middle), "middle", &turned, &axis.label);
}

fn curve(svg: &mut String, chart: &Chart, series: &Series) {
    let colour = colour_of(series);
    for (x, least, most) in &series.ranges {
        let x = left_of(&chart.x, *x);
        let [bottom, top] = [least, most].map(|value| top_of(&chart.y, *value));
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{bottom:.1}\" x2=\"{x:.1}\" y2=\"{top:.1}\" stroke=\"{colour}\" stroke-width=\"6\" \
             stroke-opacity=\"0.25\"/>"
        );
    }
    let points = series.points.iter();
    let mut path = String::new();
    let mut height = HEIGHT - BOTTOM;
    for (index, (x, y)) in points.enumerate() {
        let (x, y) = (left_of(&chart.x, *x), top_of(&chart.y, *y));
        if series.style == Style::Steps {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{x:.1} {height:.1}L{x:.1} {y:.1}");
        } else {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{x:.1} {y:.1}");
        }
        if series.style == Style::Marks {
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
        height = y;
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"{}/>",
        dashes(series.style)
    );
}

fn dashes(style: Style) -> &'static str {
    match style {
        Style::Dashed => " stroke-dasharray=\"5 4\"",
        Style::Steps | Style::Marks => "",
    }
}

fn left_of(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.place(value) * (WIDTH - LEFT - RIGHT)
}

fn top_of(axis: &Axis, value: f64) -> f64 {
    HEIGHT - BOTTOM - axis.place(value) * (HEIGHT - TOP - BOTTOM)
}

fn grid_line(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, attributes: &str, content: &str) {
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
