//! A whole cluster in one process, around one or several instances of the engine. A scenario, a seed and a list of faults
//! determine a run completely.

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
