//! Waits until something happens, and checks that something does not.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::kubernetes::folder::note_failure;

const POLL: Duration = Duration::from_millis(25);
/// How far a watch may lag.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(10);

/// The result of one poll.
pub trait Look {
    /// What the wait returns.
    type Value;

    /// The value, or `None` to poll again.
    fn settled(self) -> Option<Self::Value>;
}

impl Look for bool {
    type Value = ();

    fn settled(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Look for Option<T> {
    type Value = T;

    fn settled(self) -> Self {
        self
    }
}

/// Polls until the result is `true` or `Some`, and returns it. Errors count as "not yet".
///
/// # Errors
///
/// After `timeout`: what was waited for, and the last error if there was one.
pub async fn eventually<L: Look>(
    what: &str,
    timeout: Duration,
    mut look: impl AsyncFnMut() -> Result<L>,
) -> Result<L::Value> {
    poll(what, timeout, async || {
        Ok(look().await?.settled().ok_or_else(|| "not yet".to_owned()))
    })
    .await
}

/// Polls until the result equals `expected`. Errors count as "not yet".
///
/// # Errors
///
/// After `timeout`: what was waited for, the expected and the last value.
pub async fn eventually_eq<T: PartialEq + Debug>(
    what: &str,
    timeout: Duration,
    expected: T,
    mut look: impl AsyncFnMut() -> Result<T>,
) -> Result<()> {
    poll(what, timeout, async || {
        let seen = look().await?;
        Ok(if seen == expected {
            Ok(())
        } else {
            Err(format!("expected {expected:?}, last saw {seen:?}"))
        })
    })
    .await
}

/// Polls for as long as `duration`, and expects `false` or `None` each time.
///
/// # Errors
///
/// When it happens, with when it did; or when polling fails.
pub async fn never<L: Look>(
    what: &str,
    duration: Duration,
    mut look: impl AsyncFnMut() -> Result<L>,
) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < duration {
        if look().await?.settled().is_some() {
            bail!(
                "{what}: this should not happen, but did after {:?}",
                started.elapsed()
            );
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// The inner error describes the state that the poll found.
async fn poll<T>(
    what: &str,
    timeout: Duration,
    mut look: impl AsyncFnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    let started = Instant::now();
    let mut state = "the first look did not end".to_owned();
    loop {
        // A poll that hangs, as on a stopped API server, must not outlast the timeout.
        let left = timeout.saturating_sub(started.elapsed());
        match tokio::time::timeout(left, look()).await {
            Ok(Ok(Ok(value))) => return Ok(value),
            Ok(Ok(Err(seen))) => state = seen,
            Ok(Err(error)) => state = format!("the last look failed: {error:#}"),
            Err(_) => {}
        }
        if started.elapsed() >= timeout {
            note_failure();
            return Err(anyhow!("{what}: not within {timeout:?}; {state}"));
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timeout_says_what_was_seen_last() {
        let error = eventually_eq("two taints", Duration::from_millis(1), 2, async || Ok(1))
            .await
            .map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("two taints: not within 1ms; expected 2, last saw 1".to_owned())
        );
    }

    #[tokio::test]
    async fn what_should_never_happen_is_an_error_when_it_does() {
        let mut looks = 0;
        let result = never("a third look", Duration::from_secs(5), async || {
            looks += 1;
            Ok(looks == 3)
        })
        .await;
        assert!(result.is_err());
        assert_eq!(looks, 3);
    }
}
