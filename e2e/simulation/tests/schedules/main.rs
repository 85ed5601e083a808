//! Schedules of simulated clusters: new ones, what earlier ones have found, the same with and without a fault, and random worlds.

mod explore;
mod findings;
mod oracle;
mod worlds;
