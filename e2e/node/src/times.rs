//! When things were seen, printed: a test that is about a node's birth says how long each step took.

use std::time::{Duration, Instant};

use anyhow::Result;
use kube_testbed::eventually;
use kube_testbed::wait::Look;

/// Longer than anything takes, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Counts from a moment on.
#[derive(Debug)]
pub struct Times {
    started: Instant,
}

impl Times {
    /// Counts from now on, from what is named.
    #[must_use]
    pub fn since(what: &str) -> Self {
        println!("  0.00 s  {what}");
        Self {
            started: Instant::now(),
        }
    }

    /// So long ago was that.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Says when this is.
    pub fn note(&self, what: &str) {
        println!("{:6.2} s  {what}", self.elapsed().as_secs_f32());
    }

    /// Waits until what is looked for is there, and says when that was.
    ///
    /// # Errors
    ///
    /// When it is not there in time.
    pub async fn until<L: Look>(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> Result<L>,
    ) -> Result<L::Value> {
        let seen = eventually(what, PATIENCE, look).await?;
        self.note(what);
        Ok(seen)
    }
}
