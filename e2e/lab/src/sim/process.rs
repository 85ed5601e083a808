//! One instance of Nodegate: what it runs, its watches, its requests under way, its clocks and its part in the election. It
//! can be killed and started anew, told to stop, frozen, suspended and cut off.

use std::time::Instant;

use jiff::SignedDuration;
use nodegate::engine::RequestError;
use nodegate::engine::election::{Attempt, Loss, Term, may_stand};
use nodegate::engine::io::{Answer, Effect, Input, Request, RequestId};
use nodegate::engine::kind::Watch;

use super::cluster::{Change, Cluster, Who};
use super::defect::{Defect, guarded};
use super::election::{Lease, Life, RETRY_PERIOD, Standing};
use super::fault::{Fault, Side, Trouble};
use super::law::Report;
use super::machine::{Machine, Start};
use super::rng::Rng;
use super::settings::Settings;
use super::time::{Clocks, Time, ms, s};
use super::transport::{carry, is_of_status, is_write, target};
use super::watches::Feed;

/// How long a request may take.
const DEADLINE: Time = s(10);
/// How long what is under way may take to end, once a process has been told to stop.
const STOPPING: Time = s(10);
/// How long a process is down that has ended because it does not lead any more.
const RESTART: Time = s(1);
/// How often a machine may want to be asked within a second without anything new for it.
const IDLE_TURNS: u32 = 300;
/// How many of a hundred requests a storm hits.
const STORM: usize = 85;

/// What the processes share.
#[derive(Debug)]
pub struct World<'a> {
    /// The cluster.
    pub cluster: Cluster,
    /// The Lease.
    pub lease: Lease,
    /// What goes wrong.
    pub faults: &'a [Fault],
    /// What the instances are set to.
    pub settings: &'a Settings,
    /// How many instances there are. Where there is one, there is no election.
    pub instances: usize,
    /// When the last fault that has come about ends.
    pub troubled_until: Time,
    /// What has become of the processes.
    pub notes: Vec<(Time, String)>,
    /// Whether all that they are told and do is noted too.
    pub trace: bool,
}

impl World<'_> {
    /// What the API server answers to nearly everything now.
    fn storm(&self) -> Option<Trouble> {
        let now = self.cluster.now();
        self.faults.iter().find_map(|fault| match fault {
            Fault::Storm { trouble, at, lasts } => {
                (*at <= now && now < *at + *lasts).then_some(*trouble)
            }
            _ => None,
        })
    }

    fn note(&mut self, life: Life, what: impl FnOnce() -> String) {
        let (instance, life) = life;
        let note = format!("instance {instance}, life {life}: {}", what());
        self.notes.push((self.cluster.now(), note));
    }

    fn trouble_until(&mut self, until: Time) {
        self.troubled_until = self.troubled_until.max(until);
    }
}

/// One instance.
pub struct Process<'a> {
    instance: usize,
    start: Start<'a>,
    /// What it runs, unless it is dead.
    machine: Option<Box<dyn Machine>>,
    /// How often it has been started before.
    life: u32,
    starts_at: Time,
    clocks: Clocks,
    feeds: Vec<Feed>,
    flights: Vec<Flight>,
    inputs: Vec<Input>,
    standing: Standing,
    /// When it next tries to take or renew the lease.
    attempt_at: Time,
    /// Until when it is given time to end, and how long it is down then.
    stopping: Option<(Time, Time)>,
    /// Whether its machine has been told so.
    was_told_to_stop: bool,
    asleep: Option<Sleep>,
    cut_off_until: Time,
    /// When the machine was asked last, and how often within that second without anything new.
    asked_at: Time,
    idle_turns: u32,
    writes: usize,
    report: Report,
    rng: Rng,
}

/// It stands still.
#[derive(Debug, Clone, Copy)]
struct Sleep {
    since: Time,
    until: Time,
    /// The machine is suspended: its monotonic clock stands still too.
    is_suspended: bool,
}

/// A request under way.
struct Flight {
    id: RequestId,
    life: u32,
    request: Request,
    sent: Time,
    stage: Stage,
    fate: Fate,
}

