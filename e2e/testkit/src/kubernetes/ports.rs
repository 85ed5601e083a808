//! Free ports of the loopback interface.
//!
//! They lie below the kernel's range for outgoing connections. Otherwise a client that retries a stopped API server could be
//! given that server's port, connect to itself and keep the server from starting again.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context, Result};

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// The next candidate's offset. It only grows, so two clusters of one process never get the same port, and each process starts
/// elsewhere.
static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port that was free a moment ago. Another process may take it before it is used: be ready to retry.
pub fn free() -> Result<u16> {
    let seed = u16::try_from(u64::from(process::id()) * 97 % u64::from(COUNT)).unwrap_or_default();
    (0..COUNT)
        .map(|_| {
            let offset = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
            FIRST + (seed + offset) % COUNT
        })
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .context("no free port between 20000 and 31999")
}
