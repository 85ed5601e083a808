//! Servers for the webhook, `/metrics` and the probes, each on its own address; handlers live elsewhere. Anyone can connect, so
//! each bounds what a client can make it keep (`permits`); `/metrics` can require the API server's permission (`access`).

#![allow(missing_docs, reason = "a doc says what the name does not")]

mod access;
pub mod address;
pub mod metric;
mod permits;
pub mod scrape;
mod server;
pub mod tls;

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
pub use permits::Permits;
pub use server::{Peer, serve_http};

/// A probe's answer: `ok`, or why it fails.
pub fn probed(problem: Option<String>) -> (StatusCode, String) {
    match problem {
        None => (StatusCode::OK, "ok\n".into()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// What is locked. No panic leaves a half-made change there.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
