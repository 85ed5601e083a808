//! What would turn no other test red: processes of a cluster that stay behind. All else of the harness, every test relies on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::kubernetes::{Cluster, Options, eventually_eq};

use crate::TURN;

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn nothing_is_left_of_a_cluster_that_is_dropped() -> Result<()> {
    let _turn = TURN.lock().await;
    let cluster = Cluster::start(Options {
        reuse: false,
        ..Options::api_only()
    })
    .await?;
    let folder = cluster.folder().to_owned();
    let pids: BTreeMap<String, u32> = cluster.pids();
    assert_eq!(
        pids.keys().map(String::as_str).collect::<Vec<_>>(),
        ["etcd", "kube-apiserver"]
    );
    assert!(pids.values().all(|&pid| is_alive(pid)));
    drop(cluster);
    assert!(!pids.values().any(|&pid| is_alive(pid)));
    assert!(!folder.exists());
    Ok(())
}

#[tokio::test]
async fn a_cluster_does_not_outlive_an_owner_that_is_killed() -> Result<()> {
    let _turn = TURN.lock().await;
    let mut owner = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .arg("up")
        .stdout(Stdio::piped())
        .spawn()?;
    let output = owner.stdout.take().context("the output is not piped")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let kubeconfig = line
        .trim()
        .strip_prefix("export KUBECONFIG=")
        .with_context(|| format!("no kubeconfig in {line:?}"))?;
    let running = processes_that_mention(kubeconfig);
    assert!(running >= 3, "{running} processes use {kubeconfig}");
    owner.kill()?;
    owner.wait()?;
    eventually_eq("the processes end", SOON, 0, async || {
        Ok(processes_that_mention(kubeconfig))
    })
    .await
}

/// How many processes have this text in their command line. Linux only, since it reads `/proc`.
fn processes_that_mention(text: &str) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok())
        .filter(|command| command.contains(text))
        .count()
}

fn is_alive(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap_or_default()
}
