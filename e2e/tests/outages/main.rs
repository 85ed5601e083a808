//! The controller is told to end, loses its API server at the worst moment, or has one that lags; another instance takes over.
//! Afterwards every node is in the right state, and nothing was done twice. That it is killed, stands still or is cut off is played in the simulation.

mod away;
mod lagging;
mod leadership;
mod restart;
