//! The command line for people: `kubectl nodegate`. It gives the controller's answers,
//! from a live cluster with read permissions only, or offline from a `dump`.
//!
//! ```text
//! read (lists, or a dump) -> Snapshot (with the engine's own Forecast) -> a command: a value -> text, JSON, YAML or names
//! ```
//!
//! # A new command
//!
//! 1. Its folder defines the answer as a value (`#[derive(Serialize)]`, which is what `-o json` prints), and a pure function
//!    that makes it from a [`Snapshot`]: no client, no clock, no file. Decisions come only from `snapshot.view`
//!    ([`nodegate_engine::Forecast`]). Wording comes from the controller where it has one ([`nodegate_core::condition::Detail`],
//!    [`nodegate_core::plan::ConditionOutcome::why`], ...).
//! 2. The value implements `page::Render` for a `page::Page`; a long implementation goes into `text.rs` beside it.
//! 3. `command::Command` gets a variant with a struct of its flags, and `run` a line with what to read (`snapshot::Wanted`) and the
//!    function. A kind that no command reads yet also needs [`ResourceKind`] and `read/builder.rs`.
//! 4. Tests of values stay beside the code; `docs/kubectl.md` has the output on a real cluster, which `e2e/tests/cli` checks.

#![allow(missing_docs, reason = "a doc says what the name does not")]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests may begin at any time")
)]

mod check;
mod command;
mod complete;
mod dump;
mod explain;
mod failure;
mod page;
mod preview;
mod read;
mod report;
mod rows;
mod run;
mod snapshot;
mod startup;
mod status;
mod suggest;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use command::Plugin;
pub use explain::ConditionOnNode;
pub use nodegate_cluster::{Gap, ResourceKind};
pub use read::{Lists, snapshot_of};
pub use rows::{RuleOnNode, State, rows_of};
pub use run::run;
pub use snapshot::Snapshot;
