//! README, documentation and examples: what they link to is there, and what they say to type succeeds.

mod pages;
mod typed;
