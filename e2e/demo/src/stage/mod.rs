//! What the demos are told with: a screen, watches that fill a world, waits, and checks of what really happened.
//!
//! ```text
//! layout   text that fits a terminal's width (pure)
//! grid     cells under headings (pure)
//! screen   the terminal: a block that is redrawn in place, or plain lines
//! moment   when something was written and seen (pure)
//! check    promises, and whether they were kept (pure)
//! show     watches, world and screen together
//! question what the command line for people says of it
//! play     a story from the start of its cluster to its exit code
//! ```

mod check;
mod grid;
mod layout;
mod moment;
mod play;
mod question;
mod screen;
mod show;

pub use check::{Check, check_lines, marked};
pub use grid::{Cell, grid};
pub use layout::{Colours, Paint, count, cut, latency, seconds, wrap};
pub use moment::{Moment, Revision};
pub use play::{Play, perform};
pub use question::ask;
pub use show::{Show, World};
