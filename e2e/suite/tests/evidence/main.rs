//! How the controller acts on stale evidence, on a real API server: while a watch stalls, and after the process itself did.

mod frozen;
mod stalled;
