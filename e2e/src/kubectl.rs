//! Runs the real `kubectl` without blocking the test's runtime.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs it with `input` as its standard input and returns what it printed.
///
/// # Errors
///
/// When it fails; the message is its standard error.
pub async fn run(mut command: Command, input: &str) -> Result<String> {
    let input = input.to_owned();
    let arguments: Vec<_> = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let output = tokio::task::spawn_blocking(move || {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A kubectl that fails early closes its end; its own message is the one to show.
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output()
    })
    .await
    .context("running kubectl")?
    .context("running kubectl")?;
    ensure!(
        output.status.success(),
        "kubectl {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
