//! Runs a test or a command in its own namespaces: a machine with nothing but a node on it.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use nix::unistd::getuid;
use tokio::runtime::Builder;

use crate::realnode::programs::Programs;

/// Marks processes that run in their own namespaces.
const VARIABLE: (&str, &str) = ("KUBE_REALNODE", "inside");

/// Whether this process is in its own namespaces.
pub fn is_inside() -> bool {
    env::var(VARIABLE.0).is_ok_and(|value| value == VARIABLE.1)
}

/// Whether users other than root exist in there: only root outside can map them.
pub fn has_users() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let count = map.split_whitespace().nth(2);
    count.and_then(|count| count.parse::<u64>().ok()) > Some(1)
}

/// A command that runs in its own namespaces. Without arguments it reports whether the machine allows them.
pub fn command(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(Programs::locate()?.path("namespaces")?);
    command.args(arguments);
    // Inside, the owners of folders from outside are invisible: their folders would be swept. So it gets a folder of its own.
    let folder = env::temp_dir().join(format!("kube-realnode-{}", getuid()));
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    command.env("TMPDIR", folder);
    Ok(command)
}

/// Runs the calling test in its own namespaces: the test binary runs again there, for this test alone. Its output is printed at
/// the end.
pub fn alone(test: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    if is_inside() {
        let runtime = Builder::new_multi_thread().enable_all().build();
        return runtime.context("starting a runtime")?.block_on(test());
    }
    let current = thread::current();
    let name = current
        .name()
        .filter(|name| *name != "main")
        .context("a test runs in a thread that has its name")?;
    let binary = env::current_exe().context("asking for this executable's path")?;
    let output = command(&[
        &binary.to_string_lossy(),
        name,
        "--exact",
        "--include-ignored",
        "--nocapture",
    ])?
    .output()
    .context("entering namespaces")?;
    // Bypasses the capture of a passing test's output, to show the times.
    let mut shown = io::stdout().lock();
    shown.write_all(&output.stdout)?;
    shown.write_all(&output.stderr)?;
    ensure!(output.status.success(), "{name}, in namespaces of its own");
    Ok(())
}
