//! A terminal for a command: its output and its input.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::pty::{Winsize, openpty};
use nodegate_tests::SOON;
use tokio::process::{Child, Command};

/// A terminal of 24 lines that runs a command.
pub(crate) struct Terminal {
    pub child: Child,
    master: File,
    shown: Receiver<String>,
}

impl Terminal {
    /// Starts a command on a new terminal.
    pub(crate) fn open(mut command: Command) -> Result<Self> {
        let size = Winsize {
            ws_row: 24,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let ends = openpty(&size, None)?;
        let (master, slave) = (File::from(ends.master), File::from(ends.slave));
        let child = command
            .env("TERM", "xterm-256color")
            .stdin(slave.try_clone()?)
            .stdout(slave.try_clone()?)
            .stderr(slave.try_clone()?)
            .kill_on_drop(true)
            .spawn()?;
        let (sender, shown) = channel();
        let mut reads = master.try_clone()?;
        // The thread ends with the terminal.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reads.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            child,
            master,
            shown,
        })
    }

    pub(crate) fn types(&mut self, keys: &str) -> Result<()> {
        Ok(self.master.write_all(keys.as_bytes())?)
    }

    /// Waits until this has been shown since the last wait.
    pub(crate) async fn shows(&mut self, expected: &str) -> Result<()> {
        let mut shown = String::new();
        let begun = Instant::now();
        while !shown.contains(expected) {
            ensure!(
                begun.elapsed() < SOON * 3,
                "{expected:?} is not shown: {shown:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
            shown.extend(self.shown.try_iter());
        }
        Ok(())
    }
}
