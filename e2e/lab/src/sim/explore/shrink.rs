//! Shrinks a script that breaks a law: fewer faults, and each as short as possible.

use crate::sim::fault::Fault;
use crate::sim::law::Violation;
use crate::sim::machine::Start;
use crate::sim::script::Script;
use crate::sim::time::{Time, ms, s};

/// How many schedules one shrink may run.
const BUDGET: usize = 150;

/// The smallest script found that breaks the same law, with its violation.
#[must_use]
pub(super) fn shrink(
    script: Script,
    violation: Violation,
    start: Start<'_>,
) -> (Script, Violation) {
    let mut best = (script, violation);
    let mut budget = BUDGET;
    'again: loop {
        for candidate in candidates(&best.0) {
            if budget == 0 {
                return best;
            }
            budget -= 1;
            let violation = candidate.run(start).violation;
            if let Some(violation) = violation.filter(|it| it.law == best.1.law) {
                best = (candidate, violation);
                continue 'again;
            }
        }
        return best;
    }
}

/// Slightly smaller scripts, the smallest first.
fn candidates(script: &Script) -> Vec<Script> {
    let with = |faults| Script {
        faults,
        ..script.clone()
    };
    let mut candidates = Vec::new();
    for index in 0..script.faults.len() {
        let mut faults = script.faults.clone();
        faults.remove(index);
        candidates.push(with(faults));
    }
    for (index, fault) in script.faults.iter().enumerate() {
        for smaller in smaller(*fault) {
            let mut faults = script.faults.clone();
            faults[index] = smaller;
            candidates.push(with(faults));
        }
    }
    candidates
}

/// The same fault, shorter or at a rounder time.
fn smaller(fault: Fault) -> Vec<Fault> {
    let mut smaller = Vec::new();
    for change in [halved, rounded, simpler] {
        let mut other = fault;
        change(&mut other);
        if other != fault {
            smaller.push(other);
        }
    }
    smaller
}

fn halved(fault: &mut Fault) {
    if let Some(lasts) = lasts(fault)
        && *lasts > s(1)
    {
        *lasts = round(*lasts / 2);
    }
}

fn rounded(fault: &mut Fault) {
    if let Some(lasts) = lasts(fault) {
        *lasts = round(*lasts);
    }
    if let Some(at) = at(fault) {
        *at = round(*at);
    }
}

fn simpler(fault: &mut Fault) {
    match fault {
        Fault::Kill { down, .. } | Fault::Stop { down, .. } => *down = s(2),
        Fault::ClockStep { by, .. } => *by = by.signum() * 60,
        Fault::WatchDelay { by, .. } => *by = round(*by / 2),
        _ => {}
    }
}

fn round(time: Time) -> Time {
    let whole = s(time.as_secs());
    if whole > Time::ZERO { whole } else { ms(500) }
}

fn lasts(fault: &mut Fault) -> Option<&mut Time> {
    match fault {
        Fault::Stale { lasts, .. }
        | Fault::StaleStart { lasts, .. }
        | Fault::Lagging { lasts, .. }
        | Fault::Suspend { lasts, .. }
        | Fault::Freeze { lasts, .. }
        | Fault::TwoLeaders { lasts, .. }
        | Fault::Partition { lasts, .. }
        | Fault::Storm { lasts, .. }
        | Fault::WatchDelay { lasts, .. } => Some(lasts),
        _ => None,
    }
}

fn at(fault: &mut Fault) -> Option<&mut Time> {
    match fault {
        Fault::Stop { at, .. }
        | Fault::Stale { at, .. }
        | Fault::StaleStart { at, .. }
        | Fault::Lagging { at, .. }
        | Fault::ClockStep { at, .. }
        | Fault::Suspend { at, .. }
        | Fault::Freeze { at, .. }
        | Fault::TwoLeaders { at, .. }
        | Fault::Partition { at, .. }
        | Fault::Storm { at, .. }
        | Fault::WatchDelay { at, .. }
        | Fault::Expired { at, .. }
        | Fault::SilentDeath { at, .. } => Some(at),
        Fault::Kill { .. } | Fault::Unobserved { .. } | Fault::AnswerLost { .. } => None,
    }
}
