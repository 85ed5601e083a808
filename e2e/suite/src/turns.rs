//! Limits the number of clusters in a test binary.

use anyhow::Result;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Waits until another cluster may start: two at a time, since each needs memory.
///
/// # Errors
///
/// Only if the semaphore is closed, which does not happen.
pub async fn turn() -> Result<SemaphorePermit<'static>> {
    static TURNS: Semaphore = Semaphore::const_new(2);
    Ok(TURNS.acquire().await?)
}
