//! The controller is killed, stopped, paused, or loses its API server, at the worst moment. Afterwards every node is in the
//! right state, and nothing was done twice.

mod away;
mod restart;
mod warm_up;
