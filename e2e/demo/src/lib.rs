//! A story about Nodegate in a terminal. It runs on its own real control plane, and asserts what it shows.
//!
//! ```text
//! stage   screen, watches, checks
//! rollout `make demo`: nodes join, and are released once they are ready
//! ```

pub mod rollout;
pub mod stage;
