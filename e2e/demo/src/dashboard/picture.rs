//! The panels with their curves, placed as in the dashboard. Pure.

use std::fmt::Write as _;

use nodegate_plot::svg::{self, Frame};
use nodegate_plot::{Axis, Chart, Legend, Series, Style, Unit, number};

use super::answers::Curve;
use super::panels::{Kind, Panel, State};

/// The size of the grid's columns and rows, and of the gap between panels, in pixels.
const COLUMN: f64 = 50.0;
const ROW: f64 = 30.0;
const GAP: f64 = 8.0;

/// The number of columns in the grid.
const COLUMNS: f64 = 24.0;

/// The font size, and an approximate character width.
const FONT: f64 = 11.0;
const CHARACTER: f64 = 6.4;

/// The margins of a plot: tick texts on its left, the title above; below, the time and the legend.
const LEFT: f64 = 68.0;
const TOP: f64 = 32.0;
const PADDING: f64 = 12.0;
const TIME: f64 = 24.0;

/// The line spacing of the legend, and its largest number of lines.
const LINE: f64 = 15.0;
const LINES: usize = 5;

/// The colours of states, from good to bad: green, yellow, red.
const STATES: [usize; 3] = [2, 4, 1];

/// The distance of the marks on the time axis, in seconds.
const TICKS: u32 = 60;

/// Draws panels with their queries' curves, over this many seconds.
#[must_use]
pub(super) fn draw(panels: &[(&Panel, Vec<Curve>)], seconds: u32) -> String {
    let mut content = String::new();
    let mut height = 0.0_f64;
    for (panel, curves) in panels {
        let place = panel.grid_pos;
        let (x, y) = (f64::from(place.x) * COLUMN, f64::from(place.y) * ROW);
        let size = (
            f64::from(place.w) * COLUMN - GAP,
            f64::from(place.h) * ROW - GAP,
        );
        height = height.max(y + size.1 + GAP);
        let _ = writeln!(
            content,
            "<g transform=\"translate({} {})\">",
            x + GAP / 2.0,
            y + GAP / 2.0
        );
        match panel.kind {
            Kind::Row => row(&mut content, panel),
            Kind::Stat => figure(&mut content, panel, curves, size),
            Kind::Timeseries | Kind::StateTimeline if curves.is_empty() => {
                nothing(&mut content, panel, size);
            }
            Kind::Timeseries => over_time(&mut content, panel, curves, size, seconds),
            Kind::StateTimeline => bands(&mut content, panel, curves, size, seconds),
        }
        content.push_str("</g>\n");
    }
    svg::document(COLUMNS * COLUMN, height, FONT, &content)
}

fn row(svg: &mut String, panel: &Panel) {
    let title = format!("⌄ {}", panel.title);
    let look = "font-size=\"14\" font-weight=\"600\"";
    svg::text(svg, (4.0, 16.0), "start", look, &title);
}

/// The background of a panel, and its title.
fn ground(svg: &mut String, panel: &Panel, (width, height): (f64, f64)) {
    let _ = writeln!(
        svg,
        "<rect class=\"panel\" width=\"{width}\" height=\"{height}\" rx=\"3\"/>"
    );
    let look = "font-size=\"12\" font-weight=\"600\"";
    svg::text(svg, (PADDING, 20.0), "start", look, &panel.title);
}

fn figure(svg: &mut String, panel: &Panel, curves: &[Curve], (width, height): (f64, f64)) {
    ground(svg, panel, (width, height));
    let points = curves.iter().flat_map(|curve| &curve.points);
    let last = points.map(|(_, value)| *value).rfind(|it| !it.is_nan());
    let text = last.map_or("No data".to_owned(), |value| panel.unit().text(value));
    let look = "font-size=\"34\" font-weight=\"600\"";
    let middle = (width / 2.0, height / 2.0 + 22.0);
    svg::text(svg, middle, "middle", look, &text);
}

fn nothing(svg: &mut String, panel: &Panel, (width, height): (f64, f64)) {
    ground(svg, panel, (width, height));
    let middle = (width / 2.0, height / 2.0);
    svg::text(svg, middle, "middle", "font-size=\"14\"", "No data");
    let below = (middle.0, middle.1 + 20.0);
    svg::text(
        svg,
        below,
        "middle",
        "class=\"faint\"",
        panel.without_data(),
    );
}

