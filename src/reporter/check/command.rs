//! Checks by running a program without a shell, where exit code 0 is good, and collects orphaned processes.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
#[cfg(target_os = "linux")]
use rustix::process::{getpid, set_child_subreaper};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::outcome::{CheckFinding, CheckOutcome};

const SHOWN: u64 = 256;
/// How long to wait for the rest of the output after the program exits: a process that it left behind may keep the pipe open.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs the program and says how it ended. If the future is dropped, the program and all processes it started are killed.
pub(super) async fn check(program: &Path, arguments: &[String]) -> Result<String, CheckOutcome> {
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let broken = |words: &str, error| CheckFinding::Broken.because(format!("{words}: {error}"));
    let mut child = started.map_err(|error| broken("cannot be started", error))?;
    let leader = child.id().and_then(|pid| i32::try_from(pid).ok());
    let _group = ProcessGroup(leader.and_then(Pid::from_raw));
    let mut output = Vec::new();
    let mut errors = Vec::new();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = {
        let reading = async {
            tokio::join!(keep(stdout, &mut output), keep(stderr, &mut errors));
        };
        tokio::pin!(reading);
        tokio::select! {
            ended = child.wait() => {
                let _ = tokio::time::timeout(PATIENCE, &mut reading).await;
                ended
            }
            () = &mut reading => child.wait().await,
        }
    };
    let ended = ended.map_err(|error| broken("could not be waited for", error))?;
    if ended.success() {
        return Ok("succeeded".to_owned());
    }
    let failure = match (ended.code(), ended.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
    };
    let shown = if errors.is_empty() { output } else { errors };
    let shown = String::from_utf8_lossy(&shown);
    Err(CheckFinding::NotReady.because(match shown.trim() {
        "" => failure,
        shown => format!("{failure}: {shown}"),
    }))
}

/// Reads a stream to its end and keeps the start, so that the program never blocks on output.
async fn keep(stream: Option<impl AsyncRead + Unpin>, start: &mut Vec<u8>) {
    if let Some(mut stream) = stream {
        let _ = (&mut stream).take(SHOWN).read_to_end(start).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
}

struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // This fails if the group is already gone, which is usual.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Adopts what this process's children leave behind, as process 1 of a container does anyway: nothing else would reap them.
pub(crate) fn adopt_orphans() {
    // If the kernel does not support this, they go to process 1, which may be this one.
    #[cfg(target_os = "linux")]
    let _ = set_child_subreaper(Some(getpid()));
}

/// Reaps every child that has ended. Call it only between checks, since a check waits for its own child. No other code waits later
/// for one: a kubeconfig's credential plugin is waited for at once.
pub(crate) fn collect_orphans() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_fails_is_told_of_with_its_exit_code_and_what_it_wrote() {
        for (script, expected) in [
            ("exit 3", "failed with exit code 3"),
            (
                "echo out; echo err >&2; exit 1",
                "failed with exit code 1: err",
            ),
            ("echo out; exit 1", "failed with exit code 1: out"),
            ("kill -9 $$", "was ended by signal 9"),
        ] {
            let arguments = ["-c".to_owned(), script.to_owned()];
            let failure = check(Path::new("/bin/sh"), &arguments).await.unwrap_err();
            assert_eq!(failure.message, expected, "{script}");
        }
    }
}
