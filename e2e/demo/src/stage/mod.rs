//! What the demos share: a screen, watches that fill a world, waits, and checks of what really happened.

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
pub use moment::{Moment, Period, Revision, condition};
pub use play::{Play, perform};
pub use question::ask;
pub use show::{Show, World};
