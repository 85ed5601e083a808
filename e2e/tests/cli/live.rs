//! The output of commands that follow a changing fleet: line by line without a terminal, and drawn on one.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use nodegate_tests::SOON;
use nodegate_tests::gates::eventually_gated;
use testkit::nodegate::ask::command;
use testkit::nodegate::changes::{delete_node, delete_rule, set_node_condition};
use testkit::nodegate::fixtures;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::terminal::Terminal;
use crate::world::{HELD, TURN, World, world};

const TAINT: &str = "readiness.k8s.io/live";
const READY: &str = "example.com/LiveReady";

fn follow(world: &World) -> Result<(Child, Lines<BufReader<ChildStdout>>)> {
    let command = command(&world.cluster.kubeconfig(), &["status", "--watch"])?;
    let mut child = Command::from(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let out = child.stdout.take().context("no output")?;
    Ok((child, BufReader::new(out).lines()))
}

/// The next line about this node, without its time.
async fn next_of(lines: &mut Lines<BufReader<ChildStdout>>, node: &str) -> Result<String> {
    let read = async {
        while let Some(line) = lines.next_line().await? {
            let (time, rest) = line.split_once(' ').context("a line without a time")?;
            ensure!(time.ends_with('Z'), "{line}");
            if rest.starts_with(&format!("{node} ")) {
                return Ok(rest.to_owned());
            }
        }
        anyhow::bail!("it has ended")
    };
    timeout(SOON * 3, read)
        .await
        .with_context(|| format!("nothing is told of {node}"))?
}

#[tokio::test]
async fn each_change_is_a_line_where_there_is_no_terminal() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let client = world.cluster.client().await?;
    let (mut child, mut lines) = follow(world)?;
    let held = next_of(&mut lines, HELD).await?;
    ensure!(
        held.starts_with(&format!("{HELD} held network pod default/")),
        "{held}"
    );
    // A rule and a node that come after the lists were read.
    let rule = fixtures::rule("live", TAINT).waits_for(READY);
    rule.selects("live", "yes").create(&client).await?;
    let node = fixtures::node("live").label("live", "yes");
    node.taint(TAINT, "NoSchedule").create(&client).await?;
    let joined = next_of(&mut lines, "live").await?;
    ensure!(
        joined.starts_with("live held live example.com/LiveReady"),
        "{joined}"
    );
    set_node_condition(&client, "live", READY, "False").await?;
    let told = next_of(&mut lines, "live").await?;
    ensure!(
        told.starts_with("live held live ") && told != joined,
        "{told}"
    );
    set_node_condition(&client, "live", READY, "True").await?;
    let released = next_of(&mut lines, "live").await?;
    ensure!(released == "live released live", "{released}");
    set_node_condition(&client, "live", READY, "False").await?;
    let again = next_of(&mut lines, "live").await?;
    ensure!(again.starts_with("live held live "), "{again}");
    eventually_gated(&client, "live", TAINT).await?;
    // A closed pipe ends the command at its next line.
    drop(lines);
    delete_node(&client, "live").await?;
    let status = timeout(SOON * 3, child.wait())
        .await
        .context("it goes on")??;
    let mut complaint = String::new();
    let mut err = child.stderr.take().context("no standard error")?;
    tokio::io::AsyncReadExt::read_to_string(&mut err, &mut complaint).await?;
    ensure!(
        status.success() && complaint.is_empty(),
        "{status} {complaint}"
    );
    delete_rule(&client, "live").await
}

#[tokio::test]
async fn a_terminal_is_redrawn_until_it_is_told_to_stop() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    for end in [Signal::SIGINT, Signal::SIGTERM] {
        let command = command(&world.cluster.kubeconfig(), &["status", "--watch"])?;
        let mut terminal = Terminal::open(Command::from(command))?;
        terminal.shows(HELD).await?;
        terminal.shows("\u{1b}[J").await?;
        let id = terminal.child.id().context("it has ended")?;
        kill(Pid::from_raw(i32::try_from(id)?), end)?;
        let status = timeout(SOON, terminal.child.wait()).await;
        let status = status.with_context(|| format!("{end:?} does not end it"))??;
        ensure!(status.success(), "{end:?}: {status}");
    }
    Ok(())
}
