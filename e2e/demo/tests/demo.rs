//! The demo works as `make` runs it, without a terminal.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

const DEMO: &str = env!("CARGO_BIN_EXE_demo");

#[test]
fn the_demo_tells_its_story_and_everything_in_it_really_happens() -> Result<()> {
    let output = Command::new(DEMO)
        .stdin(Stdio::null())
        .output()
        .context("running the demo")?;
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{errors}");
    has(
        &told,
        &[
            "The story takes about a minute.",
            "kind: NodeReadinessRule",
            "$ kubectl nodegate status --watch\n",
            "Z node-6 held critical-components ",
            "Z node-1 held critical-components CSI driver csi.example.com is not registered on this node\n",
            "Z node-6 released critical-components\n",
            "Now the CNI pod of node-3 breaks",
            "Z node-3 held critical-pods pod kube-system/cni-",
            "$ kubectl nodegate explain pod/search-",
            "1 node held by rule/critical-pods, such as node/node-3: pod kube-system/cni-",
            "$ kubectl nodegate explain node/node-3\n",
            "✗ node.gardener.cloud/CriticalPodsReady is False: pod kube-system/cni-",
            "Z node-3 released critical-pods\n",
            "$ kubectl nodegate startup\n",
            "6 nodes that joined last: 6 released, 0 held",
            "$ kubectl nodegate startup node/node-1\n",
            "node/node-1  released ",
            "daemonset/cni -n kube-system ",
            "$ kubectl nodegate report --output-file ",
            "ok   6 nodes joined held; each was released once",
            "ok   24 workload pods were bound, none to a node that was held",
            "ok   node-3 was gated",
            "ok   every node but one stayed released",
            "ok   all 6 nodes are released, and all 24 workload pods run",
        ],
    );
    assert!(!told.contains('\x1b'), "escape sequences in:\n{told}");
    let page = fs::read_to_string(Path::new(DEMO).with_file_name("demo-report.html"))?;
    has(&page, &["leading", "critical-components", "critical-pods"]);
    assert!(!page.contains("no Lease"), "nobody leads in:\n{page}");
    Ok(())
}

fn has(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "{part:?} is missing in:\n{told}");
    }
}
