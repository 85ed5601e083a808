//! Nodegate's tests on a real Kubernetes control plane. Each file or folder under `tests/` is a binary of its own; here is
//! what several of them have in common.
//!
//! ```text
//! gates     waits for a node to be closed, and to be open again
//! kubelet   requests as a kubelet makes them
//! network   the rule that most tests have, the nodes that it is about, and what becomes of them
//! pages     the pages of this repository, and what is fenced on them
//! turns     how many clusters a test binary has at a time
//! versions  what not every Kubernetes has
//! ```

use std::time::Duration;

pub mod gates;
pub mod kubelet;
pub mod network;
pub mod pages;
mod turns;
pub mod versions;

pub use turns::turn;

/// Longer than anything takes, however busy the machine.
pub const SOON: Duration = Duration::from_secs(60);

/// Longer than anything takes that is not put off for a while, however busy the machine.
pub const PROMPTLY: Duration = Duration::from_secs(20);

/// Longer than a decision takes.
pub const A_WHILE: Duration = Duration::from_millis(700);
