//! A process that never outlives the one that started it, with its output in a log file.
//!
//! Each process has a *guard*: a shell that blocks on a pipe held by the owner, and kills the process when the pipe closes. The
//! kernel closes the pipe however the owner dies, even by SIGKILL, so this works for any binary.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::signal::unix::{self, SignalKind};

use crate::kubernetes::eventually;

const POLL: Duration = Duration::from_millis(10);

/// How many log lines an error shows.
const TAIL: usize = 25;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// It is killed with its owner.
    Owner,
    /// [`Process::detach`] may leave it running.
    Detachable,
}

/// A running process. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    guard: Option<Child>,
    log: PathBuf,
    detached: bool,
}

impl Process {
    /// Starts `command`, and appends its output to `log`.
    pub fn start(
        name: impl Into<String>,
        mut command: Command,
        log: PathBuf,
        lifetime: Lifetime,
    ) -> Result<Self> {
        let name = name.into();
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("opening {}", log.display()))?;
        let errors = output.try_clone().context("sharing the log file")?;
        // Its own process group: Ctrl-C in a terminal reaches only the owner, which stops processes in order.
        let mut child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {name} ({})", command.get_program().display()))?;
        let guard = match lifetime {
            Lifetime::Detachable => None,
            Lifetime::Owner => match guard(child.id()) {
                Ok(guard) => Some(guard),
                Err(error) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(error);
                }
            },
        };
        Ok(Self {
            name,
            child,
            guard,
            log,
            detached: false,
        })
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// Waits until its log contains this.
    pub async fn says(&self, words: &str, within: Duration) -> Result<()> {
        let what = format!("{} says {words:?}", self.name);
        eventually(&what, within, async || Ok(self.log().contains(words))).await
    }

    /// A memory figure from the kernel: see [`memory_of`].
    pub fn memory(&self, field: &str) -> Result<u64> {
        memory_of(self.pid(), field)
    }

    /// Its exit status, if it has ended.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("asking for the state of {}", self.name))
    }

    pub fn ensure_running(&mut self) -> Result<()> {
        if let Some(status) = self.exited()? {
            bail!(
                "{} ended ({status}); the end of {}:\n{}",
                self.name,
                self.log.display(),
                tail(&self.log())
            );
        }
        Ok(())
    }

    /// Asks it to end (SIGTERM) and waits. Kills it after `patience`.
    ///
    /// # Errors
    ///
    /// When it had to be killed.
    pub async fn terminate(&mut self, patience: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.exited()? {
            return Ok(status);
        }
        signal(self.pid(), Signal::SIGTERM)?;
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.exited()? {
                self.dismiss_guard();
                return Ok(status);
            }
            tokio::time::sleep(POLL).await;
        }
        self.kill();
        bail!(
            "{} did not end within {patience:?} of SIGTERM; the end of its log:\n{}",
            self.name,
            tail(&self.log())
        );
    }

    /// Pauses it (SIGSTOP), until [`Self::resume`].
    pub fn pause(&self) -> Result<()> {
        signal(self.pid(), Signal::SIGSTOP)
    }

    pub fn resume(&self) -> Result<()> {
        signal(self.pid(), Signal::SIGCONT)
    }

    /// Kills it (SIGKILL) and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.dismiss_guard();
    }

    /// Leaves it running when dropped. Only a [`Lifetime::Detachable`] process also outlives its owner.
    pub fn detach(&mut self) {
        self.detached = true;
    }

    /// Whether it is left running when dropped.
    pub fn is_detached(&self) -> bool {
        self.detached
    }

    /// Ends the guard after its process: until then nobody else can get the process ID.
    fn dismiss_guard(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.kill();
            let _ = guard.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.detached {
            self.kill();
        }
    }
}

/// Runs this to its end; `None` if a signal (Ctrl-C or SIGTERM) comes before. The signal only drops it, so that its clusters shut
/// down in order.
pub async fn unless_interrupted<T>(work: impl Future<Output = T>) -> Result<Option<T>> {
    let mut interrupt = unix::signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut terminate = unix::signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    Ok(tokio::select! {
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        done = work => Some(done),
    })
}

/// A memory figure of a process from the kernel, in KiB: `RssAnon` is its own memory now, `VmHWM` the peak that was resident.
pub fn memory_of(pid: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    kibibytes(&status, field).with_context(|| format!("no {field} in {path}"))
}

pub(crate) fn is_alive(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|pid| kill(Pid::from_raw(pid), None).is_ok())
}

/// The value of a field of `/proc/PID/status`.
fn kibibytes(status: &str, field: &str) -> Option<u64> {
    let mut fields = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(name, _)| *name == field)?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

fn read(log: &Path) -> String {
    fs::read(log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).context("a process id beyond i32")?;
    kill(Pid::from_raw(pid), signal).with_context(|| format!("sending {signal} to {pid}"))
}

fn guard(pid: u32) -> Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", r#"read -r _; kill -9 "$0""#])
        .arg(pid.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("starting the guard of a process")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_is_resident() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nRssAnon:\t 1 kB\n";
        assert_eq!(kibibytes(status, "VmHWM"), Some(2048));
        assert_eq!(kibibytes(status, "RssAnon"), Some(1));
        assert_eq!(kibibytes(status, "Vm"), None);
    }
}
