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
    /// The pauses to come, and how long the longest of them is. What has failed for one cause says nothing about the
    /// other: after an outage, refusals start with short pauses again.
    pauses: Option<(ExponentialBackoff, Duration)>,
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
        if self
            .pauses
            .as_ref()
            .is_none_or(|(_, known)| *known != longest)
        {
            let pauses = ExponentialBuilder::new()
                .with_min_delay(Duration::from_millis(50))
                .with_max_delay(longest)
                .with_jitter()
                .without_max_times()
                .build();
            self.pauses = Some((pauses, longest));
        }
        let pause = self.pauses.as_mut().and_then(|(pauses, _)| pauses.next());
        let at = Instant::now() + pause.unwrap_or(longest).min(longest);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_does_not_make_later_refusals_wait() {
        let mut retry = Retry::default();
        for _ in 0..20 {
            assert!(retry.unreachable() <= Instant::now() + MAX_OUTAGE_PAUSE);
        }
        let first = retry.failed();
        assert!(first < Instant::now() + Duration::from_secs(1));
        for _ in 0..20 {
            retry.failed();
        }
        assert!(retry.failed() > Instant::now() + MAX_OUTAGE_PAUSE);
    }
}
