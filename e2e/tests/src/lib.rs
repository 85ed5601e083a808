//! Nodegate's tests on a real Kubernetes control plane. Each folder beside `src` is a test binary, but for `fixtures`; this
//! library holds what several of them share.
//!
//! ```text
//! gates     waits until a node is held or released, or a condition of it is reported
//! kubelet   requests with a kubelet's identity
//! network   the rule and the nodes of most tests
//! pages     this repository's pages and their fenced blocks
//! reporter  the reporter of an example
//! rules     their keys and their brake, and waits for them
//! server    an HTTP server whose answer a test controls
//! webhook   how the API server calls the webhook
//! ```

#![allow(
    clippy::missing_errors_doc,
    reason = "only tests call this, and fail with the error"
)]

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};

pub mod gates;
pub mod kubelet;
pub mod network;
pub mod pages;
pub mod reporter;
pub mod rules;
pub mod server;
pub mod webhook;

/// The timeout for anything, also on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// The timeout for anything that is not deliberately delayed, also on a busy machine.
pub const PROMPTLY: Duration = Duration::from_secs(20);

/// Longer than a decision takes.
pub const A_WHILE: Duration = Duration::from_millis(700);

/// A file of `fixtures/`.
pub fn fixture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(file)
}

/// The error of something that must fail.
pub fn refused<T: Debug>(result: Result<T>) -> Result<String> {
    match result {
        Err(error) => Ok(format!("{error:#}")),
        Ok(done) => bail!("not refused: {done:?}"),
    }
}

/// Checks that a text, such as a message or a log, has these words.
pub fn has_words(text: &str, words: &str) -> Result<()> {
    ensure!(text.contains(words), "no {words:?} in: {text}");
    Ok(())
}
