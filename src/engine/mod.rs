//! Small state machines that decide when something is done: values in, values out. Nothing here has a clock, a client or a
//! task of its own; every monotonic time is a parameter.
//!
//! | file | what it decides |
//! |---|---|
//! | `backoff` | when something that failed is tried again |
//! | `outage` | what may be done while the API server cannot be reached |

mod backoff;
mod outage;

pub use backoff::{Backoff, Pauses};
pub use outage::Outage;
