//! Stories about Nodegate in a terminal: each runs on its own real control plane, and asserts what it shows.
//!
//! ```text
//! stage     what stories share: screen, watches, checks
//! rollout   `make demo`: nodes join, and open once they are ready
//! machine   `make demo-node`: one real node joins, loses its network and reboots
//! outage    `make demo-outage`: the reporters on the nodes fail
//! recording `make recording`: the command line in a terminal, for the README
//! dashboard `make dashboard`: the panels of the Grafana dashboard, for the documentation
//! ```

pub mod dashboard;
pub mod machine;
pub mod outage;
pub mod recording;
pub mod rollout;
pub mod stage;
