//! Runs a command line tool, such as the real `kubectl`, without blocking the test's runtime.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs it with `input` as its standard input and returns what it printed.
pub async fn run(mut command: Command, input: &str) -> Result<String> {
    let input = input.to_owned();
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or_default();
    let program = program.to_string_lossy().into_owned();
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
            // A tool that fails early closes its standard input; its own message says why.
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output()
    })
    .await
    .context("running a tool")?
    .with_context(|| format!("running {program}"))?;
    ensure!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