fn over_time(
    svg: &mut String,
    panel: &Panel,
    curves: &[Curve],
    (width, height): (f64, f64),
    seconds: u32,
) {
    ground(svg, panel, (width, height));
    let chart = chart(panel, curves, seconds);
    let legend = Legend::new(&chart.series, width - 2.0 * PADDING, CHARACTER, LINES);
    let frame = Frame {
        left: LEFT,
        top: TOP,
        right: width - 2.0 * PADDING,
        bottom: height - TIME - LINE * number(legend.height()) - PADDING / 2.0,
    };
    svg::plot(svg, frame, &chart);
    let first = (PADDING, frame.bottom + TIME + LINE - 2.0);
    svg::legend(svg, first, LINE, &legend, &chart.series);
}

/// A band for each curve, in the colour of the state that its value stands for.
fn bands(
    svg: &mut String,
    panel: &Panel,
    curves: &[Curve],
    (width, height): (f64, f64),
    seconds: u32,
) {
    ground(svg, panel, (width, height));
    let states = panel.states();
    let legend_entry = |(index, state): (usize, &State)| Series {
        name: state.name.clone(),
        colour: STATES[index % STATES.len()],
        points: Vec::new(),
        ranges: Vec::new(),
        style: Style::Line,
    };
    let series: Vec<Series> = states.iter().enumerate().map(legend_entry).collect();
    let legend = Legend::new(&series, width - 2.0 * PADDING, CHARACTER, LINES);
    let names = curves.iter().map(|curve| curve.name.chars().count());
    let frame = Frame {
        left: PADDING + CHARACTER * number(names.max().unwrap_or_default()) + PADDING,
        top: TOP,
        right: width - 2.0 * PADDING,
        bottom: height - TIME - LINE * number(legend.height()) - PADDING / 2.0,
    };
    let time = Axis::time(seconds, TICKS);
    let empty = Chart {
        title: panel.title.clone(),
        x: time.clone(),
        y: Axis::linear("", [1.0]).with_ticks(Vec::new()),
        series: Vec::new(),
    };
    svg::plot(svg, frame, &empty);
    let apart = (frame.bottom - frame.top) / number(curves.len());
    let left_of = |at: f64| frame.left + time.place(at) * (frame.right - frame.left);
    for (row, curve) in curves.iter().enumerate() {
        let top = frame.top + apart * number(row);
        let beside = (frame.left - PADDING / 2.0, top + apart / 2.0 + 4.0);
        svg::text(svg, beside, "end", "", &curve.name);
        for pair in curve.points.windows(2) {
            let [(from, value), (to, _)] = pair else {
                continue;
            };
            let Some(state) = states
                .iter()
                .position(|state| state.value.total_cmp(value).is_eq())
            else {
                continue;
            };
            let (x, end) = (left_of(*from), left_of(*to));
            let _ = writeln!(
                svg,
                "<rect class=\"c{}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"currentColor\" \
                 fill-opacity=\"0.7\"/>",
                STATES[state % STATES.len()],
                top + apart * 0.1,
                end - x,
                apart * 0.8
            );
        }
    }
    let first = (PADDING, frame.bottom + TIME + LINE - 2.0);
    svg::legend(svg, first, LINE, &legend, &series);
}

fn chart(panel: &Panel, curves: &[Curve], seconds: u32) -> Chart {
    let values = curves.iter().flat_map(|curve| &curve.points);
    let most = values.map(|(_, value)| *value).fold(0.0, f64::max);
    let unit = panel.unit();
    // With only zeros, the axis ends at 1.
    let most = if most > 0.0 { most } else { 1.0 };
    let series = curves.iter().enumerate();
    let series = series.map(|(index, curve)| Series {
        name: curve.name.clone(),
        colour: index,
        points: curve.points.clone(),
        ranges: Vec::new(),
        style: Style::Line,
    });
    Chart {
        title: panel.title.clone(),
        x: Axis::time(seconds, TICKS),
        y: scale(unit, most),
        series: series.collect(),
    }
}

/// The distances of marks in seconds, for durations longer than a minute.
const APART: [f64; 8] = [30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0];

