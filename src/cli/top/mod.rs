//! `top`: the fleet live. What is seen at one time is a value, and so is where somebody has got to on the screen; what is drawn
//! follows from both.
//!
//! | file | what it does |
//! |---|---|
//! | `closed` | what is seen at one time |
//! | `state` | what keys do |
//! | `draw` | what is drawn |
//! | `lines` | a line for each change, where there is no screen |
//! | `text` | one table |

mod closed;
mod draw;
mod lines;
mod state;
#[cfg(test)]
mod tests;
mod text;

pub use closed::{Closed, Closure, Fleet, Lacking};
pub use draw::{draw, page_length};
pub use lines::Told;
pub use state::{Act, Key, Opened, Sort, State};
