//! The controller stops, stands still, or loses its API server, at the worst moment. Afterwards every node is in the right state,
//! and nothing was done twice. `leadership` has one that is killed.

mod away;
mod restart;
mod stalled;
mod warm_up;
