//! A whole cluster in one process, around one or several instances of the engine: everything that happens in it follows
//! from a scenario, a seed and a list of faults, bit for bit.
//!
//! ```text
//! time        what time it is, by the cluster's clock and by a process's two
//! rng         chance out of a seed
//! settings    what the instances of Nodegate are set to
//! cluster     the API server, and a log of all that has happened to it
//! birth       the API server closes nodes as it creates them
//! actor       those who act in the cluster beside Nodegate: what they have in common
//! actors      the actors
//! machine     what a process runs: the engine
//! defect      what no machine may do
//! process     one instance of Nodegate: the engine, its watches, its requests under way, its part in the election
//! election    who leads
//! watches     what the watches of one process show, and when
//! transport   a request of the engine as the API server carries it out, and its answer
//! fault       what goes wrong, as values that are printed as code
//! scenario    what happens where nothing goes wrong, as a value
//! scenarios   the scenarios
//! law         what must never happen, and what must come to be: what laws have in common
//! laws        the laws
//! run         one schedule from its beginning to its end
//! script      a schedule as a value: run, and printed as a test
//! trace       what has happened in a schedule, for people to read
//! explore     many schedules: every single fault, then several by chance; and what breaks a law made small
//! ```

pub mod actor;
pub mod actors;
mod birth;
pub mod cluster;
pub mod defect;
mod election;
pub mod explore;
pub mod fault;
pub mod law;
pub mod laws;
pub mod machine;
mod process;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod scenarios;
pub mod script;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod time;
pub mod trace;
mod transport;
mod watches;

pub use actor::Actor;
pub use cluster::{Change, Cluster, State, View, Who, Write};
pub use fault::Fault;
pub use law::{Law, Moment, Report, Violation};
pub use rng::Rng;
pub use run::{Outcome, run};
pub use scenario::Scenario;
pub use settings::Settings;
pub use time::Time;
