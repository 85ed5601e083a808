//! Small state machines that say what may be done and when: values in, values out. Nothing here has a clock, a client or a
//! task of its own; every time is a parameter.
//!
//! | file | what it is |
//! |---|---|
//! | `clock` | two clocks made into one time that shows when one of them was set, or the process stood still |
//! | `certainty` | since when what the watches have shown of each kind is certain |
//! | `backoff` | when something that failed is tried again |
//! | `election` | who leads, and until when |
//! | `outage` | what may be done while the API server cannot be reached |

mod backoff;
mod certainty;
mod clock;
pub mod election;
mod outage;

pub use backoff::{Backoff, Pauses};
pub use certainty::{Certainty, SILENCE};
pub use clock::{Clock, Reading};
pub use outage::Outage;
