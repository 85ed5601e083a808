//! Plays a story from the start of its cluster to its exit code, for a demo's command.

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

use super::show::{Show, World};
use nodegate_testbed::Cluster;
use nodegate_testbed::Controller;
use nodegate_testbed::Options;
use nodegate_testbed::note_failure;

/// How many lines of the controller's log a failure shows.
const TAIL: usize = 15;

/// The parameters of a play.
#[derive(Debug)]
pub struct Play {
    /// The text to show while the cluster starts.
    pub opening: &'static str,
    /// The cluster.
    pub cluster: Options,
    /// Whether to leave control plane and controller running at the end.
    pub keep: bool,
    /// A command to look around with, if they are left running.
    pub look: &'static str,
    /// The reader's next step after the demo.
    pub point_on: &'static str,
}

/// Starts the cluster and tells the story in it, until its end, Ctrl-C or SIGTERM. `tell` leaves the controller in its last
/// argument, for its log and its end, and returns whether all promises were kept.
///
/// # Errors
///
/// When the cluster cannot start, or standard output cannot be written.
pub async fn perform<W: World>(
    play: Play,
    tell: impl AsyncFnOnce(&Show<W>, &Cluster, &mut Option<Controller>) -> Result<bool>,
) -> Result<ExitCode> {
    // From here on a signal only ends the wait below, so that the cluster shuts down in order.
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let code = tokio::select! {
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        code = run(play, tell) => Some(code?),
    };
    Ok(code.unwrap_or_else(|| {
        eprintln!("\ninterrupted; the cluster is gone");
        ExitCode::from(130)
    }))
}

async fn run<W: World>(
    play: Play,
    tell: impl AsyncFnOnce(&Show<W>, &Cluster, &mut Option<Controller>) -> Result<bool>,
) -> Result<ExitCode> {
    let show = Show::new();
    show.say(play.opening)?;
    let options = Options {
        detachable: play.keep,
        ..play.cluster
    };
    let cluster = Cluster::start(options).await?;
    // Declared after the cluster, so it drops first.
    let mut controller = None;
    let all_happened = match tell(&show, &cluster, &mut controller).await {
        Ok(all_happened) => all_happened,
        Err(error) => {
            show.keep_picture()?;
            drop(show);
            eprintln!("\nThe demo failed: {error:#}");
            false
        }
    };
    if all_happened {
        println!("\n{}", play.point_on);
    } else {
        note_failure();
        if let Some(controller) = &mut controller {
            eprint_end_of_log(controller);
        }
    }
    if play.keep
        && let Some(controller) = controller
    {
        keep(cluster, controller, play.look)?;
    }
    Ok(if all_happened {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn keep(cluster: Cluster, controller: Controller, look: &str) -> Result<()> {
    let kubeconfig = cluster.kubeconfig();
    let mut pids: Vec<String> = cluster.pids().values().map(u32::to_string).collect();
    pids.push(controller.leave_running().to_string());
    cluster.leave_running()?;
    println!("\nControl plane and controller are left running:\n");
    println!("export KUBECONFIG={}", kubeconfig.display());
    println!("{look}   # for example");
    println!("kill -9 {}   # ends it all", pids.join(" "));
    Ok(())
}

fn eprint_end_of_log(controller: &mut Controller) {
    if let Ok(Some(status)) = controller.exited() {
        eprintln!("The controller has ended: {status}.");
    }
    let log = controller.log();
    let lines: Vec<&str> = log.lines().collect();
    eprintln!("The end of the controller's log:");
    for line in &lines[lines.len().saturating_sub(TAIL)..] {
        eprintln!("  {line}");
    }
}
