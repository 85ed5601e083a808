//! The demo keeps what it promises, run as `make demo` runs it, but not on a terminal.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

#[test]
fn the_demo_tells_its_story_and_everything_in_it_really_happens() -> Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_demo"))
        .args(["--nodes", "3"])
        .stdin(Stdio::null())
        .output()
        .context("running the demo")?;
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{errors}");
    for line in [
        "kind: NodeReadinessRule",
        "node-3  gated by rule critical-components",
        "is not Ready (+1 more)",
        "node-1  waits: CSI driver csi.example.com is not registered on this node",
        "node-3  OPEN after",
        "The CNI pod of node-2 breaks.",
        "ok   3 nodes joined gated; each opened only after",
        "ok   12 workload pods bound, none to a node that was gated",
        "ok   node-2 closed",
        "ok   all 3 nodes are open, and all 12 workload pods run",
    ] {
        assert!(told.contains(line), "{line:?} is missing in:\n{told}");
    }
    assert!(!told.contains('\x1b'), "escape sequences in:\n{told}");
    Ok(())
}
