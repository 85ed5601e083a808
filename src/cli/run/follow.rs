//! Follows the fleet without a terminal: one line for each change.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::time::{sleep_until, timeout_at};

use super::access::write_on;
use crate::cli::printable::printable;
use crate::cli::read::Live;
use crate::cli::top::{Fleet, ToldChanges};
use crate::shutdown::told_to_stop;

/// Changes within this time are reported together.
const TOGETHER: Duration = Duration::from_millis(200);
/// The longest time between two evaluations, so that changes by time alone are seen.
const AT_LEAST: Duration = Duration::from_secs(5);

/// Writes a line for each change until the reader is gone or the process is told to stop.
pub(super) async fn run(mut live: Live<'_>) -> anyhow::Result<ExitCode> {
    let mut stop = std::pin::pin!(told_to_stop()?);
    let mut told = ToldChanges::default();
    let mut problem = None;
    loop {
        let now_problem = live.problem();
        let snapshot = live.at(Timestamp::now());
        let fleet = Fleet::of(snapshot, now_problem.clone());
        let is_there = |name: &str| snapshot.view.node(name).is_some();
        for line in told.lines(&fleet, is_there) {
            if !write_on(&(printable(line) + "\n"))? {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if problem != now_problem {
            match &now_problem {
                Some(problem) => {
                    eprintln!("note: not up to date: {}", printable(problem));
                }
                None => eprintln!("note: up to date again"),
            }
            problem = now_problem;
        }
        if !live.is_live() {
            return Ok(ExitCode::SUCCESS);
        }
        let now = Instant::now();
        let changes = async {
            changed_by(&mut live, now + AT_LEAST).await;
            changes_until(&mut live, Instant::now() + TOGETHER).await;
        };
        tokio::select! {
            () = &mut stop => return Ok(ExitCode::SUCCESS),
            () = changes => {}
        }
    }
}

/// Waits for a change until `end` at the latest.
pub(super) async fn changed_by(live: &mut Live<'_>, end: Instant) {
    // A timeout is fine.
    let _ = timeout_at(end.into(), live.changed()).await;
}

pub(super) async fn changes_until(live: &mut Live<'_>, end: Instant) {
    let mut over = std::pin::pin!(sleep_until(end.into()));
    loop {
        tokio::select! {
            biased;
            () = &mut over => return,
            () = live.changed() => {}
        }
    }
}