/// An axis up to this value: counts get no fractions, and minutes no odd parts.
fn scale(unit: Unit, most: f64) -> Axis {
    let axis = Axis::linear("", [most]).of(unit);
    let is_whole = |tick: &f64| tick.fract().abs() < 1e-9;
    if unit == Unit::Plain && most >= 1.0 {
        let whole = axis.ticks.iter().copied().filter(is_whole).collect();
        return axis.with_ticks(whole);
    }
    let apart = APART.iter().find(|apart| most / *apart <= 6.0);
    match apart.filter(|_| unit == Unit::Seconds && most > 60.0) {
        Some(apart) => {
            let ticks = (0..=6).map(|tick| f64::from(tick) * apart);
            axis.with_ticks(ticks.take_while(|tick| *tick <= most).collect())
        }
        None => axis,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::panels::tests::dashboard;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve {
            name: name.to_owned(),
            points: points.to_vec(),
        }
    }

    /// The picture of the dashboard with these curves in its time series.
    fn picture(curves: Vec<Curve>) -> String {
        let dashboard = dashboard();
        let held = curve("longest", &[(120.0, 90.0)]);
        let [row, stat, taints, _] = &dashboard.panels[..] else {
            panic!("{dashboard:?}");
        };
        let panels = [(row, Vec::new()), (stat, vec![held]), (taints, curves)];
        draw(&panels, 120)
    }

    #[test]
    fn panels_are_where_the_dashboard_has_them() {
        let svg = picture(vec![curve("network", &[(0.0, 0.0), (120.0, 0.5)])]);
        for part in [
            "viewBox=\"0 0 1200 390\"",
            "translate(4 4)",
            "translate(4 34)",
            "translate(4 154)",
            "<rect class=\"panel\" width=\"392\" height=\"232\"",
            ">⌄ Overview</text>",
            ">1.5 min</text>",
            ">Taints</text>",
            ">0.5 ops/s</text>",
            ">2:00</text>",
            ">network</text>",
            "d=\"M68.0 187.0h0L368.0 32.0\"",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn a_state_lasts_until_the_next_and_has_its_colour() {
        let dashboard = dashboard();
        let zone = curve(
            "a",
            &[(0.0, 0.0), (60.0, 1.0), (90.0, f64::NAN), (120.0, 1.0)],
        );
        let svg = draw(&[(&dashboard.panels[3], vec![zone])], 120);
        let colours = |class: &str| svg.matches(&format!("<rect class=\"{class}\"")).count();
        assert_eq!((colours("c2"), colours("c4")), (1, 1), "{svg}");
        for part in [
            ">a</text>",
            ">Normal</text>",
            ">Partial</text>",
            ">2:00</text>",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        let svg = draw(&[(&dashboard.panels[3], Vec::new())], 120);
        assert!(svg.contains(">No rule has limits</text>"), "{svg}");
    }

    #[test]
    fn a_panel_without_curves_says_so_and_what_it_is_about() {
        let svg = picture(Vec::new());
        assert!(svg.contains(">No data</text>"), "{svg}");
        assert!(svg.contains(">Per second.</text>"), "{svg}");
    }

    #[test]
    fn a_legend_takes_from_the_plot_and_no_more_than_its_share() {
        let name = "a name that has nearly the whole line for itself, so";
        let many: Vec<Curve> = (0..7).map(|_| curve(name, &[(0.0, 1.0)])).collect();
        let svg = picture(many);
        assert_eq!(svg.matches(name).count(), 4, "{svg}");
        assert!(svg.contains(">and 3 more</text>"), "{svg}");
        // A legend of one line instead of five lowers the plot's end by sixty pixels.
        assert!(svg.contains("y2=\"127.0\""), "{svg}");
    }

    #[test]
    fn what_is_counted_is_written_in_whole_numbers() {
        let ticks = |most| scale(Unit::Plain, most).ticks;
        assert_eq!(ticks(1.0), [0.0, 1.0]);
        assert_eq!(ticks(2.0), [0.0, 1.0, 2.0]);
        assert_eq!(ticks(0.5).len(), 6);
    }

    #[test]
    fn durations_of_minutes_are_written_in_halves_and_wholes() {
        let ticks = |most| scale(Unit::Seconds, most).ticks;
        assert_eq!(ticks(40.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks(100.0), [0.0, 30.0, 60.0, 90.0]);
        assert_eq!(ticks(250.0), [0.0, 60.0, 120.0, 180.0, 240.0]);
    }
}
