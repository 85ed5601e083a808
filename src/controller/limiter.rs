//! The limit that all writes share, Events among them. The Lease is not held up by it: who cannot renew it stops writing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use prometheus::IntGauge;

use super::metrics::{Metrics, gauge};
use crate::engine::RequestError;
use crate::engine::{Limits, Rate, Turn};

/// How many requests that change something the API server is asked for.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[group(id = "limiter")]
pub struct Args {
    /// How many requests that change something may be made a second, Events among them; without it, or with 0, as many as
    /// the API server bears
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    kube_api_qps: Option<f64>,

    /// How many of them may be made at once; without it as many as in a second
    #[arg(long, value_name = "REQUESTS", allow_negative_numbers = true)]
    kube_api_burst: Option<i64>,
}

impl Args {
    /// The rate that is asked for, if any is.
    pub fn rate(self) -> Option<Rate> {
        let per_second = self
            .kube_api_qps
            .filter(|rate| rate.is_finite() && *rate > 0.0)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a conversion saturates, and the rate is above 0"
        )]
        let in_a_second = (per_second.ceil() as u32).max(1);
        let burst = self.kube_api_burst.filter(|burst| *burst > 0);
        Some(Rate {
            per_second,
            burst: burst.map_or(in_a_second, |burst| {
                u32::try_from(burst).unwrap_or(u32::MAX)
            }),
        })
    }
}

/// The limit that all writes share, for the loop and for those who post Events.
#[derive(Debug, Clone)]
pub struct Limiter {
    limits: Arc<Mutex<Limits>>,
    /// How many nodes may be written at a time now.
    shown: IntGauge,
}

impl Limiter {
    /// A limit of so many writes at a time, and so many a second where that is limited.
    pub fn new(at_a_time: u16, rate: Option<Rate>, metrics: &Metrics) -> Self {
        let shown = metrics.write_limit.clone();
        shown.set(at_a_time.into());
        Self {
            limits: Arc::new(Mutex::new(Limits::new(at_a_time, rate))),
            shown,
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Limits) -> T) -> T {
        // A panic elsewhere leaves numbers behind that are as good as any.
        work(&mut self.limits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether another write may be made while so many are under way.
    pub fn turn(&self, under_way: usize) -> Turn {
        self.with(|limits| limits.turn(under_way, Instant::now()))
    }

    /// When something may be written that does not count among those under way; `None` where that may be done now.
    pub fn not_before(&self) -> Option<Instant> {
        match self.turn(0) {
            Turn::At(at) => Some(at),
            Turn::Now | Turn::AfterAnother => None,
        }
    }

    /// Notes that a write is made; answers when that was.
    pub fn made(&self) -> Instant {
        let now = Instant::now();
        self.with(|limits| limits.made(now));
        now
    }

    /// Takes in the answer to a write that was made at this time.
    pub fn answered(&self, made: Instant, error: Option<&RequestError>) {
        self.with(|limits| {
            match error {
                Some(
                    RequestError::Throttled { come_again, .. }
                    | RequestError::Broken { come_again, .. },
                ) => limits.overloaded(made, *come_again, Instant::now()),
                Some(RequestError::TimedOut(_)) => limits.overloaded(made, None, Instant::now()),
                Some(RequestError::Unreachable(_)) => {}
                None
                | Some(RequestError::Conflict | RequestError::Gone | RequestError::Failed(_)) => {
                    limits.dealt_with(made);
                }
            }
            self.shown.set(gauge(limits.at_a_time()));
        });
    }

    /// Waits until an Event may be posted, and notes that it is; answers when that was.
    pub async fn turn_for_event(&self) -> Instant {
        while let Some(at) = self.not_before() {
            tokio::time::sleep_until(at.into()).await;
        }
        self.made()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_rate_is_taken_as_the_go_client_takes_it() {
        for (arguments, expected) in [
            (&[][..], None),
            (&["--kube-api-qps=50"], Some((50.0, 50))),
            (&["--kube-api-qps=0.5"], Some((0.5, 1))),
            (
                &["--kube-api-qps", "20", "--kube-api-burst", "30"],
                Some((20.0, 30)),
            ),
            (
                &["--kube-api-qps=20", "--kube-api-burst=0"],
                Some((20.0, 20)),
            ),
            // None at all.
            (&["--kube-api-qps", "-1", "--kube-api-burst", "30"], None),
            (&["--kube-api-qps=0"], None),
            (&["--kube-api-burst=30"], None),
        ] {
            let cli = Cli::try_parse_from([&["nodegate"], arguments].concat());
            let cli = cli.unwrap_or_else(|error| panic!("{error}"));
            let expected = expected.map(|(per_second, burst)| Rate { per_second, burst });
            assert_eq!(cli.args.rate(), expected, "{arguments:?}");
        }
    }
}
