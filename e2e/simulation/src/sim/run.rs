//! Runs one schedule: events happen in the order of their times, and the laws judge each result. The same scenario, seed and
//! faults give the same run.

use std::collections::BTreeMap;

use nodegate_core::condition::Watch;
use nodegate_engine::election::LEASE_DURATION;

use super::actor::Actor;
use super::cluster::Cluster;
use super::election::Lease;
use super::fault::{Fault, Incident};
use super::law::{Moment, Report, Violation};
use super::laws::ledger::Ledger;
use super::laws::{self, Laws};
use super::process::{Process, World};
use super::rng::Rng;
use super::scenario::Scenario;
use super::settings::Settings;
use super::time::{self, Time, ms, s};

/// How long the cluster takes to recover from a fault: the lease has expired, and the watches have restarted.
const RECOVERY: Time = s(25);
/// How often an actor may act at the same time.
const ACTS: usize = 1000;
/// How many rounds there may be at the same time.
const TURNS: usize = 10_000;

#[derive(Debug, Clone)]
pub struct Outcome {
    pub violation: Option<Violation>,
    /// How many writes each instance has made.
    pub writes: Vec<usize>,
    /// How many events each watch of each instance has shown.
    pub events: BTreeMap<(usize, Watch), usize>,
    /// The cluster with its whole history.
    pub cluster: Cluster,
    /// Notes about the processes; with `trace` also all inputs and effects of the engine.
    pub notes: Vec<(Time, String)>,
}

/// Something that a fault does at a certain time.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    Begins(Incident, Time),
    /// Stalls the watches of the instances that do not lead.
    Stales {
        watch: Watch,
        from: Time,
        until: Time,
    },
}

struct Run<'a> {
    scenario: &'a Scenario,
    world: World<'a>,
    actors: Vec<(Box<dyn Actor>, Rng)>,
    processes: Vec<Process>,
    mishaps: Vec<(Time, Mishap)>,
    laws: Laws,
    ledger: Ledger,
    reports: Vec<Report>,
    /// How many changes have been passed on to all actors and processes.
    noted: usize,
    judged: (usize, usize),
    judged_at: Time,
}

