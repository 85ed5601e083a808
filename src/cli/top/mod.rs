//! `top`: the fleet live. What is seen at one time is a value, and so is where somebody has got to on the screen; what is drawn
//! follows from both.

mod closed;
mod draw;
mod state;
#[cfg(test)]
mod tests;

pub use closed::{Fleet, ToldChanges};
pub use draw::{draw, page_length};
pub use state::{Act, TopState};
