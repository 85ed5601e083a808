//! A terminal in which somebody types. What is typed takes its time, and so does whoever reads; what a command takes is what it
//! really took.

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

/// How many characters are in a line, and how many lines are seen.
pub const COLUMNS: u16 = 112;
pub const ROWS: u16 = 26;
/// What stands before what is typed.
const PROMPT: &str = "\u{1b}[32m$\u{1b}[0m ";
/// How long two characters take to be typed.
const TYPING: Duration = Duration::from_millis(90);
/// How long somebody looks at a prompt, and at each line that has been printed.
const PROMPTED: Duration = Duration::from_millis(700);
const LINE: Duration = Duration::from_millis(330);

/// What is to be seen, and when.
#[derive(Debug, Default)]
pub struct Terminal {
    now: Duration,
    events: Vec<(Duration, String)>,
}

impl Terminal {
    /// What appears, in order: since when, and what; lines end in CR and LF.
    pub fn events(&self) -> &[(Duration, String)] {
        &self.events
    }

    /// When it ends.
    pub fn end(&self) -> Duration {
        self.now
    }

    /// Types `kubectl nodegate` with these arguments, has it answer, and reads what it says.
    pub async fn ask(&mut self, cluster: &Cluster, arguments: &[&str]) -> Result<()> {
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

    /// Types something that nobody carries out: a comment.
    pub fn remark(&mut self, text: &str) {
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

    /// As an asciicast, version 2.
    pub fn asciicast(&self) -> Result<String> {
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

/// What a command prints in a terminal of this size.
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
    // Reading comes to an end when the last who has the other side has closed it.
    drop(command);
    let mut ours = File::from(ends.master);
    let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
    // The end of a terminal is an error.
    while let Ok(read @ 1..) = ours.read(&mut buffer) {
        said.extend_from_slice(&buffer[..read]);
    }
    ensure!(child.wait()?.success(), "kubectl nodegate did not answer");
    Ok(String::from_utf8(said)?)
}
