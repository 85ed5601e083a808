//! The `CustomResourceDefinition` on a real API server, and rules under others: the Node Readiness Controller's, and one that accepts
//! everything.

mod bad_input;
mod cases;
mod going_back;
mod legacy;
mod moving_in;
mod pruned;
mod validation;
