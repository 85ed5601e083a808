//! Drawing, keys, and the lines for changes.

use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode as Key, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};

use super::closed::Closure;
use super::*;
use crate::cli::page::Line;
use crate::cli::testing::Scene;
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, node, rule};

const READY: &str = "example.com/Ready";

fn gpu() -> RuleBuilder {
    let rule = rule("gpu").taint("readiness.k8s.io/gpu", "NoSchedule");
    rule.waits_for(READY)
}

/// A node created at this time with the taint, which waits.
fn joining(name: &str, created: i64) -> NodeBuilder {
    let node = node(name).created(at(created));
    node.taint("readiness.k8s.io/gpu", "NoSchedule")
}

fn seen(nodes: impl IntoIterator<Item = NodeBuilder>, now: Timestamp) -> Fleet {
    let scene = Scene::default().rule(&gpu());
    let scene = nodes.into_iter().fold(scene, Scene::node);
    Fleet::of(&scene.read(now), None)
}

/// One open node, and three joining ones, one of which lacks another condition.
fn four() -> Fleet {
    let nodes = [
        node("open").created(at(0)).condition(READY, "True"),
        joining("young", 90),
        joining("old", 10),
        joining("told", 50).condition(READY, "False"),
    ];
    seen(nodes, at(100))
}