/// Runs a schedule to its end, or until a law is broken. With `trace`, notes all inputs and effects of the engine.
pub fn run(scenario: &Scenario, seed: u64, faults: &[Fault], trace: bool) -> Outcome {
    let settings = (scenario.settings)();
    let mut run = Run::new(scenario, &settings, seed, faults);
    run.world.trace = trace;
    let violation = run.go().err();
    run.outcome(violation)
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, settings: &'a Settings, seed: u64, faults: &'a [Fault]) -> Self {
        let mut rng = Rng::new(seed);
        let mut cluster = Cluster::new(rng.next());
        let mut build = rng.fork();
        let actors = scenario.begin(&mut cluster, &mut build);
        let base = time::beginning();
        let process = |instance| Process::new(instance, scenario, faults, base, rng.fork());
        let processes: Vec<_> = (0..scenario.instances).map(process).collect();
        let mut mishaps: Vec<_> = faults.iter().flat_map(mishaps).collect();
        mishaps.sort_by_key(|(at, _)| *at);
        Self {
            scenario,
            world: World {
                cluster,
                lease: Lease::default(),
                faults,
                settings,
                instances: scenario.instances,
                troubled_until: Time::ZERO,
                notes: Vec::new(),
                trace: false,
            },
            actors: actors
                .into_iter()
                .map(|actor| (actor, rng.fork()))
                .collect(),
            reports: vec![Report::default(); processes.len()],
            processes,
            mishaps,
            laws: laws::all(),
            ledger: Ledger::default(),
            noted: 0,
            judged: (0, 0),
            judged_at: Time::ZERO,
        }
    }

    fn go(&mut self) -> Result<(), Violation> {
        self.note();
        let mut turns = 0;
        loop {
            let next = self.next();
            let end = self.calm_since() + self.scenario.settles;
            if next > end {
                self.world.cluster.advance(end);
                for process in &self.processes {
                    let survey = process.survey(end);
                    survey.map_err(|defect| self.violation("the engine works", defect))?;
                }
                return self.judge(true);
            }
            turns = if next > self.world.cluster.now() {
                0
            } else {
                turns + 1
            };
            if turns > TURNS {
                let what = format!("{TURNS} turns at one time");
                return Err(self.violation("time passes", what));
            }
            self.world.cluster.advance(next);
            self.go_wrong();
            self.act()?;
            for index in 0..self.processes.len() {
                let step = self.processes[index].step(&mut self.world);
                step.map_err(|defect| self.violation("the engine works", defect))?;
                self.note();
            }
            let cluster = &self.world.cluster;
            let done = (cluster.changes().len(), cluster.writes().len());
            let is_due = cluster.now() >= self.judged_at + s(1);
            if done != self.judged || is_due || self.somebody_came_or_went() {
                self.judge(false)?;
            }
        }
    }

    fn next(&self) -> Time {
        let actors = self.actors.iter().filter_map(|(actor, _)| actor.wake());
        let processes = self.processes.iter().filter_map(Process::next);
        let mishap = self.mishaps.first().map(|(at, _)| *at);
        let next = actors.chain(processes).chain(mishap).min();
        next.unwrap_or(Time::MAX)
    }

    /// When the scenario and its last fault have ended, as far as is known.
    fn calm_since(&self) -> Time {
        let faults = self.world.faults.iter().filter_map(Fault::ends);
        let troubled = faults.chain([self.world.troubled_until]).max();
        let troubled = troubled.filter(|until| *until > Time::ZERO);
        let recovered = troubled.map_or(Time::ZERO, |until| until + RECOVERY);
        self.scenario.lasts.max(recovered)
    }

    fn act(&mut self) -> Result<(), Violation> {
        let now = self.world.cluster.now();
        for index in 0..self.actors.len() {
            let mut acts = 0;
            while self.actors[index].0.wake().is_some_and(|wake| wake <= now) {
                let (actor, rng) = &mut self.actors[index];
                actor.act(&mut self.world.cluster, rng);
                acts += 1;
                if acts > ACTS {
                    let what = format!("actor {index} does not stop acting");
                    return Err(self.violation("time passes", what));
                }
                self.note();
            }
        }
        Ok(())
    }

    /// Passes new changes on to all actors and processes.
    fn note(&mut self) {
        let changes = self.world.cluster.changes();
        for change in &changes[self.noted..] {
            for (actor, rng) in &mut self.actors {
                actor.changed(change, &self.world.cluster, rng);
            }
            for process in &mut self.processes {
                process.changed(change);
            }
        }
        self.noted = changes.len();
    }

    fn go_wrong(&mut self) {
        let now = self.world.cluster.now();
        while let Some((at, mishap)) = self.mishaps.first().copied()
            && at <= now
        {
            self.mishaps.remove(0);
            match mishap {
                Mishap::Begins(what, lasts) => {
                    match what {
                        Incident::TwoLeaders => self.world.lease.betray(now + lasts),
                        Incident::LeaseDeleted => self.world.lease.delete(),
                        _ => {}
                    }
                    for process in &mut self.processes {
                        process.suffer(what, lasts, &mut self.world);
                    }
                }
                Mishap::Stales { watch, from, until } => {
                    for process in &mut self.processes {
                        if !process.leads() {
                            process.stand_still(watch, from, until);
                        }
                    }
                }
            }
        }
    }

    /// Whether a process has started or ended, or gained or lost the lead, since the last verdict.
    fn somebody_came_or_went(&self) -> bool {
        let standing = |report: &Report| (report.runs_since, report.leads_since);
        let mut pairs = self.reports.iter().zip(&self.processes);
        pairs.any(|(report, process)| standing(report) != standing(&process.report))
    }

    fn judge(&mut self, is_end: bool) -> Result<(), Violation> {
        for (report, process) in self.reports.iter_mut().zip(&self.processes) {
            if *report != process.report {
                report.clone_from(&process.report);
            }
        }
        let cluster = &self.world.cluster;
        self.ledger.read(cluster);
        let moment = Moment {
            ledger: &self.ledger,
            cluster,
            scenario: self.scenario,
            settings: self.world.settings,
            faults: self.world.faults,
            instances: &self.reports,
            new_changes: &cluster.changes()[self.judged.0..],
            new_writes: &cluster.writes()[self.judged.1..],
            calm_since: self.calm_since(),
        };
        let mut broken = None;
        for (name, law) in &mut self.laws {
            let judgement = law.check(&moment);
            let judgement =
                judgement.and_then(|()| if is_end { law.finally(&moment) } else { Ok(()) });
            if let Err(what) = judgement {
                broken = Some((*name, what));
                break;
            }
        }
        self.judged = (cluster.changes().len(), cluster.writes().len());
        self.judged_at = cluster.now();
        broken.map_or(Ok(()), |(law, what)| Err(self.violation(law, what)))
    }

    fn violation(&self, law: &'static str, what: String) -> Violation {
        Violation {
            law,
            at: self.world.cluster.now(),
            what,
        }
    }

    fn outcome(self, violation: Option<Violation>) -> Outcome {
        let events = self.processes.iter().enumerate();
        let events = events.flat_map(|(instance, process)| {
            let events = process.events();
            events.map(move |(watch, count)| ((instance, watch), count))
        });
        Outcome {
            violation,
            writes: self
                .processes
                .iter()
                .map(|process| process.writes)
                .collect(),
            events: events.collect(),
            cluster: self.world.cluster,
            notes: self.world.notes,
        }
    }
}

/// The timed steps of a fault.
fn mishaps(fault: &Fault) -> Vec<(Time, Mishap)> {
    let Some((what, at, lasts)) = fault.timed() else {
        return Vec::new();
    };
    let begins = (at, Mishap::Begins(what, lasts));
    let Incident::StaleStart(watch) = what else {
        return vec![begins];
    };
    let until = at + LEASE_DURATION + lasts / 2;
    let from = until.saturating_sub(lasts);
    let stales = Mishap::Stales { watch, from, until };
    // The leader must still be alive to tell the others apart.
    vec![(from.min(at.saturating_sub(ms(1))), stales), begins]
}
