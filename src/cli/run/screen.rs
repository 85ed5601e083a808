//! Shows the fleet live on a terminal. The terminal is restored however this ends: by a key, a signal, an error or a panic.

use std::future::{Future, pending};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::Timestamp;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::access::{page, read};
use crate::cli::command::{AccessArgs, CommonArgs};
use crate::cli::explain::explain_node;
use crate::cli::page::{Line, Page, Render};
use crate::cli::read::{Live, ObjectSource};
use crate::cli::snapshot::Wanted;
use crate::cli::top::{Act, Fleet, TopState, draw, page_length};
use crate::shutdown::told_to_stop;

/// How often ages are redrawn.
const TICK: Duration = Duration::from_secs(1);
/// How long changes are batched.
const TOGETHER: Duration = Duration::from_millis(250);
/// The longest time between two evaluations, so that changes by time alone are seen.
const AT_LEAST: Duration = Duration::from_secs(5);

/// The terminal in full-screen mode until this is dropped.
struct Screen(DefaultTerminal);

impl Screen {
    fn new() -> anyhow::Result<Self> {
        // This also restores the terminal on a panic.
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                ratatui::restore();
                Err(error).context("cannot draw on this terminal")
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// An explanation that is being loaded.
type Explaining<'a> = Pin<Box<dyn Future<Output = (Arc<str>, Vec<Line>)> + 'a>>;

/// Shows the fleet until the user quits.
pub(super) async fn run(
    mut live: Live<'_>,
    source: &ObjectSource,
    common: &CommonArgs,
) -> anyhow::Result<ExitCode> {
    let mut stop = std::pin::pin!(told_to_stop()?);
    let paper = page(common, Timestamp::now());
    let mut screen = Screen::new()?;
    let mut events = events();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut state = TopState::default();
    let mut fleet = seen(&mut live);
    let (mut looked, mut has_changed) = (Instant::now(), false);
    let mut reading: Option<Explaining<'_>> = None;
    loop {
        screen
            .0
            .draw(|frame| draw(frame, &fleet, &state, paper.colour))?;
        // Wait for something that must be drawn.
        loop {
            let due = looked + if has_changed { TOGETHER } else { AT_LEAST };
            tokio::select! {
                () = &mut stop => return Ok(ExitCode::SUCCESS),
                event = events.recv() => {
                    let event = event.context("the terminal's keys cannot be read any more")??;
                    let Some(key) = event.as_key_event().filter(|key| !key.is_release()) else {
                        // Other terminal events, such as a resize, only need a redraw.
                        break;
                    };
                    let length = page_length(screen.0.size()?.height);
                    match state.press(key, &fleet, length) {
                        Act::Draw => {}
                        Act::Quit => return Ok(ExitCode::SUCCESS),
                        Act::Explain(node) => {
                            let width = screen.0.size()?.width.into();
                            let paper = Page { width: Some(width), ..paper };
                            reading = Some(Box::pin(explanation(source, &common.access, node, paper)));
                        }
                    }
                    break;
                }
                (node, lines) = read_on(&mut reading) => {
                    reading = None;
                    state.explained(&node, lines);
                    break;
                }
                () = live.changed() => has_changed = true,
                () = tokio::time::sleep_until(due.into()), if live.is_live() => {
                    fleet = seen(&mut live);
                    (looked, has_changed) = (Instant::now(), false);
                    break;
                }
                _ = ticks.tick() => {
                    if live.is_live() {
                        fleet.at = Timestamp::now();
                    }
                    break;
                }
            }
        }
    }
}

fn seen(live: &mut Live<'_>) -> Fleet {
    let problem = live.problem();
    Fleet::of(live.at(Timestamp::now()), problem)
}

async fn read_on(reading: &mut Option<Explaining<'_>>) -> (Arc<str>, Vec<Line>) {
    match reading {
        Some(reading) => reading.await,
        None => pending().await,
    }
}

/// The explanation of a node as lines, or the error.
async fn explanation(
    source: &ObjectSource,
    access: &AccessArgs,
    node: Arc<str>,
    paper: Page,
) -> (Arc<str>, Vec<Line>) {
    let lines = match read(source, access, &Wanted::of_node(&node)).await {
        Ok(read) => {
            let paper = Page {
                now: read.at,
                ..paper
            };
            let answer = explain_node(&read, &node);
            let text = answer.map_or_else(|| "it is gone".into(), |answer| answer.text(&paper));
            Line::read(&text)
        }
        Err(failure) => vec![failure.to_string().into()],
    };
    (node, lines)
}

/// Terminal events, read by a separate thread that ends with the process.
fn events() -> mpsc::Receiver<std::io::Result<Event>> {
    let (sender, events) = mpsc::channel(16);
    std::thread::spawn(move || {
        loop {
            let event = event::read();
            let is_over = event.is_err();
            if sender.blocking_send(event).is_err() || is_over {
                return;
            }
        }
    });
    events
}
