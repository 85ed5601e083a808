//! The demos work as `make` runs them, without a terminal.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

#[test]
fn the_demo_tells_its_story_and_everything_in_it_really_happens() -> Result<()> {
    let told = tell(env!("CARGO_BIN_EXE_demo"), &["--nodes", "3"])?;
    has(
        &told,
        &[
            "kind: NodeReadinessRule",
            "node-3  gated by rule critical-components",
            "are not Ready",
            "node-1  waits: CSI driver csi.example.com is not registered on this node",
            "node-3  RELEASED after",
            "The CNI pod of node-2 breaks.",
            "ok   3 nodes joined held; each released only after",
            "ok   12 workload pods bound, none to a node that was held",
            "ok   node-2 was gated",
            "ok   all 3 nodes are released, and all 12 workload pods run",
            "$ kubectl nodegate explain node/node-2",
            "✗ node.gardener.cloud/CriticalPodsReady is False: pod kube-system/cni-",
            "$ kubectl nodegate report",
        ],
    );
    Ok(())
}

/// Runs a demo that must succeed; returns its output.
fn tell(binary: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(binary)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("running the demo")?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{errors}");
    Ok(told)
}

fn has(told: &str, lines: &[&str]) {
    for line in lines {
        assert!(told.contains(line), "{line:?} is missing in:\n{told}");
    }
    assert!(!told.contains('\x1b'), "escape sequences in:\n{told}");
}
