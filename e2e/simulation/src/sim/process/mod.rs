//! One instance of Nodegate: its engine, its watches, its requests under way, its clocks and its part in the election.

mod control;
mod flights;
mod term;
mod world;

use std::time::Instant;

use nodegate_core::condition::Watch;
use nodegate_core::selector::Filter;
use nodegate_engine::io::{Effect, Input};
use nodegate_engine::{Engine, RequestError};

use super::cluster::Change;
use super::defect::guarded;
use super::election::{Life, RETRY_PERIOD, Standing};
use super::fault::Fault;
use super::law::Report;
use super::rng::Rng;
use super::scenario::Scenario;
use super::time::{Clocks, Time, ms, s};
use super::watches::Feed;
pub(super) use flights::LONGEST_FLIGHT;
use flights::{DEADLINE, Flight, Stage};
pub(super) use world::World;

/// How many times a second the engine may ask to be woken when nothing is new.
const IDLE_TURNS: u32 = 300;

pub(super) struct Process {
    instance: usize,
    /// `None` while the process is dead.
    engine: Option<Engine>,
    /// How often it has been started before.
    life: u32,
    starts_at: Time,
    clocks: Clocks,
    /// The watches that its engine has started in any of its lives.
    feeds: Vec<Feed>,
    /// When the suspension of all rules starts and ends.
    brake: Option<(Time, Time)>,
    /// Whether its engine knows of the suspension.
    is_braked: bool,
    /// The events that its watches must not show.
    unobserved: Vec<(Watch, usize)>,
    flights: Vec<Flight>,
    inputs: Vec<Input>,
    standing: Standing,
    /// When it next tries to take or renew the lease.
    attempt_at: Time,
    /// When it last took or renewed the lease; `None` once it has learnt that another instance holds it.
    renewed_at: Option<Time>,
    /// When it last resumed after standing still.
    woke_at: Option<Time>,
    /// The deadline to finish stopping, and how long it is down afterwards.
    stopping: Option<(Time, Time)>,
    /// Whether its engine knows that it must stop.
    was_told_to_stop: bool,
    asleep: Option<Sleep>,
    cut_off_until: Time,
    /// When the engine was last called, and how often within that second without new input.
    asked_at: Time,
    idle_turns: u32,
    /// How many writes it has made or attempted.
    pub(super) writes: usize,
    pub(super) report: Report,
    rng: Rng,
}

#[derive(Debug, Clone, Copy)]
struct Sleep {
    since: Time,
    until: Time,
    /// Whether its monotonic clock stands still too.
    is_suspended: bool,
}

impl Process {
    /// An instance that starts soon.
    pub(super) fn new(
        instance: usize,
        scenario: &Scenario,
        faults: &[Fault],
        base: Instant,
        mut rng: Rng,
    ) -> Self {
        let unobserved = faults.iter().filter_map(|fault| match *fault {
            Fault::Unobserved {
                instance: it,
                watch,
                event,
            } if it == instance => Some((watch, event)),
            _ => None,
        });
        Self {
            instance,
            engine: None,
            life: 0,
            starts_at: rng.between(ms(0), ms(500)),
            clocks: Clocks::new(base),
            feeds: Vec::new(),
            brake: scenario.brake,
            is_braked: false,
            unobserved: unobserved.collect(),
            flights: Vec::new(),
            inputs: Vec::new(),
            standing: Standing::default(),
            attempt_at: Time::ZERO,
            renewed_at: None,
            woke_at: None,
            stopping: None,
            was_told_to_stop: false,
            asleep: None,
            cut_off_until: Time::ZERO,
            asked_at: Time::ZERO,
            idle_turns: 0,
            writes: 0,
            report: Report::default(),
            rng,
        }
    }

    /// How many events each of its watches has shown.
    pub(super) fn events(&self) -> impl Iterator<Item = (Watch, usize)> {
        self.feeds.iter().map(|feed| (feed.watch, feed.events))
    }

    /// Whether it believes that it leads.
    pub(super) fn leads(&self) -> bool {
        self.report.leads_since.is_some()
    }

