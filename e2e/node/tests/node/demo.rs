//! The demo works as `make` runs it, without a terminal.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

#[test]
fn the_demo_tells_its_story_and_everything_in_it_really_happens() -> Result<()> {
    let this = env::current_exe().context("asking for this executable's path")?;
    let mut folders = this
        .ancestors()
        .skip(1)
        .map(|folder| folder.join("demo-node"));
    let demo = folders.find(|path| path.is_file());
    let demo = demo.context("no demo-node beside this; type: make test-node")?;
    let output = Command::new(demo).stdin(Stdio::null()).output();
    let output = output.context("running the demo")?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{told}\n{errors}");
    for line in [
        "the kubelet says: not Ready: ",
        "the kubelet registers CSI driver csi.example.com",
        "the kubelet says: Node node-1 has been rebooted, boot id: ",
        "ok   the node registered closed",
        "ok   its network died",
        "ok   it rebooted",
        "ok   the node is open",
    ] {
        ensure!(told.contains(line), "{line:?} is missing in:\n{told}");
    }
    Ok(())
}
