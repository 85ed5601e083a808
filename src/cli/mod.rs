//! The command line for people: `kubectl nodegate`, which is `nodegate` under another name. It answers what the controller
//! would, on a live cluster with nothing but the right to read, or offline from what `dump` has written.
//!
//! ```text
//! read (lists, or a dump) -> Snapshot (with the engine's own View) -> a command: a value -> text, JSON, YAML or names
//! ```
//!
//! # A new command
//!
//! 1. Its folder has the answer as a value (`#[derive(Serialize)]`, so that `-o json` is the value itself), and a pure
//!    function that makes it from a [`Snapshot`]: no client, no clock, no file. Whatever decides, asks
//!    `snapshot.view` ([`crate::engine::View`]); nothing is decided twice. Words that the controller has for something are
//!    the controller's ([`crate::condition::Detail`], [`crate::plan::Finding::why`], ...).
//! 2. The value implements `page::Render`, which renders it for a `page::Page`: in `text.rs` beside it where that is long.
//! 3. `command::Command` gets a variant with its flags, and `run` a line: what it wants read (`snapshot::Wanted`), and
//!    the function. If it wants a kind that nobody reads yet: [`ResourceKind`], and `read/builder.rs`.
//! 4. A list that is forbidden becomes a `snapshot::Gap` and takes away only what needs it.
//! 5. Tests of values beside the code; what it prints on a real cluster is kept under `docs/kubectl/` and held by
//!    `e2e/suite/tests/cli`.

mod check;
mod command;
mod complete;
mod dump;
mod explain;
mod failure;
mod fleet;
mod lint;
mod page;
mod preview;
mod printable;
mod read;
mod report;
mod run;
mod snapshot;
mod status;
mod suggest;
#[cfg(test)]
mod testing;
mod timeline;
mod top;

pub use command::{Command, Plugin, plain};
pub use explain::{ConditionOnNode, NodeExplanation, RuleOnNode, explain_node};
pub use fleet::State;
pub use printable::printable_lines;
pub use read::{Lists, snapshot_of};
pub use run::{complete_for_kubectl, run};
pub use snapshot::{ResourceKind, Snapshot};
