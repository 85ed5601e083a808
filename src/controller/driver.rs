//! The driver feeds watch events and answers to the engine, and carries out its effects. It decides nothing.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tracing::{info, warn};

use super::counts::Counter;
use super::feed::Watches;
use super::gauges::Gauges;
use super::health::{BEAT, Readiness};
use super::requests::Requester;
use nodegate_engine::election::Loss;
use nodegate_engine::io::{Answer, Effect, Input, Now, RequestId, Seen};
use nodegate_engine::{Engine, RequestError};
use nodegate_serve::scrape::SurveyRequest;

/// The most watch events taken in at once.
const BATCH: usize = 512;
/// How long requests under way may take to finish when the controller is stopped.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Whether this instance may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leadership {
    Following,
    Leading {
        /// When the term ends unless it is renewed; `None` without leader election.
        until: Option<Instant>,
    },
    /// This instance no longer may. If it gave up because it sees nothing, requests under way may finish, and no new ones start.
    Ended(Loss),
}

impl Leadership {
    /// The leadership at this time: a term that has run out is lost. After a pause of the whole process, the loop may wake
    /// before the election, so it must check the clock before it writes anything.
    fn at(self, now: Instant) -> Self {
        match self {
            Self::Leading { until: Some(until) } if until <= now => Self::Ended(Loss::RanOut),
            _ => self,
        }
    }
}

/// What the loop receives, and where it says that it runs.
pub(super) struct Inputs {
    pub seen: mpsc::Receiver<Seen>,
    pub leadership: watch::Receiver<Leadership>,
    /// Whether all rules are suspended; `None` until that is known.
    pub brake: watch::Receiver<Option<bool>>,
    /// Changes when the cluster was restored from a backup.
    pub restored: watch::Receiver<()>,
    pub surveys: mpsc::Receiver<SurveyRequest>,
    /// When the loop last started a round.
    pub pulse: watch::Sender<Option<Instant>>,
}

type Answered = (RequestId, Result<Answer, RequestError>);

pub(super) struct Driver {
    pub engine: Engine,
    pub requester: Requester,
    pub watches: Watches,
    pub readiness: watch::Sender<Readiness>,
    pub gauges: Gauges,
    pub counter: Counter,
    pub under_way: JoinSet<Answered>,
    /// Inputs that the engine has not taken yet.
    pub inputs: Vec<Input>,
}

impl Driver {
    /// Runs until `shutdown`. Fails on losing the lead (requests under way are cancelled) or giving it up (each is answered).
    pub(super) async fn run(
        mut self,
        mut inputs: Inputs,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), Loss> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut suspends_all = false;
        let mut batch = Vec::new();
        let ended = loop {
            let now = Instant::now();
            inputs.pulse.send_replace(Some(now));
            let brake = inputs.brake.borrow_and_update().unwrap_or_default();
            if std::mem::replace(&mut suspends_all, brake) != brake {
                self.inputs.push(Input::SuspendAll(brake));
            }
            let leadership = inputs.leadership.borrow().at(now);
            match leadership {
                Leadership::Ended(Loss::Blind) => break Err(Loss::Blind),
                Leadership::Ended(loss @ (Loss::Taken | Loss::RanOut)) => {
                    let requests = self.under_way.len();
                    warn!(requests, "the lead is lost; cancelling requests in flight");
                    return Err(loss);
                }
                Leadership::Leading { .. } | Leadership::Following => {}
            }
            self.take();
            self.engine.rest(Instant::now());
            let beat = now + BEAT;
            let next_wake = self.engine.next_wake().map_or(beat, |wake| wake.min(beat));
            tokio::select! {
                biased;
                () = &mut shutdown => break Ok(()),
                // This fires when the lease is acquired, and each time it is renewed.
                Ok(()) = inputs.leadership.changed() => {
                    if matches!(*inputs.leadership.borrow(), Leadership::Leading { .. }) {
                        self.inputs.push(Input::Leads);
                    }
                }
                Ok(()) = inputs.brake.changed() => {}
                Ok(()) = inputs.restored.changed() => self.inputs.push(Input::Restored),
                Some(done) = self.under_way.join_next() => self.answered(done),
                1.. = inputs.seen.recv_many(&mut batch, BATCH) => {
                    self.inputs.extend(batch.drain(..).map(Input::Seen));
                }
                Some(done) = inputs.surveys.recv() => {
                    self.gauges.set(&self.engine.survey(self::now()).readings);
                    // The requester may have stopped waiting.
                    let _ = done.send(());
                }
                () = tokio::time::sleep_until(next_wake.into()) => {}
            }
        };
        self.stop().await;
        ended
    }

    /// Passes the pending inputs to the engine, and carries out its effects.
    fn take(&mut self) {
        let started = Instant::now();
        let effects = self.engine.take(self.inputs.drain(..), now());
        if self.engine.has_synced() && !self.readiness.borrow().synced {
            self.readiness.send_modify(|it| it.synced = true);
        }
        self.counter.count(&effects, started.elapsed());
        for effect in effects {
            match effect {
                Effect::Request(id, request) => {
                    let requester = self.requester.clone();
                    let request = async move { (id, requester.make(request).await) };
                    self.under_way.spawn(request);
                }
                Effect::Watch(watch, scope) => self.watches.begin(watch, &scope),
                Effect::Unwatch(watch) => self.watches.end(watch),
                Effect::Count(_) => {}
            }
        }
    }

    /// Takes this answer, and all others that have arrived.
    fn answered(&mut self, done: Result<Answered, JoinError>) {
        let mut done = Some(done);
        while let Some(answered) = done {
            // Request tasks neither panic nor get cancelled; if one does, no state can be trusted any more.
            let (id, answer) =
                answered.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            self.inputs.push(Input::Answered(id, answer));
            done = self.under_way.try_join_next();
        }
    }

    /// Lets requests under way finish and passes on their results; starts no new ones.
    async fn stop(mut self) {
        info!(requests = self.under_way.len(), "stopping");
        self.inputs.push(Input::Stop);
        let deadline = Instant::now() + SHUTDOWN_GRACE;
        loop {
            self.take();
            if self.engine.is_idle() {
                return;
            }
            let wake = self.engine.next_wake().unwrap_or(deadline).min(deadline);
            tokio::select! {
                Some(done) = self.under_way.join_next() => self.answered(done),
                () = tokio::time::sleep_until(wake.into()) => {
                    if Instant::now() >= deadline {
                        warn!("stopped before all requests had been answered");
                        return;
                    }
                }
            }
        }
    }
}

pub(super) fn now() -> Now {
    Now {
        wall: Timestamp::now(),
        monotonic: Instant::now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_is_lost_when_its_time_is_over_whoever_wakes_first() {
        let now = Instant::now();
        let until = |until| Leadership::Leading { until };
        let lost = Leadership::Ended(Loss::RanOut);
        let past = now.checked_sub(Duration::from_millis(1));
        let future = Some(now + Duration::from_millis(1));
        for (leadership, expected) in [
            (until(None), until(None)),
            (until(future), until(future)),
            (until(Some(now)), lost),
            (until(past), lost),
            (Leadership::Following, Leadership::Following),
        ] {
            assert_eq!(leadership.at(now), expected, "{leadership:?}");
        }
    }
}
