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

mod backoff;
mod certainty;
mod clock;
mod contention;
pub mod election;
mod limits;
mod outage;
mod refusals;
mod repetitions;
mod retries;

pub use backoff::{Backoff, Pauses};
pub use certainty::{Certainty, SILENCE};
pub use clock::{Clock, Reading};
pub use contention::{Contention, Undone};
pub use limits::{Limits, Rate, Turn};
pub use outage::Outage;
pub use refusals::Refusals;
pub use repetitions::Repetitions;
pub use retries::Retries;
