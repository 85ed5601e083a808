//! Output for a story: a terminal with a block of lines at its end that is redrawn in place, or plain lines.

use std::env;
use std::io::{self, IsTerminal, Write};

use terminal_size::{Height, Width, terminal_size};

use super::layout::{Colours, Paint, wrap};

/// The text width without a terminal.
const PLAIN_WIDTH: usize = 100;

/// The largest width; longer lines are hard to read.
const MAX_WIDTH: usize = 130;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_BELOW: &str = "\x1b[J";
const CLEAR_LINE_END: &str = "\x1b[K";

/// Standard output. Restores the terminal when dropped.
#[derive(Debug)]
pub(super) struct Screen {
    live: bool,
    colours: Colours,
    /// The number of lines in the block at the end of the terminal.
    drawn: usize,
}

impl Screen {
    /// Standard output: live if it is a terminal.
    pub(super) fn new() -> Self {
        let dumb = env::var("TERM").is_ok_and(|term| term == "dumb");
        let live = io::stdout().is_terminal() && !dumb;
        // The convention of no-color.org: set, and not empty.
        let no_colour = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = if live && !no_colour {
            Colours::Ansi
        } else {
            Colours::None
        };
        Self {
            live,
            colours,
            drawn: 0,
        }
    }

    /// Whether a block is redrawn in place.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    pub(super) fn colours(&self) -> Colours {
        self.colours
    }

    /// The largest number of characters in a line.
    pub(super) fn width(&self) -> usize {
        match terminal_size() {
            Some((Width(width), _)) if self.live => usize::from(width).min(MAX_WIDTH),
            _ => PLAIN_WIDTH,
        }
    }

    /// Writes a permanent text, broken between words, with a label before its first line.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub(super) fn say(&mut self, label: &str, paint: Paint, text: &str) -> io::Result<()> {
        let indent = label.chars().count();
        let mut lines = wrap(text, self.width().saturating_sub(indent)).into_iter();
        let first = lines.next().unwrap_or_default();
        let label = self.colours.paint(Paint::Faint, label);
        let mut said = vec![format!("{label}{}", self.colours.paint(paint, &first))];
        let more = |line: String| format!("{:indent$}{}", "", self.colours.paint(paint, &line));
        said.extend(lines.map(more));
        self.print(&said)
    }

    /// Writes permanent lines unchanged.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub(super) fn print(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = self.erased();
        self.drawn = 0;
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        write(&text)
    }

    /// Redraws the block, as far as it fits the terminal.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let height = terminal_size().map_or(24, |(_, Height(height))| usize::from(height));
        let shown = &lines[..lines.len().min(height.saturating_sub(1))];
        let mut text = String::from(HIDE_CURSOR);
        text.push_str(&self.up());
        for line in shown {
            text.push_str(line);
            text.push_str(CLEAR_LINE_END);
            text.push('\n');
        }
        text.push_str(CLEAR_BELOW);
        self.drawn = shown.len();
        write(&text)
    }

    fn up(&self) -> String {
        if self.drawn == 0 {
            String::new()
        } else {
            format!("\r\x1b[{}A", self.drawn)
        }
    }

    fn erased(&self) -> String {
        if self.drawn == 0 {
            String::new()
        } else {
            self.up() + CLEAR_BELOW
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.live {
            let _ = write(SHOW_CURSOR);
        }
    }
}

/// In one write, so that no half of a block shows.
fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}
