//! Termination signals.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves when the process gets SIGTERM or SIGINT. Fails if signals cannot be handled.
pub(crate) fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
