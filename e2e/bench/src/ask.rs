//! Measures what `kubectl nodegate` costs its user and the API server: the time, memory and requests of each command, on a
//! cluster of a given size with three critical pods per node.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::nodegate::ask::{ask_json, command};
use testkit::nodegate::process::memory_of;
use testkit::nodegate::{Cluster, Controller, Options};
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use crate::load;
use crate::requests::{Counts, Requests, since};
use crate::world::{AGENT_READY, Gate, World};

/// The user who runs the commands, with the usual permissions. The audit log records no other user.
const ASKER: &str = "system:serviceaccount:default:asker";
/// One in this many nodes is held.
const HELD_OF: usize = 50;
/// How often each command runs; the median counts.
const RUNS: usize = 3;
/// How often to sample the peak of a process's memory.
const LOOK: Duration = Duration::from_millis(2);
/// How long the controller may take to settle.
const REST: Duration = Duration::from_secs(600);

/// The cost of one command.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The command.
    pub command: String,
    /// How long it took.
    pub took: Duration,
    /// Its peak memory (`VmHWM`), in MiB.
    pub mebibytes: f64,
    /// Its requests, by verb and resource.
    pub requests: Counts,
}

/// Runs each command on a cluster of this size.
pub async fn ask(nodes: usize, tell: impl Fn(&str)) -> Result<Vec<Asked>> {
    let options = Options {
        audit: true,
        audited_user: Some(ASKER),
        reuse: false,
        ..Options::api_only()
    };
    let cluster = Cluster::start(options).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    tell("making the nodes");
    let world = World::create(&client, nodes).await?;
    for gate in [Gate::Agent, Gate::Critical] {
        gate.rule().create(&client).await?;
    }
    let released = world.members.iter().enumerate();
    let released = released.filter(|(index, _)| index % HELD_OF != 0);
    load::each(load::AT_ONCE, released, async |(_, member)| {
        load::set_agent(&client, &member.name, true).await
    })
    .await?;
    tell("the controller goes over them");
    let controller =
        Controller::start(&cluster, &["--leader-elect", "--max-first-gated=100%"]).await?;
    cluster.account("asker", "nodegate-view").await?;
    let kubeconfig = cluster
        .kubeconfig_for_service_account("default", "asker")
        .await?;
    let folder = kubeconfig.with_extension("asked");
    fs::create_dir_all(&folder)?;
    let held = nodes.div_ceil(HELD_OF);
    let rests = async {
        loop {
            let status = ask_json(&kubeconfig, &["status"]).await?;
            let counts = &status["nodes"];
            if counts["held"] == held && counts["notHeld"] == nodes - held {
                return anyhow::Ok(());
            }
            sleep(Duration::from_secs(2)).await;
        }
    };
    timeout(REST, rests)
        .await
        .with_context(|| format!("the nodes do not come to rest: {AGENT_READY}"))??;
    let node = format!("node/{}", world.members[0].name);
    let report = folder.join("report.html").display().to_string();
    let mut log = Requests::of(cluster.audit_log_path());
    let mut all = Vec::new();
    for words in [
        vec!["status"],
        vec!["explain", &node],
        vec!["explain", "rule/bench-critical"],
        vec!["check"],
        vec!["report", "--output-file", &report],
        vec!["dump"],
    ] {
        tell(words[0]);
        let mut runs = Vec::new();
        for run in 0..RUNS {
            let before = log.so_far()?.clone();
            let dump = folder.join(format!("dump-{run}")).display().to_string();
            let mut given = words.clone();
            if given == ["dump"] {
                given.push(&dump);
            }
            let (took, mebibytes) = measured(&kubeconfig, &given).await?;
            // The audit log lags behind the answers.
            sleep(Duration::from_millis(500)).await;
            runs.push(Asked {
                command: shown(&words),
                took,
                mebibytes,
                requests: since(&before, log.so_far()?),
            });
        }
        runs.sort_by_key(|run| run.took);
        all.push(runs.swap_remove(RUNS / 2));
    }
    controller.stop().await?;
    fs::remove_dir_all(&folder)?;
    Ok(all)
}

/// The figures as a table.
pub fn costs(all: &[Asked]) -> String {
    let mut table =
        "| command | time | memory | requests | |\n|---|---:|---:|---:|---|\n".to_owned();
    for asked in all {
        let requests = asked.requests.iter();
        let which: Vec<String> = requests
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        let _ = writeln!(
            table,
            "| `{}` | {:.2} s | {:.0} MiB | {} | {} |",
            asked.command,
            asked.took.as_secs_f64(),
            asked.mebibytes,
            asked.requests.values().sum::<u64>(),
            which.join(", ")
        );
    }
    table
}

/// A command without file names.
fn shown(words: &[&str]) -> String {
    let words = words.iter().take_while(|word| **word != "--output-file");
    words.copied().collect::<Vec<_>>().join(" ")
}

/// The time and the peak memory of a command.
async fn measured(kubeconfig: &Path, words: &[&str]) -> Result<(Duration, f64)> {
    let started = Instant::now();
    let mut command = Command::from(command(kubeconfig, words)?);
    let mut child = command.stdout(Stdio::null()).kill_on_drop(true).spawn()?;
    let id = child.id().context("it has ended")?;
    let mut peak = 0;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            () = sleep(LOOK) => peak = peak.max(memory_of(id, "VmHWM").unwrap_or_default()),
        }
    };
    let took = started.elapsed();
    // `check` may object to the benchmark's rules.
    ensure!(
        status.code().is_some_and(|code| code != 1),
        "{words:?}: {status}"
    );
    Ok((took, f64::from(u32::try_from(peak)?) / 1024.0))
}
