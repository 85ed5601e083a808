//! The command line for people: `kubectl nodegate`, which is `nodegate` under another name. It answers what the controller
//! would, on a live cluster with nothing but the right to read, or offline from what `dump` has written.
//!
//! ```text
//! read (lists, or a dump) -> Snapshot (with the engine's own View) -> a command: a value -> text, JSON, YAML or names
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | [`command`] | the commands and their flags, as clap takes them |
//! | `run` | the shell: reads, has a command answer, writes the answer out, and ends with its exit code |
//! | `read` | fills a snapshot from the API server or from a dump |
//! | `complete`, `help`, `output` | completion, manual pages; standard output |
//! | `dump` | writes a dump |
//! | [`snapshot`] | what was read: the engine's view, what containers say, who leads, and the gaps |
//! | [`page`] | how an answer is laid out: width, colour, trees and tables |
//! | [`answer`] | what each command's answer can do |
//! | [`standing`] | the controller's decision about a node, in words |
//! | [`fleet`] | what every rule makes of every node |
//! | `explain`, ... | one folder for each command |
//!
//! # A new command
//!
//! 1. Its folder has the answer as a value (`#[derive(Serialize)]`, so that `-o json` is the value itself), and a pure
//!    function that makes it from a [`snapshot::Snapshot`]: no client, no clock, no file. Whatever decides, asks
//!    `snapshot.view` ([`crate::engine::View`]); nothing is decided twice. Words that the controller has for something are
//!    the controller's ([`crate::condition::Detail`], [`crate::plan::Finding::why`], ...).
//! 2. `text.rs` beside it renders that value for a [`page::Page`]; the value implements [`answer::Answer`].
//! 3. [`command::Command`] gets a variant with its flags, and `run` a line: what it wants read ([`snapshot::Wanted`]), and
//!    the function. If it wants a kind that nobody reads yet: [`snapshot::Kind`], and `read/mod.rs`.
//! 4. A list that is forbidden becomes a [`snapshot::Gap`] and takes away only what needs it.
//! 5. Tests of values beside the code; what it prints on a real cluster is kept under `docs/kubectl/` and held by
//!    `e2e/suite/tests/cli`.

pub mod answer;
pub mod check;
pub mod command;
pub mod complete;
mod dump;
pub mod explain;
pub mod failure;
pub mod fleet;
mod help;
pub mod lint;
mod output;
pub mod page;
pub mod preview;
mod read;
pub mod report;
mod run;
pub mod snapshot;
pub mod standing;
pub mod status;
pub mod suggest;
#[cfg(test)]
mod testing;
pub mod timeline;
pub mod top;

pub use command::{Command, Plugin, plain};
pub use read::{Lists, snapshot_of};
pub use run::{complete_for_kubectl, run};
