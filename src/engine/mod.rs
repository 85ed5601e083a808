//! Small state machines that say what may be done and when: values in, values out. Nothing here has a clock, a client or a
//! task of its own; every time is a parameter.
//!
//! | file | what it is |
//! |---|---|
//! | `clock` | two clocks made into one time that shows when one of them was set, or the process stood still |
//! | `certainty` | since when what the watches have shown of each kind is certain |
//! | `backoff` | when something that failed is tried again |
//! | `contention` | how soon a change is made again that somebody keeps undoing |
//! | `election` | who leads, and until when |
//! | `limits` | how many writes may be made at a time, and a second |
//! | `outage` | what may be done while the API server cannot be reached |
//! | `refusals` | what of a node's changes is tried again, once the whole has been refused |
//! | `repetitions` | which of many equal complaints are told |
//! | `retries` | whose turn it is to try again what has been refused |

mod announce;
pub mod broken;
pub mod cache;
mod certainty;
mod clock;
mod conditions;
mod disruption;
pub mod election;
mod error;
pub mod evidence;
pub mod io;
pub mod kind;
pub mod look;
pub(crate) mod map;
mod node_writes;
mod nodes;
pub mod notice;
pub mod patch;
pub mod reconcile;
mod repairs;
mod rules;
mod status;
mod survey;
mod turns;
mod unreadable;

pub use certainty::{Certainty, SILENCE};
pub use clock::{Clock, Reading};
pub use error::RequestError;
pub use turns::{
    Backoff, Contention, Limits, Outage, Pauses, Rate, Refusals, Repetitions, Retries, Turn, Undone,
};
