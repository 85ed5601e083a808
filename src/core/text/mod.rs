//! Texts: cut, escaped and counted the same way everywhere, and the addresses of this build's documentation.

pub mod documentation;
mod wording;

pub use wording::{and_more, counted, cut, enumerated, printable, printable_lines, quoted, stated};
