//! When something that failed may be tried again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

/// The longest pause before something that failed is tried again.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause before the API server is tried again when it could not be reached.
const MAX_OUTAGE_PAUSE: Duration = Duration::from_secs(2);

/// When something that failed may be tried again.
#[derive(Debug, Default)]
pub(super) struct Retry {
    pauses: Option<ExponentialBackoff>,
    pub(super) not_before: Option<Instant>,
}

impl Retry {
    /// Notes a failure; answers when to try again.
    pub(super) fn failed(&mut self) -> Instant {
        self.failed_with(MAX_PAUSE)
    }

    /// Notes that the API server could not be reached; answers when to try again.
    pub(super) fn unreachable(&mut self) -> Instant {
        self.failed_with(MAX_OUTAGE_PAUSE)
    }

    fn failed_with(&mut self, longest: Duration) -> Instant {
        let pauses = self.pauses.get_or_insert_with(|| {
            ExponentialBuilder::new()
                .with_min_delay(Duration::from_millis(50))
                .with_max_delay(MAX_PAUSE)
                .with_jitter()
                .without_max_times()
                .build()
        });
        let at = Instant::now() + pauses.next().unwrap_or(longest).min(longest);
        self.not_before = Some(at);
        at
    }

    /// Whether it is too early to try again.
    pub(super) fn is_waiting(&self) -> bool {
        self.not_before.is_some_and(|at| Instant::now() < at)
    }

    /// Whether it has failed since it last succeeded.
    pub(super) fn is_on(&self) -> bool {
        self.not_before.is_some()
    }
}
