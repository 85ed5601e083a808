//! What each command's answer can do: be serialized, be shown, be named, and say whether it is a no.

use serde::Serialize;

use super::page::Page;

/// The answer to a command.
pub trait Answer: Serialize {
    /// The answer for people.
    fn text(&self, page: &Page) -> String;

    /// What it is about, as `kind/name`, one each: for `-o name`.
    fn names(&self) -> Vec<String>;

    /// Whether the answer to the question is no, which scripts see by the exit code.
    fn is_no(&self) -> bool {
        false
    }
}
