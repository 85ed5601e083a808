//! A story about Nodegate in a terminal. It runs on its own real control plane, and asserts what it shows.
//!
//! ```text
//! stage     screen, watches, checks
//! recording `make recording`: the command line in a terminal, for the README
//! rollout   `make demo`: nodes join, and open once they are ready
//! ```

pub mod recording;
pub mod rollout;
pub mod stage;
