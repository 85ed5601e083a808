//! A terminal in which somebody types. Typing and reading take simulated time; commands take their real time.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::pty::{Winsize, openpty};
use nodegate_testbed::Cluster;
use nodegate_testbed::ask;
use serde_json::json;

/// Characters per line, and visible lines.
pub(super) const COLUMNS: u16 = 100;
pub(super) const ROWS: u16 = 26;
const PROMPT: &str = "\u{1b}[32m$\u{1b}[0m ";
/// The time to type two characters.
const TYPING: Duration = Duration::from_millis(90);
/// The reading time at a prompt, and for each printed line.
const PROMPTED: Duration = Duration::from_millis(700);
const LINE: Duration = Duration::from_millis(330);

/// Terminal output with times.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    now: Duration,
    events: Vec<(Duration, String)>,
}

impl Terminal {
    /// The output in order, with times; lines end in CR and LF.
    pub(super) fn events(&self) -> &[(Duration, String)] {
        &self.events
    }

    /// The time of its end.
    pub(super) fn end(&self) -> Duration {
        self.now
    }

    /// Types `kubectl nodegate` with these arguments, runs it, and reads its output.
    pub(super) async fn ask(&mut self, cluster: &Cluster, arguments: &[&str]) -> Result<()> {
        self.type_line(&format!("kubectl nodegate {}", arguments.join(" ")));
        let began = Instant::now();
        let command = ask::command(&cluster.kubeconfig(), arguments)?;
        let said = tokio::task::spawn_blocking(move || in_a_terminal(command)).await??;
        self.now += began.elapsed();
        let lines = said.matches('\n').count();
        self.show(said);
        self.now += LINE * u32::try_from(lines)?;
        Ok(())
    }

    /// Types a comment.
    pub(super) fn remark(&mut self, text: &str) {
        self.type_line(&format!("# {text}"));
        self.now += PROMPTED;
    }

    fn type_line(&mut self, text: &str) {
        self.show(PROMPT.into());
        self.now += PROMPTED;
        let characters: Vec<char> = text.chars().collect();
        for typed in characters.chunks(2) {
            self.show(typed.iter().collect());
            self.now += TYPING;
        }
        self.show("\r\n".into());
    }

    fn show(&mut self, text: String) {
        self.events.push((self.now, text));
    }

    /// The recording as an asciicast, version 2.
    pub(super) fn asciicast(&self) -> Result<String> {
        let header = json!({
            "version": 2,
            "width": COLUMNS,
            "height": ROWS,
            "title": "kubectl nodegate",
            "env": {"TERM": "xterm-256color"},
        });
        let mut cast = format!("{header}\n");
        for (at, text) in &self.events {
            let event = json!([(at.as_secs_f64() * 1000.0).round() / 1000.0, "o", text]);
            writeln!(cast, "{event}")?;
        }
        Ok(cast)
    }
}

/// A command's output in a terminal of this size.
fn in_a_terminal(mut command: std::process::Command) -> Result<String> {
    let size = Winsize {
        ws_row: ROWS,
        ws_col: COLUMNS,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let ends = openpty(&size, None).context("opening a terminal")?;
    let mut child = command
        .env_remove("NO_COLOR")
        .env("TERM", "xterm-256color")
        .stdout(ends.slave)
        .stderr(Stdio::null())
        .spawn()?;
    // The reading ends when the last copy of the other side is closed.
    drop(command);
    let mut ours = File::from(ends.master);
    let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
    // The end of a terminal is reported as an error.
    while let Ok(read @ 1..) = ours.read(&mut buffer) {
        said.extend_from_slice(&buffer[..read]);
    }
    ensure!(child.wait()?.success(), "kubectl nodegate did not answer");
    Ok(String::from_utf8(said)?)
}
