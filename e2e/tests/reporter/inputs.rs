//! Invalid settings. The reporter ends with exit code 1 and one line that names the variable and the fix.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use nodegate_tests::has_words;
use testkit::nodegate::install::program;

const GOOD: &[(&str, &str)] = &[
    ("NODE_NAME", "worker-1"),
    ("CONDITION_TYPE", "example.com/NetworkReady"),
    ("CHECK_ENDPOINT", "http://localhost:9099/readiness"),
    ("KUBECONFIG", "/dev/null"),
];

#[test]
fn a_bad_input_is_one_line_with_the_variable_and_the_remedy() -> Result<()> {
    // src/reporter/settings has the others.
    let line = complaint(&[("NODE_NAME", "")])?;
    let expected = "error: NODE_NAME (or --node-name) is not set; take it from the downward API";
    ensure!(line.starts_with(expected), "{line}");
    let https = ("CHECK_ENDPOINT", "https://localhost/");
    let line = complaint(&[https, ("CHECK_CA_FILE", "/no/such/file")])?;
    ensure!(
        line.contains("CHECK_CA_FILE") && line.contains("No such file"),
        "{line}"
    );
    let line = complaint(&[https, ("CHECK_CA_FILE", "/dev/null")])?;
    has_words(&line, "it has no PEM certificate")?;
    let line = complaint(&[])?;
    has_words(&line, "cannot tell which cluster to use")?;
    Ok(())
}

/// The error of a reporter with these variables in place of valid ones.
fn complaint(bad: &[(&str, &str)]) -> Result<String> {
    let output = Command::new(program("nodegate-reporter")?)
        .env_clear()
        .envs(GOOD.iter().copied())
        .envs(bad.iter().copied())
        .output()
        .context("running the reporter")?;
    let errors = String::from_utf8(output.stderr)?;
    ensure!(
        output.status.code() == Some(1),
        "{bad:?} ended with {}: {errors}",
        output.status
    );
    ensure!(
        errors.lines().count() == 1,
        "{bad:?}: more than one line: {errors}"
    );
    Ok(errors)
}