enum Stage {
    /// It reaches the API server then.
    Sent(Time),
    /// Its answer comes then.
    Answered(Time, Result<Answer, RequestError>),
}

/// What becomes of a request that a fault names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Usual,
    /// Its process dies once it has been carried out.
    Kills {
        down: Time,
    },
    AnswerLost {
        done: bool,
    },
}

impl<'a> Process<'a> {
    /// An instance that starts soon.
    pub fn new(
        instance: usize,
        start: Start<'a>,
        settings: &Settings,
        faults: &[Fault],
        base: Instant,
        mut rng: Rng,
    ) -> Self {
        let mut feeds = Feed::all(settings, &mut rng);
        for fault in faults {
            if let Fault::Unobserved {
                instance: it,
                watch,
                event,
            } = fault
                && *it == instance
                && let Some(feed) = feeds.iter_mut().find(|feed| feed.watch() == *watch)
            {
                feed.hide(*event);
            }
        }
        Self {
            instance,
            start,
            machine: None,
            life: 0,
            starts_at: rng.between(ms(0), ms(500)),
            clocks: Clocks::new(base),
            feeds,
            flights: Vec::new(),
            inputs: Vec::new(),
            standing: Standing::default(),
            attempt_at: Time::ZERO,
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

    /// What is known of it.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// How many writes it has made or tried to make.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.writes
    }

    /// How many events each of its watches has shown.
    pub fn events(&self) -> impl Iterator<Item = (Watch, usize)> {
        self.feeds.iter().map(|feed| (feed.watch(), feed.events()))
    }

    /// Whether it thinks that it leads.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.report.leads_since.is_some()
    }

