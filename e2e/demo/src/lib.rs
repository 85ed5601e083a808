//! What Nodegate does, told as stories in a terminal: each on a real control plane of its own, each asserting what it shows.
//!
//! ```text
//! stage     what stories are told with: screen, watches, checks
//! rollout   the story that `make demo` shows: nodes join, and open once what they need is there
//! machine   the story that `make demo-node` shows: one real node joins, loses its network and reboots
//! outage    the story that `make demo-outage` shows: what reports on the nodes breaks
//! recording what `make recording` makes: the command line in a terminal, as the README shows it
//! dashboard what `make dashboard` makes: the panels of the Grafana dashboard, as the documentation shows them
//! ```

pub mod dashboard;
pub mod machine;
pub mod outage;
pub mod recording;
pub mod rollout;
pub mod stage;
