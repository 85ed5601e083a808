//! The `demo` command: Nodegate at work in a real control plane, as a story on the screen.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use nodegate_e2e::demo::{Show, tell};
use nodegate_e2e::{Cluster, Controller, ControllerManager, Options, note_failure};
use tokio::signal::unix::{SignalKind, signal};

/// How many lines of the controller's log a failure shows.
const TAIL: usize = 15;

/// How often the kubelets beat. The node lifecycle controller is there, which gives up on a node after 40 s.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Shows what Nodegate does, in about 40 seconds, on a Kubernetes control plane of its own.
///
/// etcd, API server, controller manager and scheduler are real; kwok plays the kubelets. Nodes join with a taint, critical
/// components (a CNI, a CSI driver) roll out, and a workload waits. You see each node open once its critical components
/// are there, and the workload land on open nodes only. Then a CNI pod breaks, and its node closes and opens again.
///
/// The demo asserts what it shows: it ends with exit code 0 when all of it really happened, and with 1 when not.
#[derive(Parser)]
#[command(
    after_help = "In a terminal it draws a table (no colours where NO_COLOR is set); elsewhere it writes a \
line for each change.\nCtrl-C ends it and takes the cluster down."
)]
struct Cli {
    /// Leave control plane and controller running at the end, and say how to reach and how to end them.
    #[arg(long)]
    keep: bool,

    /// How many nodes join.
    #[arg(long, value_name = "NUMBER", default_value_t = 6, value_parser = clap::value_parser!(u8).range(2..=15))]
    nodes: u8,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    // From here on a signal ends the wait below, not the process, so that the cluster is taken down in order.
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let code = tokio::select! {
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        code = run(&cli) => Some(code?),
    };
    Ok(code.unwrap_or_else(|| {
        eprintln!("\ninterrupted; the cluster is gone");
        ExitCode::from(130)
    }))
}

async fn run(cli: &Cli) -> Result<ExitCode> {
    let show = Show::new();
    show.say(
        "A Kubernetes control plane starts: etcd, API server, controller manager and scheduler are real, kwok plays the \
         kubelets.",
    )?;
    let options = Options {
        controller_manager: ControllerManager::Complete,
        kwok: Some(HEARTBEAT),
        detachable: cli.keep,
        ..Options::full()
    };
    let cluster = Cluster::start(options).await?;
    // Declared after the cluster: it goes first.
    let mut controller = None;
    let told = tell(&show, &cluster, &mut controller, cli.nodes.into()).await;
    let all_happened = match told {
        Ok(ending) => show.sum_up(&ending)?,
        Err(error) => {
            show.break_off()?;
            drop(show);
            eprintln!("\nThe demo failed: {error:#}");
            false
        }
    };
    if all_happened {
        point_on(cli.keep);
    } else {
        note_failure();
        if let Some(controller) = &mut controller {
            eprint_end_of_log(controller);
        }
    }
    if cli.keep
        && let Some(controller) = controller
    {
        keep(cluster, controller)?;
    }
    Ok(if all_happened {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where to go from here, having seen it all.
fn point_on(keep: bool) {
    println!("\nTo try it on a cluster of yours: README.md. Rules for your case: examples/.");
    if !keep {
        println!("To look around in a cluster like this one: make demo KEEP=1");
    }
}

fn keep(cluster: Cluster, controller: Controller) -> Result<()> {
    let kubeconfig = cluster.kubeconfig();
    let mut pids: Vec<String> = cluster.pids().values().map(u32::to_string).collect();
    pids.push(controller.leave_running().to_string());
    cluster.leave_running()?;
    println!("\nControl plane and controller are left running:\n");
    println!("export KUBECONFIG={}", kubeconfig.display());
    println!("kubectl get nodereadinessrules,nodes,pods -A -o wide   # for example");
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