    /// When something happens here.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        let flights = self.flights.iter().filter_map(|flight| match flight.stage {
            Stage::Sent(at) => Some(at),
            Stage::Answered(at, _) => self.is_awake().then_some(at),
        });
        let flights = flights.min();
        let own = match (&self.machine, self.asleep) {
            (None, _) => Some(self.starts_at),
            (Some(_), Some(sleep)) => Some(sleep.until),
            (Some(machine), None) => {
                let feeds = self.feeds.iter().map(Feed::next).min();
                let wake = machine.next_wake().map(|wake| self.clocks.when(wake));
                let wake = wake.map(|wake| wake.max(self.asked_at + ms(1)));
                let input = (!self.inputs.is_empty()).then_some(Time::ZERO);
                let term = self.standing.term.map(|term| self.clocks.when(term.ends()));
                let stop = self.stopping.map(|(until, _)| until);
                let others = [feeds, wake, input, term, stop, Some(self.attempt_at)];
                others.into_iter().flatten().min()
            }
        };
        flights.into_iter().chain(own).min()
    }

    /// Takes note of a change of any object.
    pub fn changed(&mut self, change: &Change) {
        if self.machine.is_some() {
            for feed in &mut self.feeds {
                feed.changed(change);
            }
        }
    }

    /// Does everything that is due.
    ///
    /// # Errors
    /// When the machine does what none may do.
    pub fn step(&mut self, world: &mut World<'_>) -> Result<(), Defect> {
        let now = world.cluster.now();
        self.carry_requests(world);
        if self.machine.is_none() {
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
            if sleep.is_suspended {
                self.clocks.suspended(sleep.until - sleep.since);
            }
        }
        self.gather(world);
        self.ask(world)?;
        self.elect(world);
        self.end_if_stopped(world);
        Ok(())
    }

    /// The process dies now, and starts anew after a while. What is under way may arrive or not.
    pub fn die(&mut self, world: &mut World<'_>, down: Time) {
        let now = world.cluster.now();
        if self.machine.take().is_none() {
            return;
        }
        let life = self.life;
        world.note(self.id(), || "ends".into());
        self.life += 1;
        self.starts_at = now + down;
        world.trouble_until(self.starts_at);
        self.standing = Standing::default();
        self.inputs.clear();
        self.stopping = None;
        self.was_told_to_stop = false;
        if let Some(Sleep {
            since,
            is_suspended: true,
            ..
        }) = self.asleep.take()
        {
            self.clocks.suspended(now.saturating_sub(since));
        }
        let rng = &mut self.rng;
        self.flights.retain(|flight| {
            flight.life != life || (matches!(flight.stage, Stage::Sent(_)) && rng.chance(50))
        });
        self.report = Report::default();
    }

    /// Tells it to stop.
    pub fn stop(&mut self, now: Time, down: Time) {
        if self.machine.is_some() && self.stopping.is_none() {
            self.stopping = Some((now + STOPPING, down));
            self.inputs.push(Input::Stop);
        }
    }

    /// It stands still until then.
    pub fn sleep(&mut self, now: Time, until: Time, is_suspended: bool) {
        if self.machine.is_some() && self.asleep.is_none() {
            self.asleep = Some(Sleep {
                since: now,
                until,
                is_suspended,
            });
        }
    }

    /// Sets its wall clock.
    pub fn set_clock(&mut self, by: SignedDuration) {
        self.clocks.step(by);
    }

    /// It cannot reach the API server until then.
    pub fn cut_off(&mut self, now: Time, until: Time) {
        self.cut_off_until = self.cut_off_until.max(until);
        for feed in &mut self.feeds {
            feed.stand_still(now, until);
        }
    }

    /// One of its watches stands still from then until then.
    pub fn stand_still(&mut self, watch: Watch, from: Time, until: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.stand_still(from, until);
        }
    }

    /// One of its watches shows everything later by this, until then.
    pub fn be_late(&mut self, watch: Watch, until: Time, by: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.be_late(until, by);
        }
    }

    /// The connection of one of its watches dies without a word.
    pub fn lose(&mut self, watch: Watch) {
        if let Some(feed) = self.feed(watch) {
            feed.die();
        }
    }

    /// The API server cannot go on with one of its watches.
    pub fn expire(&mut self, watch: Watch, now: Time) {
        let mut seen = Vec::new();
        if self.machine.is_some()
            && let Some(feed) = self.feed(watch)
        {
            feed.expire(now, &mut seen);
        }
        self.inputs.extend(seen.into_iter().map(Input::Seen));
    }

    fn feed(&mut self, watch: Watch) -> Option<&mut Feed> {
        self.feeds.iter_mut().find(|feed| feed.watch() == watch)
    }

    fn id(&self) -> Life {
        (self.instance, self.life)
    }

    fn is_awake(&self) -> bool {
        self.machine.is_some() && self.asleep.is_none()
    }

    fn begin(&mut self, world: &mut World<'_>) -> Result<(), Defect> {
        let now = world.cluster.now();
        let clocks = self.clocks.now(now);
        let start = self.start;
        self.machine = Some(guarded(|| start(world.settings, clocks))?);
        for feed in &mut self.feeds {
            feed.restart(now);
        }
        self.report.runs_since = Some(now);
        world.note(self.id(), || "starts".into());
        self.asked_at = now;
        self.idle_turns = 0;
        self.attempt_at = now + self.rng.between(ms(0), RETRY_PERIOD);
        if world.instances == 1 {
            self.attempt_at = Time::MAX;
            self.inputs.push(Input::Leads);
            self.report.leads_since = Some(now);
        }
        Ok(())
    }

    /// What the API server does with the requests that have reached it.
    fn carry_requests(&mut self, world: &mut World<'_>) {
        let now = world.cluster.now();
        let mut killed = None;
        let mut flights = std::mem::take(&mut self.flights);
        for flight in &mut flights {
            if matches!(flight.stage, Stage::Sent(at) if at <= now) {
                let (after, result) = self.carry(flight, world);
                flight.stage = Stage::Answered(after, result);
                if let Fate::Kills { down } = flight.fate
                    && flight.life == self.life
                {
                    killed = Some(down);
                }
            }
        }
        let life = self.life;
        flights.retain(|flight| flight.life == life || matches!(flight.stage, Stage::Sent(_)));
        self.flights = flights;
        if let Some(down) = killed {
            self.die(world, down);
        }
    }

    /// Carries one request out; answers when its answer comes, and what it is.
    fn carry(
        &mut self,
        flight: &Flight,
        world: &mut World<'_>,
    ) -> (Time, Result<Answer, RequestError>) {
        let now = world.cluster.now();
        let soon = now + self.latency();
        let late = (flight.sent + DEADLINE).max(soon);
        let timed_out = || (late, Err(RequestError::TimedOut(DEADLINE)));
        if now < self.cut_off_until {
            if self.rng.chance(50) {
                return timed_out();
            }
            let message = "connection refused".to_owned();
            return (soon, Err(RequestError::Unreachable(message)));
        }
        if flight.fate == (Fate::AnswerLost { done: false }) {
            world.trouble_until(late);
            return timed_out();
        }
        let is_write = is_write(&flight.request);
        if let Some(trouble) = world.storm()
            && self.rng.chance(STORM)
        {
            match trouble {
                Trouble::Conflict if is_write => return (soon, Err(RequestError::Conflict)),
                Trouble::Conflict => {}
                Trouble::TooManyRequests => {
                    let error = RequestError::Throttled {
                        message: "too many requests".into(),
                        come_again: Some(s(1)),
                    };
                    return (soon, Err(error));
                }
                Trouble::InternalError | Trouble::Unavailable => {
                    let error = RequestError::Broken {
                        message: "the server is out of order".into(),
                        come_again: None,
                    };
                    return (soon, Err(error));
                }
                Trouble::Timeout if self.rng.chance(50) => return timed_out(),
                Trouble::Timeout => {
                    let _ = self.answer(flight, world);
                    return timed_out();
                }
            }
        }
        let result = self.answer(flight, world);
        if flight.fate == (Fate::AnswerLost { done: true }) || soon > late {
            world.trouble_until(late);
            return timed_out();
        }
        (soon, result)
    }

    fn answer(&self, flight: &Flight, world: &mut World<'_>) -> Result<Answer, RequestError> {
        let who = Who::Nodegate(self.instance);
        let classes = &world.settings.classes;
        carry(&mut world.cluster, who, classes, &flight.request)
    }

    /// Gathers what the machine is to be told.
    fn gather(&mut self, world: &World<'_>) {
        let now = world.cluster.now();
        let mut seen = Vec::new();
        for feed in &mut self.feeds {
            feed.poll(&world.cluster, &mut seen);
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

    /// Tells the machine what there is, and does what it says.
    fn ask(&mut self, world: &mut World<'_>) -> Result<(), Defect> {
        let now = world.cluster.now();
        let clocks = self.clocks.now(now);
        let Some(machine) = &mut self.machine else {
            return Ok(());
        };
        let is_due = machine
            .next_wake()
            .is_some_and(|wake| wake <= clocks.monotonic);
        if self.inputs.is_empty() && !is_due {
            return Ok(());
        }
        if self.inputs.is_empty() && now < self.asked_at + s(1) {
            self.idle_turns += 1;
            if self.idle_turns > IDLE_TURNS {
                let what = format!("asks to be woken {IDLE_TURNS} times with nothing new for it");
                return Err(Defect(what));
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
        let effects = guarded(|| machine.take(inputs, clocks))?;
        if world.trace {
            for effect in &effects {
                world.note((self.instance, self.life), || format!("-> {effect:?}"));
            }
        }
        if machine.has_synced() && self.report.synced_since.is_none() {
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
                Effect::Confirm(number) => {
                    for feed in &mut self.feeds {
                        feed.confirm(number, now);
                    }
                }
                Effect::Count(_) => {}
            }
        }
        Ok(())
    }

    /// Sends a request; answers whether the process is still alive.
    fn send(&mut self, id: RequestId, request: Request, world: &mut World<'_>) -> bool {
        let now = world.cluster.now();
        let mut fate = Fate::Usual;
        if is_write(&request) {
            let number = self.writes;
            self.writes += 1;
            for fault in world.faults {
                match fault {
                    Fault::Kill {
                        instance,
                        write,
                        side,
                        down,
                    } if (*instance, *write) == (self.instance, number) => {
                        if *side == Side::Before {
                            self.die(world, *down);
                            return false;
                        }
                        fate = Fate::Kills { down: *down };
                    }
                    Fault::AnswerLost {
                        instance,
                        write,
                        done,
                    } if (*instance, *write) == (self.instance, number) => {
                        fate = Fate::AnswerLost { done: *done };
                    }
                    _ => {}
                }
            }
        }
        if let Some(key) = target(&request) {
            let life = self.life;
            let mut others = self.flights.iter().filter(|other| other.life == life);
            if others.any(|other| {
                target(&other.request).as_ref() == Some(&key)
                    && is_of_status(&other.request) == is_of_status(&request)
            }) {
                self.report.doubled.push((now, key.clone()));
            }
            if self.report.leads_since.is_none() || self.was_told_to_stop {
                self.report.unasked.push((now, key));
            }
        }
        let arrives = now + self.latency();
        self.flights.push(Flight {
            id,
            life: self.life,
            request,
            sent: now,
            stage: Stage::Sent(arrives),
            fate,
        });
        true
    }

    /// Takes part in the election.
    fn elect(&mut self, world: &mut World<'_>) {
        let now = world.cluster.now();
        let Some(machine) = &self.machine else { return };
        if world.instances == 1 || self.stopping.is_some() {
            self.attempt_at = Time::MAX;
            return;
        }
        let clock = self.clocks.now(now).monotonic;
        let shown_at = self.feeds.iter().map(Feed::shown_at).max();
        let shown = self.clocks.now(shown_at.unwrap_or_default()).monotonic;
        let is_due = self.attempt_at <= now;
        let is_over = |term: &Term| term.ends() <= clock;
        if !is_due && !self.standing.term.as_ref().is_some_and(is_over) {
            return;
        }
        if is_due {
            self.attempt_at = now + RETRY_PERIOD;
        }
        let leads = self.standing.term.is_some();
        if !leads && !may_stand(machine.has_synced(), shown, clock) {
            return;
        }
        let is_refused = now < self.cut_off_until
            || (world
                .storm()
                .is_some_and(|trouble| trouble != Trouble::Conflict)
                && self.rng.chance(STORM));
        let attempt = if !is_due || is_refused {
            Attempt::Failed
        } else {
            let id = self.id();
            self.standing.attempt(&mut world.lease, id, now, clock)
        };
        match (&mut self.standing.term, attempt) {
            (Some(term), attempt) => match term.after(attempt, shown, clock) {
                Ok(()) if matches!(attempt, Attempt::Held { .. }) => self.inputs.push(Input::Leads),
                Ok(()) => {}
                Err(Loss::Blind) => self.stop(now, RESTART),
                Err(Loss::Taken | Loss::RanOut) => self.die(world, RESTART),
            },
            (term @ None, Attempt::Held { asked }) => {
                *term = Some(Term::new(asked));
                self.inputs.push(Input::Leads);
                self.report.leads_since = Some(now);
                world.note(self.id(), || "leads".into());
            }
            (None, _) => {}
        }
    }

    fn end_if_stopped(&mut self, world: &mut World<'_>) {
        let now = world.cluster.now();
        let (Some((until, down)), Some(machine)) = (self.stopping, &self.machine) else {
            return;
        };
        if self.inputs.is_empty() && (machine.is_idle() || until <= now) {
            world.lease.release(self.id());
            self.die(world, down);
        }
    }

    fn note_nodes(&mut self, now: Time) {
        // Nothing is decided by others, nor before everything has been seen once.
        if self.report.synced_since.is_none() || self.report.leads_since.is_none() {
            return;
        }
        let seen = &mut self.report.nodes_seen;
        for feed in &self.feeds {
            // In one life there are only ever more of them.
            if feed.nodes().len() <= seen.len() {
                continue;
            }
            for uid in feed.nodes() {
                seen.entry(uid.clone()).or_insert(now);
            }
        }
    }

    fn latency(&mut self) -> Time {
        match self.rng.below(50) {
            0 => self.rng.between(ms(100), s(1)),
            _ => self.rng.between(ms(1), ms(15)),
        }
    }
}
