//! Configuration files that the controller refuses at once, naming the field. These tests need no cluster.

use std::env::temp_dir;
use std::fs;
use std::process::{self, Command};

use anyhow::{Context, Result};
use nodegate_testbed::controller::binary;

const CLASS: &str = "
- name: gpu
  selector: {matchLabels: {gpu.example.com/component: driver}}
  conditionPrefix: gpu.example.com/
  csiAnnotationPrefix: gpu.example.com/wait-for-csi-node-
";

/// Starts the controller with this configuration; returns its exit code and its output.
fn start_with(name: &str, configuration: &str) -> Result<(Option<i32>, String)> {
    let file = temp_dir().join(format!("nodegate-suite-{}-{name}.yaml", process::id()));
    fs::write(&file, configuration)?;
    let output = Command::new(binary()?)
        .arg("controller")
        .arg("--config")
        .arg(&file)
        .arg("--health-probe-bind-address=0")
        .env("KUBECONFIG", "/nonexistent")
        .env_remove("RUST_BACKTRACE")
        .output();
    fs::remove_file(&file)?;
    let output = output.context("starting the controller")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.code(), said))
}

#[test]
fn a_configuration_that_cannot_be_used_is_refused_by_the_name_of_the_field() -> Result<()> {
    for (name, configuration, expected) in [
        (
            "unknown-key",
            "criticalComponents: []".to_owned(),
            "criticalComponents",
        ),
        (
            "duplicate-name",
            format!("criticalComponentClasses:{CLASS}{CLASS}"),
            "criticalComponentClasses[1].name: another class has this name already",
        ),
        (
            "text-for-a-list",
            "passingTaints: example.com/starting".to_owned(),
            r#"passingTaints: expected a list of taint keys, found text "example.com/starting" (line 1)"#,
        ),
        ("no-yaml", "{".to_owned(), "cannot parse configuration file"),
    ] {
        let (code, said) = start_with(name, &configuration)?;
        assert_eq!(code, Some(1), "{name} ended otherwise and said: {said}");
        assert!(said.contains(expected), "{name} said: {said}");
        assert!(said.lines().count() <= 12, "{name} said a lot: {said}");
    }
    Ok(())
}

#[test]
fn a_configuration_file_that_is_not_there_is_named() -> Result<()> {
    let output = Command::new(binary()?)
        .args(["controller", "--config=/nonexistent/nodegate.yaml"])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("/nonexistent/nodegate.yaml"), "{said}");
    Ok(())
}
