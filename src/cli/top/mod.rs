//! `top`: the live fleet. The fleet at one time (`closed`) and the user's position (`state`) are values, and drawing is a
//! function of both.

mod closed;
mod draw;
mod state;
#[cfg(test)]
mod tests;

pub(super) use closed::{Fleet, ToldChanges};
pub(super) use draw::{draw, page_length};
pub(super) use state::{Act, TopState};
