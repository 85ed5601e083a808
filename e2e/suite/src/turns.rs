//! How many clusters a test binary has at a time.

use anyhow::Result;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Waits until one cluster more may be started. Each takes its share of memory, so there are two at a time.
///
/// # Errors
///
/// None, unless somebody closes what this waits for.
pub async fn turn() -> Result<SemaphorePermit<'static>> {
    static TURNS: Semaphore = Semaphore::const_new(2);
    Ok(TURNS.acquire().await?)
}
