//! The requests under way: each arrives after a moment, and may be refused or lost. So may its answer.

use nodegate_engine::RequestError;
use nodegate_engine::io::{Answer, Request, RequestId};

use super::{Process, World};
use crate::sim::cluster::Who;
use crate::sim::fault::{Fault, Side, Trouble};
use crate::sim::time::{Time, ms, s};
use crate::sim::transport::{carry, is_of_status, is_write, target};

pub(super) const DEADLINE: Time = s(10);
/// The longest time of a request or an answer without faults.
pub(crate) const LONGEST_FLIGHT: Time = s(1);
/// The share of requests that a storm hits, in percent.
pub(super) const STORM: usize = 85;

pub(super) struct Flight {
    pub(super) id: RequestId,
    pub(super) life: u32,
    pub(super) request: Request,
    /// The UID of the target object when the request was sent.
    pub(super) uid: Option<String>,
    pub(super) sent: Time,
    pub(super) stage: Stage,
    pub(super) fate: Fate,
}

pub(super) enum Stage {
    /// Arrives at the API server at this time.
    Sent(Time),
    /// The answer arrives at this time.
    Answered(Time, Result<Answer, RequestError>),
}

/// How a fault changes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Usual,
    /// Its process dies once the request has been carried out.
    Kills {
        down: Time,
    },
    AnswerLost {
        done: bool,
    },
}

impl Process {
    /// Carries out the requests that have arrived.
    pub(super) fn carry_requests(&mut self, world: &mut World<'_>) {
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

    /// Whether the request is a consistent read of a resource whose view lags.
    fn is_slow(&mut self, request: &Request) -> bool {
        match request {
            Request::ReadVersion(watch, _) => self.feed(*watch).is_some_and(|it| it.lag.is_some()),
            _ => false,
        }
    }

    /// Carries out one request; returns the answer and when it arrives.
    pub(super) fn carry(
        &mut self,
        flight: &Flight,
        world: &mut World<'_>,
    ) -> (Time, Result<Answer, RequestError>) {
        let now = world.cluster.now();
        let soon = if self.is_slow(&flight.request) {
            // A lagging API server tries to catch up before it answers. Meanwhile the watches may recover.
            now + self.rng.between(s(1), s(7))
        } else {
            now + self.latency()
        };
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
        let too_many = |wait| RequestError::Throttled {
            message: "too many requests".into(),
            retry_after: Some(wait),
        };
        if world.refuses_events() && matches!(flight.request, Request::PostEvent { .. }) {
            return (soon, Err(too_many(s(5))));
        }
        let is_write = is_write(&flight.request);
        if let Some(trouble) = world.storm()
            && self.rng.chance(STORM)
        {
            match trouble {
                Trouble::Conflict if is_write => return (soon, Err(RequestError::Conflict)),
                Trouble::Conflict | Trouble::EventRateLimit => {}
                Trouble::TooManyRequests => return (soon, Err(too_many(s(1)))),
                Trouble::InternalError => {
                    let message = "the server is out of order".into();
                    return (soon, Err(RequestError::Broken(message)));
                }
                Trouble::Unavailable => {
                    let error = RequestError::Throttled {
                        message: "the server is unavailable".into(),
                        retry_after: None,
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
        if let (Request::ReadVersion(watch, _), Ok(Answer::Version(revision))) =
            (&flight.request, &result)
            && let Some(feed) = self.feed(*watch)
        {
            feed.has_read(*revision);
        }
        if flight.fate == (Fate::AnswerLost { done: true }) || soon > late {
            world.trouble_until(late);
            return timed_out();
        }
        (soon, result)
    }

    pub(super) fn answer(
        &self,
        flight: &Flight,
        world: &mut World<'_>,
    ) -> Result<Answer, RequestError> {
        let who = Who::Nodegate(self.instance);
        carry(&mut world.cluster, who, &flight.request)
    }

    /// Sends a request; returns whether the process is still alive.
    pub(super) fn send(&mut self, id: RequestId, request: Request, world: &mut World<'_>) -> bool {
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
        let target_of = target(&request);
        let uid = target_of.as_ref().and_then(|key| {
            let object = world.cluster.get(key)?;
            Some(object["metadata"]["uid"].as_str()?.to_owned())
        });
        if let Some(key) = target_of {
            let life = self.life;
            let mut others = self.flights.iter().filter(|other| other.life == life);
            if others.any(|other| {
                target(&other.request).as_ref() == Some(&key)
                    && other.uid == uid
                    && is_of_status(&other.request) == is_of_status(&request)
            }) {
                self.report.doubled.push((now, key.clone()));
            }
            let leads = self.report.leads_since.is_some() && !self.has_lost_its_lease(world);
            if !leads || self.was_told_to_stop {
                self.report.unasked.push((now, key));
            }
        }
        let arrives = now + self.latency();
        self.flights.push(Flight {
            id,
            life: self.life,
            request,
            uid,
            sent: now,
            stage: Stage::Sent(arrives),
            fate,
        });
        true
    }

    pub(super) fn latency(&mut self) -> Time {
        match self.rng.below(50) {
            0 => self.rng.between(ms(100), LONGEST_FLIGHT),
            _ => self.rng.between(ms(1), ms(15)),
        }
    }
}
