//! Shrinks a script that breaks a law: fewer faults, and each as short as possible.

use crate::sim::fault::{Fault, Incident};
use crate::sim::law::Violation;
use crate::sim::script::Script;
use crate::sim::time::{Time, ms, s};

/// How many schedules one shrink may run.
const BUDGET: usize = 150;

/// The smallest script found that breaks the same law, with its violation.
pub(super) fn shrink(script: Script, violation: Violation) -> (Script, Violation) {
    let mut best = (script, violation);
    let mut budget = BUDGET;
    'again: loop {
        for candidate in candidates(&best.0) {
            if budget == 0 {
                return best;
            }
            budget -= 1;
            let violation = candidate.run(false).violation;
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

/// The same fault, shorter, at a rounder time, or simpler.
fn smaller(fault: Fault) -> Vec<Fault> {
    let candidates = match fault {
        Fault::Timed { at, lasts, what } => {
            let halved = if lasts > s(1) {
                round(lasts / 2)
            } else {
                lasts
            };
            vec![
                what.at(at, halved),
                what.at(round(at), round(lasts)),
                simpler(what).at(at, lasts),
            ]
        }
        Fault::Kill {
            instance,
            write,
            side,
            ..
        } => vec![Fault::Kill {
            instance,
            write,
            side,
            down: s(2),
        }],
        Fault::AnswerLost { .. } | Fault::Unobserved { .. } => Vec::new(),
    };
    let mut smaller = candidates;
    smaller.retain(|other| *other != fault);
    smaller
}

fn simpler(what: Incident) -> Incident {
    match what {
        Incident::ClockStep(instance, by) => Incident::ClockStep(instance, by.signum() * 60),
        Incident::WatchDelay(watch, by) => Incident::WatchDelay(watch, round(by / 2)),
        other => other,
    }
}

fn round(time: Time) -> Time {
    match s(time.as_secs()) {
        Time::ZERO if time > Time::ZERO => ms(500),
        whole => whole,
    }
}
