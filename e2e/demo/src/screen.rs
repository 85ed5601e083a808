//! The terminal: what the story says, and `kubectl nodegate`, which shows the cluster.

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use terminal_size::{Height, terminal_size};
use testkit::nodegate::{Cluster, ask};
use tokio::process::{Child, Command};

/// How long a viewer takes to read some lines.
const READ: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Screen {
    kubeconfig: PathBuf,
    is_terminal: bool,
    /// `kubectl nodegate status --watch`, while it runs.
    watch: Option<Child>,
}

impl Screen {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        Self {
            kubeconfig: cluster.kubeconfig(),
            is_terminal: stdout().is_terminal(),
            watch: None,
        }
    }

    /// Leaves a viewer time to read.
    pub(crate) async fn pause(&self) {
        if self.is_terminal {
            tokio::time::sleep(READ).await;
        }
    }

    /// Follows the status until [`Self::end_status`]. Without a terminal, where that is a line for each change, it goes on to
    /// the end, so that none is lost.
    pub(crate) async fn follow_status(&mut self) -> Result<()> {
        if self.watch.is_some() {
            return Ok(());
        }
        let mut command = self.typed(&["status", "--watch"])?;
        self.pause().await;
        if self.is_terminal {
            // The status is drawn from the top of the screen: what was said goes up into what can be scrolled back.
            let rows = terminal_size().map_or(24, |(_, Height(rows))| rows);
            print!("{}", "\n".repeat(rows.into()));
        }
        self.watch = Some(command.spawn().context("starting kubectl nodegate")?);
        Ok(())
    }

    /// Leaves the last status on the terminal.
    pub(crate) async fn end_status(&mut self) -> Result<()> {
        let Some(watch) = &mut self.watch else {
            bail!("the status is not followed");
        };
        let ended = watch.try_wait()?;
        ensure!(ended.is_none(), "kubectl nodegate status --watch has ended");
        if self.is_terminal {
            watch.kill().await?;
            self.watch = None;
        }
        Ok(())
    }

    /// Types a command, which answers on the screen.
    pub(crate) async fn ask(&self, arguments: &[&str]) -> Result<()> {
        let ended = self.typed(arguments)?.status().await?;
        ensure!(ended.success(), "that ended with {ended}");
        Ok(())
    }

    fn typed(&self, arguments: &[&str]) -> Result<Command> {
        println!("\n$ kubectl nodegate {}", arguments.join(" "));
        let mut command = Command::from(ask::command(&self.kubeconfig, arguments)?);
        // In a process group of its own, so that Ctrl-C reaches only the demo, which ends all in order.
        command.process_group(0).kill_on_drop(true);
        Ok(command)
    }
}