/// The lines of a screen of this size.
fn screen(fleet: &Fleet, state: &TopState, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let drawn = terminal.draw(|frame| draw(frame, fleet, state, true));
    let buffer = drawn.unwrap().buffer.clone();
    let line = |y| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// The position after these keys, with `page` nodes on a page.
fn after(fleet: &Fleet, keys: &[Key], page: usize) -> (TopState, Act) {
    let mut state = TopState::default();
    let mut act = Act::Draw;
    for key in keys {
        act = state.press((*key).into(), fleet, page);
    }
    (state, act)
}

fn names(fleet: &Fleet, state: &TopState) -> Vec<String> {
    let shown = state.shown(fleet).into_iter();
    shown.map(|it| it.node.to_string()).collect()
}

fn typed(text: &str) -> Vec<Key> {
    text.chars().map(Key::Char).collect()
}

#[test]
fn the_fleet_is_drawn_longest_first() {
    let fleet = four();
    let shown = screen(&fleet, &TopState::default(), (110, 9));
    let expected = [
        "nodes       4, 3 held, 1 open  (3 joining)",
        "controller  there is no Lease: the controller does not run, or runs without leader election",
        "",
        "NODE    STATE     FOR   BY    WHY   (3 closed, longest first)",
        "old     joining   90s   gpu   example.com/Ready is not reported (counts as Unknown, must be True)",
        "told    joining   50s   gpu   example.com/Ready is False, must be True",
        "young   joining   10s   gpu   example.com/Ready is not reported (counts as Unknown, must be True)",
        "",
        "↑↓ move  PgUp/PgDn page  enter explain  s sort  / filter  esc show all  q quit",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_small_screen_has_the_page_of_the_node_that_is_marked() {
    let fleet = four();
    // There is room for two nodes.
    let (state, _) = after(&fleet, &[Key::Down, Key::Down], page_length(7));
    let shown = screen(&fleet, &state, (30, 7));
    assert_eq!(shown[4], "young   example.com/Ready is …");
    assert_eq!(shown[5], "");
    for size in [(1, 1), (3, 2), (200, 60)] {
        screen(&fleet, &state, size);
    }
}

#[test]
fn colours_are_those_of_other_answers_and_can_be_left_out() {
    let fleet = four();
    for (colour, expected) in [(true, Color::Yellow), (false, Color::Reset)] {
        let mut terminal = Terminal::new(TestBackend::new(80, 9)).unwrap();
        let drawn = terminal.draw(|frame| draw(frame, &fleet, &TopState::default(), colour));
        let drawn = drawn.unwrap();
        let cell = &drawn.buffer[(8, 4)];
        assert_eq!((cell.symbol(), cell.fg), ("j", expected));
        // The selected node is visible without colours too.
        assert!(cell.modifier.contains(Modifier::REVERSED));
    }
}

#[test]
fn keys_sort_and_filter() {
    let fleet = four();
    let all = [
        (typed(""), "old told young"),
        (typed("s"), "young told old"),
        (typed("ss"), "old told young"),
        (typed("sssss"), "old told young"),
        (typed("/TOLD"), "told"),
        (typed("/false"), "told"),
        (typed("/gpux"), ""),
        (
            [typed("/gpux"), vec![Key::Backspace]].concat(),
            "old told young",
        ),
        (
            [typed("/told"), vec![Key::Enter, Key::Esc]].concat(),
            "old told young",
        ),
    ];
    for (keys, expected) in all {
        let (state, act) = after(&fleet, &keys, 10);
        assert_eq!(
            (names(&fleet, &state).join(" "), act),
            (expected.into(), Act::Draw),
            "{keys:?}"
        );
    }
    // While a filter is typed, letters are not commands.
    assert_eq!(after(&fleet, &typed("/q"), 10).1, Act::Draw);
    assert_eq!(after(&fleet, &typed("q"), 10).1, Act::Quit);
    let (mut typing, _) = after(&fleet, &typed("/q"), 10);
    let interrupt = KeyEvent::new(Key::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(typing.press(interrupt, &fleet, 10), Act::Quit);
}

#[test]
fn the_node_that_is_marked_stays_marked_while_others_come_and_go() {
    let fleet = four();
    let (mut state, _) = after(&fleet, &[Key::Down], 10);
    let marked = |state: &TopState, fleet: &Fleet| {
        let shown = state.shown(fleet);
        shown[state.place(&shown)].node.to_string()
    };
    assert_eq!(marked(&state, &fleet), "told");
    let without_old = seen([joining("young", 90), joining("told", 50)], at(100));
    assert_eq!(marked(&state, &without_old), "told");
    let only_young = seen([joining("young", 90)], at(100));
    assert_eq!(marked(&state, &only_young), "young");
    for (key, expected) in [
        (Key::End, "young"),
        (Key::Home, "old"),
        (Key::PageDown, "young"),
    ] {
        state.press(key.into(), &fleet, 2);
        assert_eq!(marked(&state, &fleet), expected);
    }
}

#[test]
fn a_node_is_explained_and_left_again() {
    let fleet = four();
    let (mut state, act) = after(&fleet, &[Key::Enter], 2);
    assert_eq!(act, Act::Explain("old".into()));
    assert_eq!(
        screen(&fleet, &state, (40, 9))[3..5],
        ["node/old", "reading..."]
    );
    state.explained("another", vec!["x".into()]);
    state.explained("old", ["one", "two", "three"].map(Line::from).to_vec());
    assert_eq!(
        screen(&fleet, &state, (40, 7))[3..6],
        ["node/old", "one", "two"]
    );
    state.press(Key::Down.into(), &fleet, 2);
    state.press(Key::Down.into(), &fleet, 2);
    assert_eq!(
        screen(&fleet, &state, (40, 7))[3..6],
        ["node/old", "two", "three"]
    );
    assert_eq!(
        state.press(Key::Char('r').into(), &fleet, 2),
        Act::Explain("old".into())
    );
    assert_eq!(state.press(Key::Esc.into(), &fleet, 2), Act::Draw);
    assert_eq!(state.opened, None);
}

#[test]
fn a_lost_connection_is_told_above_the_nodes() {
    let fleet = Fleet {
        problem: Some("cannot reach it".into()),
        ..four()
    };
    let shown = screen(&fleet, &TopState::default(), (80, 9));
    assert_eq!(shown[2], "not up to date: cannot reach it");
}

#[test]
fn a_node_that_was_open_before_is_held_and_suspended_rules_are_told() {
    let taint = "readiness.k8s.io/gpu";
    let scene = Scene::default().rule(&gpu());
    let again = node("again").created(at(-3600));
    let scene = scene.node(again.dated_taint(taint, "NoSchedule"));
    let fleet = Fleet::of(&scene.read(at(5)), None);
    assert_eq!(fleet.closed[0].state, Closure::Held);
    for (rule, suspends_all) in [(gpu().suspended(), false), (gpu(), true)] {
        let scene = Scene::default().rule(&rule).node(joining("n", 0));
        let mut snapshot = scene.read(at(10));
        snapshot.view.suspend_all(suspends_all);
        snapshot.view.settle();
        let fleet = Fleet::of(&snapshot, None);
        assert_eq!(fleet.suspended, ["gpu".into()]);
        assert_eq!(
            screen(&fleet, &TopState::default(), (40, 8))[2],
            "suspended   gpu"
        );
    }
}

#[test]
fn each_change_is_told_once() {
    let mut told = ToldChanges::default();
    let there = |_: &str| true;
    let lines = told.lines(&four(), there);
    let expected = [
        "2026-01-01T00:01:40Z old held gpu example.com/Ready is not reported (counts as Unknown, must be True)",
        "2026-01-01T00:01:40Z told held gpu example.com/Ready is False, must be True",
        "2026-01-01T00:01:40Z young held gpu example.com/Ready is not reported (counts as Unknown, must be True)",
    ];
    assert_eq!(lines, expected);
    assert_eq!(told.lines(&four(), there), Vec::<String>::new());
    // One has opened, one is gone, and one has another reason.
    let nodes = [
        node("old").created(at(10)).condition(READY, "True"),
        joining("young", 90).condition(READY, "False"),
    ];
    let lines = told.lines(&seen(nodes, at(110)), |name| name != "told");
    let expected = [
        "2026-01-01T00:01:50Z old opened gpu after 100s",
        "2026-01-01T00:01:50Z told gone gpu after 60s",
        "2026-01-01T00:01:50Z young held gpu example.com/Ready is False, must be True",
    ];
    assert_eq!(lines, expected);
}
