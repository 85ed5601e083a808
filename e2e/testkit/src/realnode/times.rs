//! Prints when things happened, so that a test about a node's start shows how long each step took.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::kubernetes::eventually;
use crate::kubernetes::wait::Look;

/// A timeout for anything, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Measures times from one moment on.
#[derive(Debug)]
pub struct Times {
    started: Instant,
}

impl Times {
    /// Starts to measure at this event.
    pub fn since(what: &str) -> Self {
        println!("  0.00 s  {what}");
        Self {
            started: Instant::now(),
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn note(&self, what: &str) {
        println!("{:6.2} s  {what}", self.elapsed().as_secs_f32());
    }

    /// Polls until the result is there, and prints when.
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