    /// When something next happens here.
    pub(super) fn next(&self) -> Option<Time> {
        let flights = self.flights.iter().filter_map(|flight| match flight.stage {
            Stage::Sent(at) => Some(at),
            Stage::Answered(at, _) => self.is_awake().then_some(at),
        });
        let flights = flights.min();
        let own = match (&self.engine, self.asleep) {
            (None, _) => Some(self.starts_at),
            (Some(_), Some(sleep)) => Some(sleep.until),
            (Some(engine), None) => {
                let feeds = self.feeds.iter().map(Feed::next).min();
                let wake = engine.next_wake().map(|wake| self.clocks.when(wake));
                let wake = wake.map(|wake| wake.max(self.asked_at + ms(1)));
                let input = (!self.inputs.is_empty()).then_some(Time::ZERO);
                let stop = self.stopping.map(|(until, _)| until);
                // A stopping process takes no part in the election.
                let term = self.standing.term.as_ref().filter(|_| stop.is_none());
                let term = term.map(|term| self.clocks.when(term.ends()));
                let brake = self
                    .brake
                    .map(|(on, off)| if self.is_braked { off } else { on });
                let others = [feeds, wake, input, term, stop, brake, Some(self.attempt_at)];
                others.into_iter().flatten().min()
            }
        };
        flights.into_iter().chain(own).min()
    }

    pub(super) fn changed(&mut self, change: &Change) {
        if self.engine.is_some() {
            for feed in &mut self.feeds {
                feed.changed(change);
            }
        }
    }

    /// Does everything that is due.
    pub(super) fn step(&mut self, world: &mut World<'_>) -> Result<(), String> {
        let now = world.cluster.now();
        self.carry_requests(world);
        if self.engine.is_none() {
            if self.starts_at > now {
                return Ok(());
            }
            self.begin(world)?;
        }
        if let Some(sleep) = self.asleep {
            if now < sleep.until {
                return Ok(());
            }
            self.asleep = None;
            self.woke_at = Some(now);
            if sleep.is_suspended {
                let slept = sleep.until.saturating_sub(sleep.since);
                self.clocks.suspended(slept);
                // Its own clock does not count the suspension.
                self.renewed_at = self.renewed_at.map(|at| at + slept);
            }
        }
        self.gather(world);
        self.ask(world)?;
        self.elect(world);
        self.end_if_stopped(world);
        Ok(())
    }

    /// Has the engine fill its gauges, to see that this works.
    pub(super) fn survey(&self, now: Time) -> Result<(), String> {
        match &self.engine {
            Some(engine) => guarded(|| engine.survey(self.clocks.now(now))).map(drop),
            None => Ok(()),
        }
    }

    fn feed(&mut self, watch: Watch) -> Option<&mut Feed> {
        self.feeds.iter_mut().find(|feed| feed.watch == watch)
    }

    fn id(&self) -> Life {
        (self.instance, self.life)
    }

    fn is_awake(&self) -> bool {
        self.engine.is_some() && self.asleep.is_none()
    }

    fn begin(&mut self, world: &mut World<'_>) -> Result<(), String> {
        let now = world.cluster.now();
        let clocks = self.clocks.now(now);
        self.engine = Some(guarded(|| Engine::new(world.settings, clocks))?);
        for feed in &mut self.feeds {
            feed.forget();
        }
        self.is_braked = false;
        self.report.runs_since = Some(now);
        world.note(self.id(), || "starts".into());
        self.asked_at = now;
        self.idle_turns = 0;
        self.attempt_at = now + self.rng.between(ms(0), RETRY_PERIOD);
        // The suspension must be known before anything is written.
        self.look_at_brake(now);
        if world.instances == 1 {
            self.attempt_at = Time::MAX;
            self.inputs.push(Input::Leads);
            self.report.leads_since = Some(now);
        }
        Ok(())
    }

    fn look_at_brake(&mut self, now: Time) {
        let Some((on, off)) = self.brake else { return };
        let is_braked = (on..off).contains(&now);
        if std::mem::replace(&mut self.is_braked, is_braked) != is_braked {
            self.inputs.push(Input::SuspendAll(is_braked));
        }
        // The suspension never returns.
        self.brake = self.brake.filter(|_| now < off);
    }

    fn gather(&mut self, world: &World<'_>) {
        let now = world.cluster.now();
        self.look_at_brake(now);
        let mut seen = Vec::new();
        for feed in &mut self.feeds {
            feed.poll(&world.cluster, &self.clocks, &mut seen);
        }
        self.inputs.extend(seen.into_iter().map(Input::Seen));
        let is_cut_off = now < self.cut_off_until;
        let mut rest = Vec::new();
        for mut flight in std::mem::take(&mut self.flights) {
            match flight.stage {
                Stage::Answered(at, result) if at <= now => {
                    let was_lost = is_cut_off && result.is_ok();
                    if was_lost && flight.sent + DEADLINE > now {
                        let error = RequestError::TimedOut(DEADLINE);
                        flight.stage = Stage::Answered(flight.sent + DEADLINE, Err(error));
                        rest.push(flight);
                    } else {
                        self.inputs.push(Input::Answered(flight.id, result));
                    }
                }
                _ => rest.push(flight),
            }
        }
        self.flights = rest;
    }

    /// Passes the inputs to the engine and carries out its effects.
    fn ask(&mut self, world: &mut World<'_>) -> Result<(), String> {
        let now = world.cluster.now();
        let clocks = self.clocks.now(now);
        let Some(engine) = &mut self.engine else {
            return Ok(());
        };
        let is_due = engine
            .next_wake()
            .is_some_and(|wake| wake <= clocks.monotonic);
        if self.inputs.is_empty() && !is_due {
            return Ok(());
        }
        if self.inputs.is_empty() && now < self.asked_at + s(1) {
            self.idle_turns += 1;
            if self.idle_turns > IDLE_TURNS {
                let what = format!("asks to be woken {IDLE_TURNS} times with nothing new for it");
                return Err(what);
            }
        } else {
            self.idle_turns = 0;
        }
        self.asked_at = now;
        let inputs = std::mem::take(&mut self.inputs);
        self.was_told_to_stop |= inputs.iter().any(|input| matches!(input, Input::Stop));
        if world.trace {
            for input in &inputs {
                world.note((self.instance, self.life), || format!("<- {input:?}"));
            }
        }
        let effects = guarded(|| engine.take(inputs, clocks))?;
        if world.trace {
            for effect in &effects {
                world.note((self.instance, self.life), || format!("-> {effect:?}"));
            }
        }
        if engine.has_synced() && self.report.synced_since.is_none() {
            self.report.synced_since = Some(now);
        }
        self.note_nodes(now);
        for effect in effects {
            match effect {
                Effect::Request(id, request) => {
                    if !self.send(id, request, world) {
                        break;
                    }
                }
                Effect::Watch(watch, scope) => self.watch(watch, &scope, now),
                Effect::Unwatch(watch) => {
                    if let Some(feed) = self.feed(watch) {
                        feed.end();
                    }
                }
                Effect::Count(_) => {}
            }
        }
        Ok(())
    }

    /// Starts a watch that the engine asks for.
    fn watch(&mut self, watch: Watch, scope: &Filter, now: Time) {
        if self.feed(watch).is_none() {
            let mut feed = Feed::new(watch, scope, self.rng.fork());
            let hidden = self.unobserved.iter().filter(|(it, _)| *it == watch);
            feed.hidden = hidden.map(|(_, event)| *event).collect();
            self.feeds.push(feed);
        }
        let cut_off_until = self.cut_off_until;
        if let Some(feed) = self.feed(watch) {
            feed.begin_anew(scope, now);
            if now < cut_off_until {
                feed.stand_still(now, cut_off_until);
            }
        }
    }

    fn note_nodes(&mut self, now: Time) {
        // Only a synced leader decides.
        if self.report.synced_since.is_none() || self.report.leads_since.is_none() {
            return;
        }
        let seen = &mut self.report.nodes_seen;
        for feed in &self.feeds {
            // Within one life their number only grows.
            if feed.nodes.len() <= seen.len() {
                continue;
            }
            for uid in &feed.nodes {
                seen.entry(uid.clone()).or_insert(now);
            }
        }
    }
}
